"""One transaction as the coordinator's log tells it."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.replay.transaction_state import (
    ONGOING,
    PREPARE,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Record,
    listed,
    listed_set,
)


class Transaction(NamedTuple):
    """One transaction so far; `schemas.silver.TRANSACTION` says what each field means."""

    first_step_offset: int
    producer_id: int
    producer_epoch: int
    prepare_epoch: int | None
    state: int
    outcome: int | None
    cause: str | None
    transaction_version: int
    txn_timeout_ms: int
    start_ms: int | None
    ongoing_ms: int | None
    ongoing_leader_epoch: int | None
    prepare_offset: int | None
    prepare_ms: int | None
    prepare_leader_epoch: int | None
    complete_offset: int | None
    complete_ms: int | None
    complete_leader_epoch: int | None
    has_start: bool
    added: tuple[tuple[str, int | None], ...]


def opened(record: Record, version: int, cause: str) -> Transaction:
    """The transaction that a record begins, or whose first record left in the log it is."""
    is_ongoing = record.state == ONGOING
    added_ms = record.append_ms if is_ongoing else None
    transaction = Transaction(
        record.offset,
        record.producer_id,
        record.producer_epoch,
        None,
        record.state or 0,
        None,
        None,
        version,
        record.txn_timeout_ms,
        record.start_ms,
        added_ms,
        record.leader_epoch,
        None,
        None,
        None,
        None,
        None,
        None,
        is_ongoing and cause != "first_retained",
        tuple((name, added_ms) for name in listed(record)),
    )
    return transaction if is_ongoing else prepared(transaction, record, cause, version)


def prepared(transaction: Transaction, record: Record, cause: str, version: int) -> Transaction:
    """The transaction after Prepare*."""
    assert record.state in PREPARE
    outcome = 1 if record.state == PREPARE_COMMIT else 0
    is_again = transaction.outcome == outcome
    added = transaction.added
    if len(added) != len(listed(record)):
        # What the decision does not list was an attempt whose append failed.
        decided = listed_set(record)
        added = tuple(one for one in added if one[0] in decided)
    return transaction._replace(
        state=PREPARE_COMMIT if outcome else PREPARE_ABORT,
        outcome=outcome,
        prepare_epoch=record.producer_epoch,
        cause=transaction.cause if is_again else (None if cause == "first_retained" else cause),
        prepare_offset=record.offset,
        prepare_ms=transaction.prepare_ms if is_again else record.append_ms,
        prepare_leader_epoch=record.leader_epoch,
        transaction_version=max(version, transaction.transaction_version),
        added=added,
    )


def not_prepared(transaction: Transaction) -> Transaction:
    """The transaction before a Prepare* whose append failed."""
    return transaction._replace(
        state=ONGOING,
        outcome=None,
        cause=None,
        prepare_epoch=None,
        prepare_offset=None,
        prepare_ms=None,
        prepare_leader_epoch=None,
    )


def completed(transaction: Transaction, record: Record) -> Transaction:
    """The transaction after Complete*."""
    assert record.state is not None
    return transaction._replace(
        state=record.state,
        complete_offset=record.offset,
        complete_ms=record.append_ms,
        complete_leader_epoch=record.leader_epoch,
    )


def not_completed(transaction: Transaction, before: Record) -> Transaction:
    """The transaction before a Complete* whose append failed; `before` is the record that counts instead."""
    return transaction._replace(
        state=before.state or 0,
        complete_offset=None,
        complete_ms=None,
        complete_leader_epoch=None,
    )
