"""One transactional id's records as steps, transactions and ownership of producer ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.replay.coordinator import FENCE_FOLLOW_UP_MS, NEW, IdState, Step, step
from pipeline.replay.plain_commit import plain_commit
from pipeline.replay.transaction import Transaction
from pipeline.replay.transaction_state import COMPLETE_ABORT, EMPTY, Record
from pipeline.wire.log_dir import partition_for


class Owner(NamedTuple):
    """A producer id that a transactional id holds or held; `schemas.silver.OWNER` says what each field means."""

    producer_id: int
    is_current: bool
    state: int | None
    producer_epoch: int | None
    transaction_version: int
    txn_timeout_ms: int | None
    append_ms: int | None
    start_ms: int | None
    leader_epoch: int | None
    partitions: tuple[str, ...]


class IdHistory(NamedTuple):
    """Everything that the log says of one transactional id."""

    steps: list[Step]
    transactions: list[Transaction]
    owners: list[Owner]


def replay_id(
    transactional_id: str,
    records: Sequence[Record],
    *,
    coordinator_partition: int,
    partition_count: int | None,
    frontier_offset: int,
    is_complete: bool,
) -> IdHistory:
    """Replays the records of one id in offset order.

    Args:
        transactional_id: The id.
        records: Its records by offset.
        coordinator_partition: Partition of `__transaction_state` that holds them.
        partition_count: Number of partitions of that topic; None when not known.
        frontier_offset: Offset from which that partition's history is complete.
        is_complete: Complete from offset 0.
    """
    steps: list[Step] = []
    transactions: list[Transaction] = []
    state = NEW
    producers: dict[int, None] = {}
    version = 0
    last_done: Transaction | None = None
    at = 0
    while at < len(records):
        record, before = records[at], state.last
        plain = plain_commit(records, at, state)
        done: Transaction | None
        if plain is not None:
            facts, done, state = plain
            fact = facts[-1]
            steps += facts
            at += len(facts)
        else:
            state, fact, done = step(
                state, record, frontier_offset=frontier_offset, is_complete=is_complete
            )
            steps.append(fact)
            at += 1
        if state.last is records[at - 1] and state.last.state is not None:
            producers[state.last.producer_id] = None
            version = fact.transaction_version
        if last_done is not None:
            transactions.append(_fenced(last_done, record, before))
        last_done = done
    if last_done is not None:
        transactions.append(last_done)
    if state.transaction is not None:
        transactions.append(state.transaction)
    if (
        partition_count
        and partition_for(transactional_id, partition_count) != coordinator_partition
    ):
        steps[0] = _misplaced(steps[0], transactional_id, partition_count)
    owners = [_owner(producer_id, state, version) for producer_id in producers]
    return IdHistory(steps, _unique(transactions), owners)


def _fenced(done: Transaction, record: Record, before: Record | None) -> Transaction:
    """Version 2: an abort that an InitProducerId follows at once was a fence, not the client's own."""
    is_abort = done.state == COMPLETE_ABORT and done.cause == "client_abort"
    if not is_abort or done.transaction_version < 2 or record.state != EMPTY or before is None:
        return done
    if record.append_ms is None or done.complete_ms is None:
        return done
    is_soon = record.append_ms - done.complete_ms <= FENCE_FOLLOW_UP_MS
    return done._replace(cause="fence") if is_soon else done


def _misplaced(fact: Step, transactional_id: str, count: int) -> Step:
    expected = partition_for(transactional_id, count)
    detail = f"the id hashes to partition {expected} of {count}"
    return fact._replace(violation="wrong_partition", explanation=detail)


def _unique(transactions: list[Transaction]) -> list[Transaction]:
    """One row a transaction: a Complete* that was taken back and written again counts once, the last."""
    by_start = {transaction.first_step_offset: transaction for transaction in transactions}
    return [by_start[offset] for offset in sorted(by_start)]


def _owner(producer_id: int, state: IdState, version: int) -> Owner:
    last = state.last
    assert last is not None
    if last.state is None or last.producer_id != producer_id:
        is_expired = last.state is None
        return Owner(
            producer_id,
            False,
            None if is_expired else last.state,
            None if is_expired else last.producer_epoch,
            version,
            None,
            last.append_ms,
            None,
            last.leader_epoch,
            (),
        )
    listed = tuple(name for name in last.partitions.split("\x01")) if last.partitions else ()
    return Owner(
        producer_id,
        True,
        last.state,
        last.producer_epoch,
        version,
        last.txn_timeout_ms,
        last.append_ms,
        last.start_ms,
        last.leader_epoch,
        listed,
    )
