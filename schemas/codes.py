"""Numbers that Kafka writes, with their names."""

from __future__ import annotations

from enum import IntEnum


class TransactionState(IntEnum):
    """Status of a transaction in `__transaction_state` (Kafka: `TransactionState`)."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


STATE_NAMES: dict[int, str] = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""Kafka's own spelling of each state; a tombstone has none."""


class ControlType(IntEnum):
    """Type of a control record (Kafka: `ControlRecordType`)."""

    ABORT = 0
    COMMIT = 1


TXN_TOPIC = "__transaction_state"
OFFSETS_TOPIC = "__consumer_offsets"
METADATA_TOPIC = "__cluster_metadata"
NO_SEQUENCE = -1
MAX_SEQUENCE = 2147483647
TWO_PHASE_TIMEOUT_MS = 2147483647
"""Timeout of two-phase-commit transactions (KIP-939): never late."""

GROUP_RECORDS = (2, 3, 11, 17)
"""Key types of a group's own records: classic, consumer, share, streams (Kafka: `CoordinatorRecordType`)."""
