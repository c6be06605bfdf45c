"""What a broker would write to a `.snapshot`."""

from __future__ import annotations

from pipeline.replay.broker_entry import (
    NO_OFFSET,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BrokerEntry,
    KeptBatch,
)
from pipeline.wire.producer_snapshot import SnapshotEntry


def snapshot_entry(producer_id: int, entry: BrokerEntry) -> SnapshotEntry:
    """The producer as brokers since 2.5 write it to a `.snapshot` (`ProducerStateManager.writeSnapshot`)."""
    last = (
        entry.batches[-1] if entry.batches else KeptBatch(NO_SEQUENCE, NO_OFFSET, 0, NO_TIMESTAMP)
    )
    return SnapshotEntry(
        producer_id,
        entry.producer_epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp_ms,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )
