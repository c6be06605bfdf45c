"""A whole transaction at once, where all is plain: partitions added, commit prepared, commit completed.

Most records of a healthy `__transaction_state` are of such transactions. What this returns is what
`pipeline.replay.coordinator.step` makes of the same records one by one; it declines whatever is not plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.replay.coordinator import IdState, Step
from pipeline.replay.transaction import Transaction
from pipeline.replay.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    MAX_EPOCH,
    ONGOING,
    PREPARE_COMMIT,
    Record,
    listed,
)

_ENDED = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)


class PlainCommit(NamedTuple):
    """A transaction, the step of each of its records, and the state behind it."""

    steps: list[Step]
    transaction: Transaction
    state: IdState


def plain_commit(records: Sequence[Record], at: int, state: IdState) -> PlainCommit | None:
    """The plain transaction that begins at a record; None where one step at a time has to decide.

    Args:
        records: Of one id, by offset.
        at: Number of the first record.
        state: The id's state in front of it.
    """
    last = state.last
    if last is None or last.state not in _ENDED or state.transaction is not None:
        return None
    producer_id, epoch, timeout = last.producer_id, last.producer_epoch, last.txn_timeout_ms
    if epoch >= MAX_EPOCH - 1:
        return None
    first = before = records[at]
    steps: list[Step] = []
    added: tuple[tuple[str, int | None], ...] = ()
    known: set[str] = set()
    highest = 0
    previous = last
    for number in range(at, len(records)):
        record = records[number]
        if record.producer_id != producer_id or record.txn_timeout_ms != timeout:
            return None
        if record.start_ms != first.start_ms:
            return None
        version = 0 if not record.value_version else 1
        if version and record.client_transaction_version == 2:
            version = 2
        if record.state == ONGOING:
            if record.producer_epoch != epoch:
                return None
            names = listed(record)
            fresh = tuple((name, record.append_ms) for name in names if name not in known)
            # A later one names all that the earlier ones named, each once, and more.
            if not fresh or len(fresh) + len(known) != len(names):
                return None
            known.update(names)
            if len(known) != len(names):
                return None
            added += fresh
            steps.append(
                Step("add_partitions", version, previous.state, previous.producer_epoch, None, None)
            )
            highest = max(highest, version)
            before = previous = record
            continue
        if record.state != PREPARE_COMMIT or not steps or number + 1 == len(records):
            return None
        bump = record.producer_epoch - epoch
        if version and bump == 1:
            version = 2
        if bump != (1 if version == 2 else 0) or record.partitions != before.partitions:
            return None
        return _completed(record, records[number + 1], version, highest, steps, first, added)
    return None


def _completed(
    prepare: Record,
    complete: Record,
    version: int,
    highest: int,
    steps: list[Step],
    first: Record,
    added: tuple[tuple[str, int | None], ...],
) -> PlainCommit | None:
    if (
        complete.state != COMPLETE_COMMIT
        or complete.producer_id != prepare.producer_id
        or complete.producer_epoch != prepare.producer_epoch
        or complete.txn_timeout_ms != prepare.txn_timeout_ms
        or complete.start_ms != prepare.start_ms
    ):
        return None
    last_version = 0 if not complete.value_version else 1
    if last_version and complete.client_transaction_version == 2:
        last_version = 2
    steps.append(Step("client_commit", version, ONGOING, first.producer_epoch, None, None))
    steps.append(Step("complete", last_version, PREPARE_COMMIT, prepare.producer_epoch, None, None))
    transaction = Transaction(
        first_step_offset=first.offset,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        prepare_epoch=prepare.producer_epoch,
        state=COMPLETE_COMMIT,
        outcome=1,
        cause="client_commit",
        transaction_version=max(highest, version),
        txn_timeout_ms=first.txn_timeout_ms,
        start_ms=first.start_ms,
        ongoing_ms=first.append_ms,
        ongoing_leader_epoch=first.leader_epoch,
        prepare_offset=prepare.offset,
        prepare_ms=prepare.append_ms,
        prepare_leader_epoch=prepare.leader_epoch,
        complete_offset=complete.offset,
        complete_ms=complete.append_ms,
        complete_leader_epoch=complete.leader_epoch,
        has_start=True,
        added=added,
    )
    return PlainCommit(steps, transaction, IdState(complete, prepare, None, transaction))
