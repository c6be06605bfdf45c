"""One batch at one position: verified, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import google_crc32c
import numpy as np

from pipeline.wire import legacy
from pipeline.wire.batch import (
    CODEC_MASK,
    CODEC_ZSTD,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Batch,
    increment_sequence,
)
from pipeline.wire.errors import WireError
from pipeline.wire.header import (
    CRC_COVERS_FROM,
    HEADER,
    LEGACY_MIN_LENGTH,
    LENGTH,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAGIC_END,
    MIN_LENGTH,
    Header,
)
from pipeline.wire.limits import Limits
from pipeline.wire.record import control_marker

ReadAt = Callable[[int, int], bytes]
MAX_OFFSET = 2**63 - 1
ATTRIBUTES_MASK = 0x7F
_VIEW_FROM_BYTES = 8192


class Flaw(NamedTuple):
    """Why there is no batch at a position.

    Attributes:
        reason: one of `batch.REASONS`.
        detail: short text.
        size_bytes: what the length field says when those bytes are in the file, else 0.
        is_crc_right: the bytes are as written, so the length can be trusted.
    """

    reason: str
    detail: str
    size_bytes: int = 0
    is_crc_right: bool = False


class Window:
    """The file by position, holding one piece of it.

    Attributes:
        size: bytes of the file; shrinks when it turns out to be shorter than announced.
    """

    def __init__(self, read_at: ReadAt, size: int, limits: Limits) -> None:
        self._read_at = read_at
        self._piece_bytes = limits.chunk_bytes
        self._piece = b""
        self._origin = 0
        self.size = size

    def get(self, position: int, length: int) -> bytes:
        """Give `length` bytes, fewer only where the file ends."""
        start = position - self._origin
        if start >= 0 and start + length <= len(self._piece):
            return self._piece[start : start + length]
        length = max(min(length, self.size - position), 0)
        if start < 0 or start + length > len(self._piece):
            wanted = max(min(max(length, self._piece_bytes), self.size - position), 0)
            self._piece = self._read_at(position, wanted) if wanted else b""
            self._origin = position
            if len(self._piece) < wanted:
                self.size = position + len(self._piece)
            start = 0
        return self._piece[start : start + length]


def examine(window: Window, position: int, limits: Limits) -> Batch | Flaw:
    """Verify the batch at a position."""
    head = window.get(position, HEADER.size)
    if len(head) < MAGIC_END:
        return Flaw("torn_tail", f"{len(head)} bytes")
    length = LENGTH.unpack_from(head, LENGTH_AT)[0]
    magic = head[MAGIC_AT]
    size = LOG_OVERHEAD + length
    rest = window.size - position
    if length < LEGACY_MIN_LENGTH or (magic == 2 and length < MIN_LENGTH):
        return Flaw("bad_length", f"length {length}")
    if size > max(rest, limits.max_batch_bytes):
        return Flaw("bad_length", f"length {length}, {rest} left")
    if size > rest:
        return Flaw("torn_tail", f"batch of {size} bytes, {rest} left")
    if magic > 2:
        return Flaw("bad_magic", f"magic {magic}", size)
    if size > limits.max_batch_bytes:
        return Flaw("too_large", f"batch of {size} bytes", size)
    data = window.get(position, size)
    if len(data) < size:
        return Flaw("torn_tail", f"batch of {size} bytes, {len(data)} left")
    if magic == 2:
        return decode(data, position, limits)
    return _decode_legacy(data, position, limits)


def header_error(header: Header) -> str | None:
    """Name what no broker writes, in a header whose checksum is right."""
    if header.last_offset_delta < 0 or header.base_offset > MAX_OFFSET - header.last_offset_delta:
        return f"last offset delta {header.last_offset_delta}"
    if not 0 <= header.records_count <= header.last_offset_delta + 1:
        return f"{header.records_count} records, last offset delta {header.last_offset_delta}"
    return None


def checksum(data: bytes) -> int:
    """CRC-32C of the covered part of a whole batch; large ones are not copied for it."""
    if len(data) < _VIEW_FROM_BYTES:
        return int(google_crc32c.value(data[CRC_COVERS_FROM:]))
    return int(google_crc32c.value(np.frombuffer(data, np.uint8)[CRC_COVERS_FROM:]))


def decode(data: bytes, position: int, limits: Limits) -> Batch | Flaw:
    """Verify one whole magic 2 batch and decode its header, and its marker if it has one."""
    header = Header._make(HEADER.unpack_from(data))
    size = len(data)
    if checksum(data) != header.crc:
        return Flaw("crc", "checksum differs", size)
    attributes = header.attributes
    codec = attributes & CODEC_MASK
    if codec > CODEC_ZSTD:
        return Flaw("codec", f"unknown compression {codec}", size, True)
    error = header_error(header)
    if error is not None:
        return Flaw("bad_record", error, size, True)
    is_control = bool(attributes & CONTROL_MASK)
    control_type = coordinator_epoch = None
    if is_control:
        try:
            control_type, coordinator_epoch = control_marker(data, limits)
        except WireError as problem:
            return Flaw(problem.reason, f"control batch: {problem}", size, True)
        if coordinator_epoch == -1:
            coordinator_epoch = None
    sequence = header.base_sequence
    has_horizon = bool(attributes & DELETE_HORIZON_MASK)
    return Batch(
        position,
        size,
        header.base_offset,
        header.base_offset + header.last_offset_delta,
        header.partition_leader_epoch,
        header.magic,
        header.crc,
        attributes,
        codec,
        (attributes & TIMESTAMP_TYPE_MASK) >> 3,
        bool(attributes & TRANSACTIONAL_MASK),
        is_control,
        header.base_timestamp_ms if has_horizon and header.base_timestamp_ms != -1 else None,
        header.base_timestamp_ms,
        header.max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        sequence,
        NO_SEQUENCE
        if sequence == NO_SEQUENCE
        else increment_sequence(sequence, header.last_offset_delta),
        header.records_count,
        control_type,
        coordinator_epoch,
    )


def _decode_legacy(data: bytes, position: int, limits: Limits) -> Batch | Flaw:
    if not legacy.crc_ok(data):
        return Flaw("crc", "checksum differs", len(data))
    try:
        offset, crc, magic, attributes, timestamp_ms = legacy.header(data)
        first, count = offset, 1
        if attributes & CODEC_MASK:
            inner = legacy.messages(data, limits)
            first, count = inner[0].offset, len(inner)
    except WireError as problem:
        return Flaw(problem.reason, str(problem), len(data), True)
    timestamp_type = (attributes & TIMESTAMP_TYPE_MASK) >> 3 if magic == 1 else 0
    return Batch(
        position,
        len(data),
        first,
        offset,
        -1,
        magic,
        crc,
        attributes,
        attributes & CODEC_MASK,
        timestamp_type,
        False,
        False,
        None,
        timestamp_ms,
        timestamp_ms,
        NO_PRODUCER_ID,
        -1,
        NO_SEQUENCE,
        NO_SEQUENCE,
        count,
        None,
        None,
    )


def is_plausible(window: Window, position: int, above: int) -> int | None:
    """Judge by its header alone whether a batch starts at a position.

    Args:
        window: the file.
        position: where.
        above: the base offset has to be greater.

    Returns:
        Its base offset, None when there is no batch.
    """
    head = window.get(position, HEADER.size)
    if len(head) < HEADER.size:
        return None
    header = Header._make(HEADER.unpack_from(head))
    if header.base_offset <= above or LOG_OVERHEAD + header.batch_length > window.size - position:
        return None
    if header.magic == 2:
        is_known = 0 <= header.attributes <= ATTRIBUTES_MASK
        fits = header.batch_length >= MIN_LENGTH and header_error(header) is None
        return header.base_offset if is_known and fits else None
    is_legacy = header.magic in (0, 1) and header.batch_length >= LEGACY_MIN_LENGTH
    return header.base_offset if is_legacy and head[MAGIC_END] <= 0x0F else None
