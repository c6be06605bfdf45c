"""States of the transaction coordinator and the records that tell them.

Sources: Kafka's `TransactionState` and `TransactionMetadata`, KIP-98, KIP-890.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.codes import STATE_NAMES

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, FENCE = range(
    8
)
COMPLETE = (COMPLETE_COMMIT, COMPLETE_ABORT)
PREPARE = (PREPARE_COMMIT, PREPARE_ABORT)
MAX_EPOCH = 32767

LEGAL_PREVIOUS = {
    EMPTY: (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    ONGOING: (ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    PREPARE_COMMIT: (ONGOING,),
    PREPARE_ABORT: (ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    COMPLETE_COMMIT: (PREPARE_COMMIT,),
    COMPLETE_ABORT: (PREPARE_ABORT,),
}
"""State -> states that may stand before it in the log (Kafka: `TransactionState.validPreviousStates`)."""


class Record(NamedTuple):
    """One `__transaction_state` record, as the replay needs it. Times in ms; null is None."""

    offset: int
    append_ms: int | None
    leader_epoch: int | None
    value_version: int | None
    state: int | None
    producer_id: int
    producer_epoch: int
    txn_timeout_ms: int
    partitions: str
    start_ms: int | None
    next_producer_id: int | None
    client_transaction_version: int | None


def listed(record: Record) -> list[str]:
    """Partitions that a record lists, topic and number divided by a null character, in its order."""
    return record.partitions.split("\x01") if record.partitions else []


def listed_set(record: Record) -> set[str]:
    """The same as a set."""
    return set(listed(record))


def state_name(state: int | None) -> str:
    """Kafka's name of a state; None is a tombstone."""
    return "tombstone" if state is None else STATE_NAMES.get(state, f"state {state}")
