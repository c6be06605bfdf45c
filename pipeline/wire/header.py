"""Layout of a batch header, once for `struct` and once for numpy.

Source: `DefaultRecordBatch` (magic 2). The checksum covers everything from the attributes to the
end of the batch: base offset, length and leader epoch are not protected.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

_FIELDS = (
    ("base_offset", "q", ">i8"),
    ("batch_length", "i", ">i4"),  # bytes behind this field
    ("partition_leader_epoch", "i", ">i4"),
    ("magic", "b", "i1"),
    ("crc", "I", ">u4"),
    ("attributes", "h", ">i2"),
    ("last_offset_delta", "i", ">i4"),
    ("base_timestamp_ms", "q", ">i8"),
    ("max_timestamp_ms", "q", ">i8"),
    ("producer_id", "q", ">i8"),
    ("producer_epoch", "h", ">i2"),
    ("base_sequence", "i", ">i4"),
    ("records_count", "i", ">i4"),
)


class Header(NamedTuple):
    """The 61 bytes before the records of a magic 2 batch, as stored."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int


def _end_of(field: str) -> int:
    """Bytes up to and including a field."""
    names = [name for name, _, _ in _FIELDS]
    return struct.calcsize(">" + "".join(code for _, code, _ in _FIELDS[: names.index(field) + 1]))


HEADER = struct.Struct(">" + "".join(code for _, code, _ in _FIELDS))
HEADER_DTYPE = np.dtype([(name, code) for name, _, code in _FIELDS])
assert HEADER_DTYPE.itemsize == HEADER.size

LENGTH_AT = _end_of("base_offset")
LOG_OVERHEAD = _end_of("batch_length")
MAGIC_AT = _end_of("partition_leader_epoch")
CRC_COVERS_FROM = _end_of("crc")
MAGIC_END = MAGIC_AT + 1
MIN_LENGTH = HEADER.size - LOG_OVERHEAD

LENGTH = struct.Struct(">i")

# The records of a magic 2 batch with one EndTxn marker as brokers write it (17 bytes).
MARKER_DTYPE = np.dtype(
    [
        ("prefix", "S5"),  # length 16, attributes 0, timestamp delta 0, offset delta 0, key size 4
        ("key_version", ">i2"),
        ("control_type", ">i2"),
        ("value_size", "u1"),
        ("value_version", ">i2"),
        ("coordinator_epoch", ">i4"),
        ("header_count", "u1"),
    ]
)
MARKER_PREFIX = b"\x20\x00\x00\x00\x08"
MARKER_VALUE_SIZE = 0x0C  # zig-zag of 6
MARKER_BATCH_SIZE = HEADER.size + MARKER_DTYPE.itemsize

# Legacy entries: offset, size, then crc (CRC-32 of everything behind it), magic, attributes.
LEGACY_CRC_AT = LOG_OVERHEAD
LEGACY_CRC_COVERS_FROM = LEGACY_CRC_AT + 4
LEGACY_MIN_LENGTH = 4 + 1 + 1 + 4 + 4  # crc, magic, attributes, key size, value size
