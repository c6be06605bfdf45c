"""What a broker holds of one producer in one partition.

A batch is appended as a follower does (`AppendOrigin.REPLICATION`): nothing is refused for its epoch or sequence, so a
bad leader's log is copied. What a leader would have answered is told beside it.

Source: `ProducerStateEntry`, `ProducerAppendInfo`, `ProducerStateManager`; KIP-98, KIP-360.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.wire.batch import (
    CONTROL_ABORT,
    CONTROL_COMMIT,
    MAX_SEQUENCE,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Batch,
)

NO_EPOCH = -1
NO_OFFSET = -1
BATCHES_TO_RETAIN = 5
"""Last batches that a broker compares a retry with (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`)."""
WRAP = MAX_SEQUENCE + 1
"""Sequences count modulo 2^31 (`DefaultRecordBatch.incrementSequence`)."""

INVALID_PRODUCER_EPOCH = "InvalidProducerEpoch"
OUT_OF_ORDER_SEQUENCE = "OutOfOrderSequence"
DUPLICATE_BATCH = "DuplicateBatch"
INVALID_TXN_STATE = "InvalidTxnState"
COORDINATOR_FENCED = "TransactionCoordinatorFenced"


class KeptBatch(NamedTuple):
    """One of a producer's last batches (`BatchMetadata`); first sequence = last - delta, wrapped."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        return decrement_sequence(self.last_sequence, self.offset_delta)


class BrokerEntry(NamedTuple):
    """What a broker holds of one producer (`ProducerStateEntry`); -1 is none throughout.

    Attributes:
        producer_epoch: of the last batch or marker, even when it went down.
        coordinator_epoch: of the last marker.
        last_timestamp_ms: largest time of the last data batch, or the time of the last marker.
        current_txn_first_offset: first offset of the open transaction.
        batches: at most five, oldest first; emptied when the epoch changes.
    """

    producer_epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp_ms: int = NO_TIMESTAMP
    current_txn_first_offset: int = NO_OFFSET
    batches: tuple[KeptBatch, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class CompletedTxn(NamedTuple):
    """A transaction with data that a marker ended (`CompletedTxn`); last_offset is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


def append(
    entry: BrokerEntry, batch: Batch, *, is_offsets: bool = False
) -> tuple[BrokerEntry, CompletedTxn | None, str | None]:
    """Appends one batch as a follower does (`ProducerAppendInfo.append`).

    Returns:
        The entry after it; the transaction with data that it ended; and the error with which a leader would have
        refused it. Even a follower takes no plain batch inside a transaction: then the entry stays as it was.
    """
    if batch.is_control:
        return _append_marker(entry, batch)
    refused = _refusal(entry, batch, is_offsets)
    is_open = entry.current_txn_first_offset != NO_OFFSET
    if is_open and not batch.is_transactional:
        return entry, None, refused or INVALID_TXN_STATE
    kept = KeptBatch(
        batch.last_sequence,
        batch.last_offset,
        batch.last_offset - batch.base_offset,
        batch.max_timestamp_ms,
    )
    earlier = entry.batches if batch.producer_epoch == entry.producer_epoch else ()
    first_offset = entry.current_txn_first_offset if is_open else NO_OFFSET
    if batch.is_transactional and not is_open:
        first_offset = batch.base_offset
    after = BrokerEntry(
        batch.producer_epoch,
        entry.coordinator_epoch,
        batch.max_timestamp_ms,
        first_offset,
        (*earlier[-BATCHES_TO_RETAIN + 1 :], kept),
    )
    return after, None, refused


def _append_marker(
    entry: BrokerEntry, batch: Batch
) -> tuple[BrokerEntry, CompletedTxn | None, str | None]:
    """`appendEndTxnMarker`; a control batch that is no ABORT or COMMIT, or was emptied, changes nothing."""
    if batch.control_type not in (CONTROL_ABORT, CONTROL_COMMIT) or batch.coordinator_epoch is None:
        return entry, None, None
    refused = None
    if batch.producer_epoch < entry.producer_epoch:
        refused = INVALID_PRODUCER_EPOCH
    elif batch.coordinator_epoch < entry.coordinator_epoch:
        refused = COORDINATOR_FENCED
    completed = None
    if entry.current_txn_first_offset != NO_OFFSET:
        is_aborted = batch.control_type == CONTROL_ABORT
        completed = CompletedTxn(
            batch.producer_id, entry.current_txn_first_offset, batch.base_offset, is_aborted
        )
    after = BrokerEntry(
        batch.producer_epoch,
        batch.coordinator_epoch,
        batch.max_timestamp_ms,
        NO_OFFSET,
        entry.batches if batch.producer_epoch == entry.producer_epoch else (),
    )
    return after, completed, refused


def _refusal(entry: BrokerEntry, batch: Batch, is_offsets: bool) -> str | None:
    """`checkProducerEpoch` and `checkSequence` as for a client; the group coordinator's batches have no sequence."""
    if batch.producer_epoch < entry.producer_epoch:
        return INVALID_PRODUCER_EPOCH
    if is_offsets or entry.producer_epoch == NO_EPOCH:
        return None
    if batch.producer_epoch != entry.producer_epoch:
        return OUT_OF_ORDER_SEQUENCE if batch.base_sequence != 0 else None
    wanted = (batch.base_sequence, batch.last_sequence)
    if any((kept.first_sequence, kept.last_sequence) == wanted for kept in entry.batches):
        return DUPLICATE_BATCH
    is_wrap = batch.base_sequence == 0 and entry.last_sequence == MAX_SEQUENCE
    is_next = batch.base_sequence == entry.last_sequence + 1
    return None if is_next or is_wrap else OUT_OF_ORDER_SEQUENCE


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Subtracts as `DefaultRecordBatch.decrementSequence` does: 2147483647 comes before 0."""
    return sequence - decrement if sequence >= decrement else WRAP - (decrement - sequence)
