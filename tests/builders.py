"""Bytes as Kafka writes them, with defaults: record batches, markers, coordinator records.

Only for tests and benchmarks: everything here encodes, nothing decodes, so that the decoders
of the project are never checked against themselves. Layouts: `DefaultRecordBatch`,
`EndTransactionMarker`, `TransactionLogKey`/`TransactionLogValue`, `OffsetCommitKey`/
`OffsetCommitValue` of Apache Kafka. All integers are big-endian; times are ms since the epoch.
The files of a log directory and their sidecars are in `tests/log_layout.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import google_crc32c
import pyarrow as pa

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
ABORT, COMMIT = 0, 1
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD = range(7)
NOW_MS = 1_795_000_000_000
CRC_START = 21
HEADER_BYTES = 61
_AFTER_CRC = struct.Struct(">hiqqqhii")
_BEFORE_CRC = struct.Struct(">qiibI")
_CODEC_NAMES = {GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}


class Rec(NamedTuple):
    """One record to encode; `offset_delta` None counts on from the record before."""

    key: bytes | None = None
    value: bytes | None = b"v"
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset_delta: int | None = None


def uvarint(value: int) -> bytes:
    """Return `value` (not negative) in base 128, least significant group first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Return `value` zig-zag encoded in base 128 (Kafka's varint and varlong)."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def string(text: str) -> bytes:
    """Return a classic Kafka string: int16 length and UTF-8."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def compact_string(text: str) -> bytes:
    """Return a compact Kafka string: uvarint(length + 1) and UTF-8."""
    data = text.encode()
    return uvarint(len(data) + 1) + data


def tags(fields: Mapping[int, bytes]) -> bytes:
    """Return a tagged-field section, tags in ascending order."""
    parts = [uvarint(tag) + uvarint(len(data)) + data for tag, data in sorted(fields.items())]
    return uvarint(len(parts)) + b"".join(parts)


def record(rec: Rec, offset_delta: int, timestamp_delta: int) -> bytes:
    """Return one v2 record with its length prefix."""
    headers = b"".join(
        varint(len(name.encode())) + name.encode() + _sized(value) for name, value in rec.headers
    )
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + _sized(rec.key)
    body += _sized(rec.value) + varint(len(rec.headers)) + headers
    return varint(len(body)) + body


def compress(codec: int, data: bytes) -> bytes:
    """Compress a record section as Kafka's Java client does (snappy in xerial blocks)."""
    if codec == NONE:
        return data
    if codec == SNAPPY:
        out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
        for start in range(0, len(data), 32 * 1024):
            block = pa.compress(data[start : start + 32 * 1024], codec="snappy", asbytes=True)
            out += struct.pack(">i", len(block)) + block
        return out
    return pa.compress(data, codec=_CODEC_NAMES[codec], asbytes=True)


def with_crc(data: bytes | bytearray) -> bytes:
    """Return the bytes of one batch with its CRC-32C put right."""
    crc = google_crc32c.value(bytes(data[CRC_START:]))
    return bytes(data[:17]) + struct.pack(">I", crc) + bytes(data[CRC_START:])


def batch(
    base_offset: int = 0,
    records: int | Sequence[Rec] = 1,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    codec: int = NONE,
    timestamp_ms: int = NOW_MS,
    max_timestamp_ms: int | None = None,
    partition_leader_epoch: int = 0,
    log_append_time: bool = False,
    delete_horizon_ms: int | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """Return one record batch (magic 2).

    Args:
        base_offset: offset of the first record.
        records: the records, or how many default ones; 0 with `last_offset_delta` gives the
            empty batch that the cleaner leaves.
        timestamp_ms: time of every record that brings none.
        max_timestamp_ms: None takes the greatest record time (`timestamp_ms` when empty).
        delete_horizon_ms: sets attribute bit 6 and takes the place of the base timestamp.
        last_offset_delta: None takes the last record's offset delta.
    """
    recs = [Rec() for _ in range(records)] if isinstance(records, int) else list(records)
    times = [timestamp_ms if r.timestamp_ms is None else r.timestamp_ms for r in recs]
    base_time = times[0] if times else timestamp_ms
    if delete_horizon_ms is not None:
        base_time = delete_horizon_ms
    parts, delta = [], -1
    for rec, time in zip(recs, times, strict=True):
        delta = delta + 1 if rec.offset_delta is None else rec.offset_delta
        parts.append(record(rec, delta, time - base_time))
    if last_offset_delta is None:
        last_offset_delta = max(delta, 0)
    attributes = codec | log_append_time << 3 | transactional << 4 | control << 5
    attributes |= (delete_horizon_ms is not None) << 6
    if max_timestamp_ms is None:
        max_timestamp_ms = max(times, default=timestamp_ms)
    body = _AFTER_CRC.pack(
        attributes, last_offset_delta, base_time, max_timestamp_ms,
        producer_id, producer_epoch, base_sequence, len(recs),
    ) + compress(codec, b"".join(parts))  # fmt: skip
    head = _BEFORE_CRC.pack(
        base_offset, len(body) + 9, partition_leader_epoch, 2, google_crc32c.value(body)
    )
    return head + body


def marker(
    base_offset: int = 0,
    outcome: int = COMMIT,
    *,
    producer_id: int = 1,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp_ms: int = NOW_MS,
    partition_leader_epoch: int = 0,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """Return a transaction marker: a control batch of one EndTxn record (78 bytes)."""
    rec = Rec(struct.pack(">hh", 0, outcome), struct.pack(">hi", 0, coordinator_epoch))
    return batch(
        base_offset, [rec], producer_id=producer_id, producer_epoch=producer_epoch,
        transactional=True, control=True, timestamp_ms=timestamp_ms,
        partition_leader_epoch=partition_leader_epoch, delete_horizon_ms=delete_horizon_ms,
    )  # fmt: skip


def _grouped(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def txn_key(transactional_id: str) -> bytes:
    """Return a `TransactionLogKey` (version 0)."""
    return struct.pack(">h", 0) + string(transactional_id)


def txn_value(
    state: int = EMPTY,
    *,
    producer_id: int = 1,
    producer_epoch: int = 0,
    timeout_ms: int = 60_000,
    partitions: Iterable[tuple[str, int]] | None = (),
    last_update_ms: int = NOW_MS,
    start_ms: int = -1,
    version: int = 0,
    previous_producer_id: int | None = None,
    next_producer_id: int | None = None,
    client_transaction_version: int | None = None,
    next_producer_epoch: int | None = None,
    unknown_tags: Mapping[int, bytes] | None = None,
) -> bytes:
    """Return a `TransactionLogValue` v0 or v1; a tag that is None is not written."""
    out = struct.pack(">hqhib", version, producer_id, producer_epoch, timeout_ms, state)
    grouped = None if partitions is None else _grouped(partitions)
    times = struct.pack(">qq", last_update_ms, start_ms)
    if version == 0:
        out += struct.pack(">i", -1 if grouped is None else len(grouped))
        for topic, ids in (grouped or {}).items():
            out += string(topic) + struct.pack(f">i{len(ids)}i", len(ids), *ids)
        return out + times
    out += uvarint(0 if grouped is None else len(grouped) + 1)
    for topic, ids in (grouped or {}).items():
        out += compact_string(topic) + uvarint(len(ids) + 1)
        out += struct.pack(f">{len(ids)}i", *ids) + tags({})
    named = {
        0: (">q", previous_producer_id), 1: (">q", next_producer_id),
        2: (">h", client_transaction_version), 3: (">h", next_producer_epoch),
    }  # fmt: skip
    fields = {
        t: struct.pack(form, value) for t, (form, value) in named.items() if value is not None
    }
    return out + times + tags({**fields, **(unknown_tags or {})})


def txn_entry(
    base_offset: int,
    transactional_id: str,
    value: bytes | None,
    *,
    timestamp_ms: int = NOW_MS,
    partition_leader_epoch: int = 0,
) -> bytes:
    """Return one `__transaction_state` batch: one record, no producer id; None is a tombstone."""
    return batch(
        base_offset, [Rec(txn_key(transactional_id), value)], timestamp_ms=timestamp_ms,
        partition_leader_epoch=partition_leader_epoch,
    )  # fmt: skip


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return an `OffsetCommitKey` (record type 1)."""
    return struct.pack(">h", 1) + string(group_id) + string(topic) + struct.pack(">i", partition)


def offset_value(
    offset: int,
    *,
    version: int = 3,
    leader_epoch: int = -1,
    metadata: str = "",
    commit_ms: int = NOW_MS,
    expire_ms: int = -1,
    topic_id: bytes | None = None,
) -> bytes:
    """Return an `OffsetCommitValue` v0 to v4."""
    out = struct.pack(">hq", version, offset)
    if version >= 3:
        out += struct.pack(">i", leader_epoch)
    out += (compact_string if version >= 4 else string)(metadata) + struct.pack(">q", commit_ms)
    if version == 1:
        out += struct.pack(">q", expire_ms)
    if version >= 4:
        out += tags({} if topic_id is None else {0: topic_id})
    return out


def group_key(group_id: str, record_type: int = 2, second: str | None = None) -> bytes:
    """Return a group record's key: type, group id and, where the type has one, a second text."""
    return struct.pack(">h", record_type) + string(group_id) + (string(second) if second else b"")


def legacy_message(
    offset: int,
    value: bytes = b"v",
    *,
    magic: int = 1,
    key: bytes | None = None,
    timestamp_ms: int = NOW_MS,
) -> bytes:
    """Return one uncompressed message of format 0 or 1 (`LegacyRecord`), CRC-32 included."""
    import zlib

    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp_ms) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body
