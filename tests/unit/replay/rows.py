"""Decoded batches and offset commits with defaults, for replay without bytes."""

from __future__ import annotations

from pipeline.replay.offsets import CommitRecord, MarkerRecord
from pipeline.wire.batch import NO_SEQUENCE, Batch, increment_sequence

ABORT, COMMIT = 0, 1
NOW_MS = 1_795_000_000_000


def data(
    offset: int,
    sequence: int = 0,
    *,
    records: int = 1,
    producer_id: int = 1,
    epoch: int = 0,
    transactional: bool = True,
    time_ms: int = NOW_MS,
    leader_epoch: int = 0,
    log_append_time: bool = False,
    kept: int | None = None,
) -> Batch:
    """A data batch of `records` offsets, of which the cleaner left `kept` records (None: all)."""
    last = sequence if sequence == NO_SEQUENCE else increment_sequence(sequence, records - 1)
    return Batch(
        position=0, size_bytes=70, base_offset=offset, last_offset=offset + records - 1,
        partition_leader_epoch=leader_epoch, magic=2, crc=0, attributes=0, codec=0,
        timestamp_type=int(log_append_time), is_transactional=transactional, is_control=False,
        delete_horizon_ms=None, base_timestamp_ms=time_ms, max_timestamp_ms=time_ms,
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, last_sequence=last,
        records_count=records if kept is None else kept, control_type=None, coordinator_epoch=None,
    )  # fmt: skip


def marker(
    offset: int,
    outcome: int | None = COMMIT,
    *,
    producer_id: int = 1,
    epoch: int = 0,
    coordinator_epoch: int | None = 0,
    time_ms: int = NOW_MS,
    leader_epoch: int = 0,
) -> Batch:
    """A marker; outcome None is the empty control batch that the cleaner leaves."""
    is_empty = outcome is None
    return data(
        offset, NO_SEQUENCE, producer_id=producer_id, epoch=epoch, time_ms=time_ms,
        leader_epoch=leader_epoch, kept=0 if is_empty else 1,
    )._replace(
        size_bytes=61 if is_empty else 78, is_control=True, control_type=outcome,
        coordinator_epoch=None if is_empty else coordinator_epoch,
    )  # fmt: skip


def commit(
    record_offset: int,
    committed: int | None,
    *,
    producer_id: int | None = None,
    partition: int = 0,
    group_id: str = "group",
    requested_ms: int = NOW_MS,
    append_ms: int = NOW_MS,
    leader_epoch: int = 0,
) -> CommitRecord:
    """An offset commit, transactional when it has a producer id; None committed is a tombstone."""
    return CommitRecord(
        record_offset, group_id, "topic", partition, committed,
        None if committed is None else requested_ms, append_ms, leader_epoch,
        producer_id is not None, -1 if producer_id is None else producer_id,
        -1 if producer_id is None else 0,
    )  # fmt: skip


def end(
    offset: int,
    outcome: int | None = COMMIT,
    *,
    producer_id: int = 1,
    time_ms: int = NOW_MS,
    leader_epoch: int = 0,
) -> MarkerRecord:
    """A marker of `__consumer_offsets`."""
    return MarkerRecord(offset, producer_id, outcome, time_ms, leader_epoch)
