"""Records inside a batch.

Source: `DefaultRecord`, `ControlRecordType`, `EndTransactionMarker`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.wire import legacy
from pipeline.wire.batch import (
    CODEC_MASK,
    CONTROL_ABORT,
    CONTROL_COMMIT,
    LOG_APPEND_TIME,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    increment_sequence,
)
from pipeline.wire.codecs import decompress
from pipeline.wire.cursor import read_varint, read_varlong
from pipeline.wire.errors import WireError
from pipeline.wire.header import HEADER, LOG_OVERHEAD, MAGIC_AT, MAGIC_END, Header
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

MIN_RECORD_BYTES = 7
_CONTROL_KEY = struct.Struct(">hh")  # version, type
_END_TXN_VALUE = struct.Struct(">hi")  # version, coordinatorEpoch


class Record(NamedTuple):
    """One record.

    Attributes:
        offset: its offset.
        timestamp_ms: CreateTime, or the batch's append time.
        sequence: -1 when the batch has none.
        key: None for null, which differs from empty.
        value: None for null.
        header_count: number of headers; their content is user data and is passed over.
    """

    offset: int
    timestamp_ms: int
    sequence: int
    key: bytes | None
    value: bytes | None
    header_count: int


def records(batch: bytes, limits: Limits = DEFAULT_LIMITS) -> list[Record]:
    """Decode all records of one batch or legacy message set entry, whose checksum is right.

    Raises:
        WireError: `bad_record`, `codec` or `too_large`.
    """
    return list(iterate_records(batch, limits))


def iterate_records(batch: bytes, limits: Limits = DEFAULT_LIMITS) -> Iterator[Record]:
    """Decode the records of one batch one by one.

    Raises:
        WireError: as `records`, at the latest when the last record was taken.
    """
    if len(batch) < MAGIC_END:
        raise WireError("batch shorter than its header")
    if batch[MAGIC_AT] in (0, 1):
        for message in legacy.messages(batch, limits):
            yield Record(
                message.offset, message.timestamp_ms, NO_SEQUENCE, message.key, message.value, 0
            )
        return
    yield from _records(*opened(batch, limits))


def opened(batch: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[Header, bytes]:
    """Header and decompressed records of a batch of message format 2.

    Raises:
        WireError: `bad_record`, `codec` or `too_large`.
    """
    if len(batch) < HEADER.size:
        raise WireError("batch shorter than its header")
    header = Header._make(HEADER.unpack_from(batch))
    if header.magic != 2 or header.batch_length != len(batch) - LOG_OVERHEAD:
        raise WireError("not one whole batch of magic 2")
    if header.records_count > limits.max_records_per_batch:
        raise WireError(f"{header.records_count} records", "too_large")
    payload = decompress(header.attributes & CODEC_MASK, batch[HEADER.size :], limits)
    if header.records_count * MIN_RECORD_BYTES > len(payload) or header.records_count < 0:
        raise WireError(f"{header.records_count} records announced in {len(payload)} bytes")
    return header, payload


def _records(header: Header, payload: bytes) -> Iterator[Record]:
    append_time = header.attributes & TIMESTAMP_TYPE_MASK == LOG_APPEND_TIME << 3
    at = 0
    last_delta = -1
    for _ in range(header.records_count):
        length, at = read_varint(payload, at)
        end = at + length
        if length < 0 or end > len(payload):
            raise WireError("record longer than its batch")
        timestamp_delta, at = read_varlong(payload, at + 1)
        delta, at = read_varint(payload, at)
        if not last_delta < delta <= header.last_offset_delta:
            raise WireError("record offsets out of order")
        last_delta = delta
        key, at = _nullable_bytes(payload, at, end)
        value, at = _nullable_bytes(payload, at, end)
        header_count, at = _skip_headers(payload, at, end)
        if at != end:
            raise WireError("record of another length than it says")
        sequence = header.base_sequence
        yield Record(
            header.base_offset + delta,
            header.max_timestamp_ms
            if append_time
            else _int64(header.base_timestamp_ms + timestamp_delta),
            sequence if sequence == NO_SEQUENCE else increment_sequence(sequence, delta),
            key,
            value,
            header_count,
        )
    if at != len(payload):
        raise WireError("bytes left behind the last record")


def _int64(value: int) -> int:
    """Wrap as Java's long does."""
    return (value + 2**63) % 2**64 - 2**63


def _nullable_bytes(payload: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = read_varint(payload, at)
    if size == -1:
        return None, at
    if size < 0 or at + size > end:
        raise WireError("key or value longer than its record")
    return payload[at : at + size], at + size


def _skip_headers(payload: bytes, at: int, end: int) -> tuple[int, int]:
    count, at = read_varint(payload, at)
    if count < 0 or count * 2 > end - at:
        raise WireError("more headers than bytes")
    for _ in range(count):
        key, at = _nullable_bytes(payload, at, end)
        if key is None:
            raise WireError("header without a key")
        _, at = _nullable_bytes(payload, at, end)
    return count, at


def control_marker(batch: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[int | None, int | None]:
    """Read type and coordinator epoch of a control batch's first record.

    A newer version of key or value is read as version 0, as brokers do.

    Returns:
        (control type, coordinator epoch); both None when compaction left no record, the epoch
        None for types other than ABORT and COMMIT.

    Raises:
        WireError: `bad_record`.
    """
    for first in iterate_records(batch, limits):
        if first.key is None or len(first.key) < _CONTROL_KEY.size:
            raise WireError("control record without a type")
        version, control_type = _CONTROL_KEY.unpack_from(first.key)
        if version < 0 or control_type < 0:
            raise WireError("control record of a negative version or type")
        if control_type not in (CONTROL_ABORT, CONTROL_COMMIT):
            return control_type, None
        if first.value is None or len(first.value) < _END_TXN_VALUE.size:
            raise WireError("marker without a coordinator epoch")
        value_version, coordinator_epoch = _END_TXN_VALUE.unpack_from(first.value)
        if value_version < 0:
            raise WireError("marker of a negative version")
        return control_type, coordinator_epoch
    return None, None
