"""Message sets of magic 0 and 1, as brokers before 0.11 wrote them.

Source: `LegacyRecord`, `AbstractLegacyRecordBatch`. They carry no producer, so they matter only as
part of an older segment. A compressed entry holds a message set; its own offset is that of the
last message inside, whose offsets are absolute in magic 0 and relative in magic 1.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from typing import NamedTuple

from pipeline.wire.batch import CODEC_LZ4, CODEC_MASK, CODEC_NONE, NO_TIMESTAMP, TIMESTAMP_TYPE_MASK
from pipeline.wire.codecs import decompress
from pipeline.wire.cursor import Cursor
from pipeline.wire.errors import WireError
from pipeline.wire.header import LEGACY_CRC_COVERS_FROM, LEGACY_MIN_LENGTH
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

_CRC = struct.Struct(">I")
_LZ4_FLAGS_AT = 4
_LZ4_HAS_SIZE = 0x08


class Message(NamedTuple):
    """One message; timestamp_ms is -1 in magic 0."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class _Entry(NamedTuple):
    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def crc_ok(entry: bytes) -> bool:
    """Whether the stored CRC-32 is that of the bytes behind it."""
    stored: int = _CRC.unpack_from(entry, LEGACY_CRC_COVERS_FROM - _CRC.size)[0]
    return zlib.crc32(entry[LEGACY_CRC_COVERS_FROM:]) == stored


def header(entry: bytes) -> tuple[int, int, int, int, int]:
    """Read (offset, crc, magic, attributes, timestamp_ms) of one whole entry.

    Raises:
        WireError: not one entry.
    """
    return _entry(Cursor(entry))[:5]


def messages(entry: bytes, limits: Limits = DEFAULT_LIMITS) -> list[Message]:
    """Decode one entry: a message, or the messages inside a compressed one.

    Raises:
        WireError: `bad_record`, `codec` or `too_large`.
    """
    cursor = Cursor(entry)
    outer = _entry(cursor)
    cursor.end()
    codec = outer.attributes & CODEC_MASK
    if codec == CODEC_NONE:
        return [Message(outer.offset, outer.timestamp_ms, outer.key, outer.value)]
    if outer.value is None:
        raise WireError("compressed entry without a value")
    value = outer.value
    if codec == CODEC_LZ4 and outer.magic == 0:
        value = _with_lz4_header_checksum(value)
    inner = _inner_entries(decompress(codec, value, limits), outer.magic, limits)
    if not inner:
        raise WireError("compressed entry without messages")
    shift = outer.offset - inner[-1].offset if outer.magic == 1 else 0
    append_time = outer.magic == 1 and outer.attributes & TIMESTAMP_TYPE_MASK
    found = [
        Message(
            message.offset + shift,
            outer.timestamp_ms if append_time else message.timestamp_ms,
            message.key,
            message.value,
        )
        for message in inner
    ]
    offsets = [message.offset for message in found]
    if offsets[0] < 0 or offsets[-1] != outer.offset:
        raise WireError("offsets inside a compressed entry do not lead to its own")
    if any(later <= earlier for earlier, later in itertools.pairwise(offsets)):
        raise WireError("offsets inside a compressed entry do not ascend")
    return found


def _inner_entries(data: bytes, magic: int, limits: Limits) -> list[_Entry]:
    cursor = Cursor(data)
    inner: list[_Entry] = []
    while cursor.remaining:
        entry = _entry(cursor)
        if entry.magic != magic or entry.attributes & CODEC_MASK != CODEC_NONE:
            raise WireError("compressed entry inside a compressed one")
        if len(inner) >= limits.max_records_per_batch:
            raise WireError("too many messages", "too_large")
        inner.append(entry)
    return inner


def _entry(cursor: Cursor) -> _Entry:
    offset = cursor.int64()
    size = cursor.int32()
    if size < LEGACY_MIN_LENGTH or size > cursor.remaining:
        raise WireError("message of an impossible size")
    body = Cursor(cursor.take(size))
    crc = body.int32() & 0xFFFFFFFF
    magic, attributes = body.int8(), body.int8() & 0xFF
    if magic not in (0, 1):
        raise WireError("not a message of magic 0 or 1")
    timestamp_ms = body.int64() if magic == 1 else NO_TIMESTAMP
    key, value = _nullable(body), _nullable(body)
    body.end()
    return _Entry(offset, crc, magic, attributes, timestamp_ms, key, value)


def _nullable(cursor: Cursor) -> bytes | None:
    size = cursor.int32()
    return None if size == -1 else cursor.take(size)


def _with_lz4_header_checksum(frame: bytes) -> bytes:
    """Put the frame's header checksum right.

    With magic 0 Kafka computed it over the frame's magic number too (KAFKA-3160), and decoders
    refuse that.
    """
    if len(frame) <= _LZ4_FLAGS_AT:
        return frame
    flags = frame[_LZ4_FLAGS_AT]
    end = _LZ4_FLAGS_AT + 2 + (8 if flags & _LZ4_HAS_SIZE else 0)
    checksum = _xxh32(frame[_LZ4_FLAGS_AT:end]) >> 8 & 0xFF
    return frame[:end] + bytes([checksum]) + frame[end + 1 :]


def _xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes."""
    value = (0x165667B1 + len(data)) & 0xFFFFFFFF
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = (value + word * 0xC2B2AE3D) & 0xFFFFFFFF
        value = ((value << 17 | value >> 15) & 0xFFFFFFFF) * 0x27D4EB2F & 0xFFFFFFFF
    for byte in data[whole:]:
        value = (value + byte * 0x165667B1) & 0xFFFFFFFF
        value = ((value << 11 | value >> 21) & 0xFFFFFFFF) * 0x9E3779B1 & 0xFFFFFFFF
    for shift, factor in ((15, 0x85EBCA77), (13, 0xC2B2AE3D), (16, 1)):
        value = (value ^ value >> shift) * factor & 0xFFFFFFFF
    return value
