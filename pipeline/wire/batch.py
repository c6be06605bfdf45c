"""What one batch header says, and what could not be read.

Source: `DefaultRecordBatch` (magic 2) and `AbstractLegacyRecordBatch` (magic 0 and 1).
"""

from __future__ import annotations

from typing import NamedTuple

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
MAX_SEQUENCE = 2**31 - 1

CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD = range(5)
CREATE_TIME, LOG_APPEND_TIME = range(2)
CONTROL_ABORT, CONTROL_COMMIT = range(2)

CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

REASONS = (
    "crc",  # checksum differs from the bytes
    "torn_tail",  # the file ends inside a batch
    "zero_tail",  # nothing but zeros up to the end (preallocated, or lost by a crash)
    "bad_length",  # a batch length that no batch can have, or that leads nowhere
    "bad_magic",  # an unknown message format
    "bad_record",  # header or records contradict themselves although the checksum is right
    "offset_regression",  # base offset at or below the end of an earlier batch
    "too_large",  # beyond a limit
    "codec",  # unknown or broken compression
    "bad_version",  # a sidecar of an unknown version
    "io",  # the file could not be read
    "foreign",  # not a file of Kafka
)


class Batch(NamedTuple):
    """One verified batch.

    Attributes:
        position: byte position in the file.
        size_bytes: whole size, the 12 bytes of offset and length included.
        base_offset: first offset (survives compaction).
        last_offset: last offset, inclusive (survives compaction).
        partition_leader_epoch: -1 when none; not covered by the checksum.
        magic: 0, 1 or 2.
        crc: stored checksum, unsigned.
        attributes: raw attribute bits.
        codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
        timestamp_type: 0 CreateTime, 1 LogAppendTime.
        is_transactional: bit 4.
        is_control: bit 5.
        delete_horizon_ms: set by the cleaner, stored in place of the base timestamp; -1 is None.
        base_timestamp_ms: as stored (equals delete_horizon_ms when that is set).
        max_timestamp_ms: as stored, -1 when none.
        producer_id: -1 when none.
        producer_epoch: -1 when none.
        base_sequence: -1 when none.
        last_sequence: base_sequence plus the last offset delta, wrapped as Kafka wraps; -1 if none.
        records_count: 0 in a batch that compaction emptied.
        control_type: 0 ABORT, 1 COMMIT, others as read; None when there is no control record.
        coordinator_epoch: of an ABORT or COMMIT marker, else None; -1 is None.
    """

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    codec: int
    timestamp_type: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    records_count: int
    control_type: int | None
    coordinator_epoch: int | None


class Damage(NamedTuple):
    """Bytes that were skipped.

    Attributes:
        position: first skipped byte.
        size_bytes: skipped bytes.
        reason: one of `REASONS`.
        detail: short text, never user data.
        next_offset_hint: base offset of the next readable batch, None when there is none.
    """

    position: int
    size_bytes: int
    reason: str
    detail: str
    next_offset_hint: int | None


def increment_sequence(sequence: int, increment: int) -> int:
    """Add as `DefaultRecordBatch.incrementSequence` does: 0 follows 2147483647."""
    if sequence > MAX_SEQUENCE - increment:
        return increment - (MAX_SEQUENCE - sequence) - 1
    return sequence + increment
