"""Records inside a batch; needed for control batches and the internal topics only.

Source: `DefaultRecord`, `LegacyRecord`.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.wire.batch import CODEC_MASK, CODEC_NONE, Batch
from pipeline.wire.codecs import decompress
from pipeline.wire.cursor import read_varint, read_varlong
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

HEADER_BYTES = 61


class Record(NamedTuple):
    """One record.

    Attributes:
        offset_delta: offset minus the batch's base offset.
        timestamp_delta: milliseconds after the batch's base timestamp.
        key: None when null.
        value: None when null.
        header_count: number of headers; their content is not kept.
    """

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    header_count: int


def records(
    data: bytes, attributes: int, count: int, limits: Limits = DEFAULT_LIMITS
) -> list[Record]:
    """Decode the records of one whole batch of magic 2.

    Args:
        data: The batch's bytes behind its header.
        attributes: The batch's attribute bits.
        count: Records that the header announces.
        limits: Bounds.

    Raises:
        WireError: Records that do not end where they say, or beyond a limit.
    """
    if count > limits.max_records_per_batch:
        raise WireError(f"{count} records announced", "too_large")
    codec = attributes & CODEC_MASK
    plain = data if codec == CODEC_NONE else decompress(codec, data, limits)
    found: list[Record] = []
    at = 0
    for _ in range(count):
        record, at = _record(plain, at)
        found.append(record)
    if at != len(plain):
        raise WireError(f"{len(plain) - at} bytes left over")
    return found


def _record(data: bytes, at: int) -> tuple[Record, int]:
    length, at = read_varint(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise WireError("record beyond its batch")
    at += 1
    timestamp_delta, at = read_varlong(data, at)
    offset_delta, at = read_varint(data, at)
    key, at = _sized(data, at, end)
    value, at = _sized(data, at, end)
    header_count, at = read_varint(data, at)
    if header_count < 0 or header_count > length:
        raise WireError("impossible number of headers")
    for _ in range(header_count):
        name, at = _sized(data, at, end)
        if name is None:
            raise WireError("header without a key")
        _, at = _sized(data, at, end)
    if at != end:
        raise WireError("record does not end where it said")
    return Record(offset_delta, timestamp_delta, key, value, header_count), at


def _sized(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size == -1:
        return None, at
    if size < 0 or at + size > end:
        raise WireError("field beyond its record")
    return data[at : at + size], at + size


def control(key: bytes | None, value: bytes | None) -> tuple[int | None, int | None]:
    """Type and coordinator epoch of a control record (`ControlRecordType`, `EndTransactionMarker`).

    Returns:
        (type, coordinator epoch); None where the record does not hold it.
    """
    if key is None or len(key) < 4:
        return None, None
    kind = int.from_bytes(key[2:4], "big", signed=True)
    if kind not in (0, 1) or value is None or len(value) < 6:
        return kind, None
    return kind, int.from_bytes(value[2:6], "big", signed=True)


def records_of(data: bytes, batch: Batch, limits: Limits = DEFAULT_LIMITS) -> list[Record]:
    """Decode the records of a batch given whole."""
    return records(data[HEADER_BYTES:], batch.attributes, batch.records_count, limits)
