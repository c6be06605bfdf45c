"""The headers of a segment as arrays: the hot path.

One walk over the lengths in Python, then one numpy gather for all fields of a chunk. CRC-32C covers bytes 21 to the end of
a batch; offset, length and leader epoch are not covered, so offsets are checked for monotony. A batch whose checksum is
wrong, or bytes that are no batch, become `Damage`; the scan goes on at the next batch that can be trusted.

Source: `DefaultRecordBatch`, `AbstractLegacyRecordBatch`, `FileRecords`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from pipeline.wire.batch import Damage
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits
from pipeline.wire.record import control, records

HEADER_BYTES = 61
LENGTH_END = 12
CRC_FROM = 21
MIN_BATCH_BYTES = LENGTH_END + 14
"""The smallest legacy message set; nothing shorter can be a batch."""
MARKER_BYTES = 78
ReadAt = Callable[[int, int], bytes]


class BatchArrays(NamedTuple):
    """One numpy array per field of `Batch`, same names and order; null is -1."""

    position: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    base_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    partition_leader_epoch: NDArray[np.int32]
    magic: NDArray[np.int8]
    crc: NDArray[np.int64]
    attributes: NDArray[np.int16]
    codec: NDArray[np.int8]
    timestamp_type: NDArray[np.int8]
    is_transactional: NDArray[np.bool_]
    is_control: NDArray[np.bool_]
    delete_horizon_ms: NDArray[np.int64]
    base_timestamp_ms: NDArray[np.int64]
    max_timestamp_ms: NDArray[np.int64]
    producer_id: NDArray[np.int64]
    producer_epoch: NDArray[np.int16]
    base_sequence: NDArray[np.int32]
    last_sequence: NDArray[np.int32]
    records_count: NDArray[np.int32]
    control_type: NDArray[np.int32]
    coordinator_epoch: NDArray[np.int32]


class Chunk(NamedTuple):
    """Verified batches of one stretch of a file.

    Attributes:
        arrays: Their headers.
        data: The bytes of the stretch.
        data_position: Position of `data[0]` in the file.
    """

    arrays: BatchArrays
    data: bytes
    data_position: int


_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records_count", ">i4"),
    ]
)
assert _HEADER.itemsize == HEADER_BYTES


def scan(
    read_at: ReadAt,
    size: int,
    *,
    start: int = 0,
    end: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Chunk | Damage]:
    """Scan a segment.

    Args:
        read_at: (position, length) -> bytes; may return fewer at the end of the file.
        size: Size of the file.
        start: Position of a batch to begin with.
        end: Batches that begin at or behind it belong to another reader.
        limits: Bounds.

    Yields:
        Chunks and damage in file order.
    """
    stop = size if end is None else min(end, size)
    position = start
    last_offset = -1
    while position < stop:
        data = read_at(position, min(limits.chunk_bytes, size - position))
        if not data:
            yield Damage(position, size - position, "io", "file ended early", None)
            return
        walk = _walk(data, position, stop, last_offset, limits)
        chunk = _verified(data, position, walk)
        for piece in chunk:
            if isinstance(piece, Chunk):
                last_offset = int(piece.arrays.last_offset[-1])
            yield piece
        if walk.consumed:
            position += walk.consumed
            continue
        needed = walk.needed
        if needed and position + needed <= size and needed <= limits.max_batch_bytes + LENGTH_END:
            data = read_at(position, needed)
            walk = _walk(data, position, stop, last_offset, limits)
            if walk.consumed:
                for piece in _verified(data, position, walk):
                    if isinstance(piece, Chunk):
                        last_offset = int(piece.arrays.last_offset[-1])
                    yield piece
                position += walk.consumed
                continue
        damage = _resync(read_at, position, size, last_offset, limits)
        yield damage
        position = damage.position + damage.size_bytes


class _Walk(NamedTuple):
    positions: list[int]
    sizes: list[int]
    consumed: int
    needed: int


def _walk(data: bytes, position: int, stop: int, last_offset: int, limits: Limits) -> _Walk:
    """Follows the lengths of whole plausible batches; stops at the first that is not one."""
    positions: list[int] = []
    sizes: list[int] = []
    at, limit = 0, len(data)
    inside = stop - position
    biggest = limits.max_batch_bytes
    needed = 0
    from_bytes = int.from_bytes
    while at < inside and at + LENGTH_END + 5 <= limit:
        length = from_bytes(data[at + 8 : at + 12], "big")
        total = length + LENGTH_END
        magic = data[at + 16]
        if magic > 2 or length > biggest or total < (HEADER_BYTES if magic == 2 else MIN_BATCH_BYTES):
            break
        if at + total > limit:
            needed = total if not positions else 0
            break
        positions.append(at)
        sizes.append(total)
        at += total
    return _Walk(positions, sizes, at, needed)


def _verified(data: bytes, position: int, walk: _Walk) -> Iterator[Chunk | Damage]:
    """Splits a walked stretch at batches whose checksum or offset is wrong."""
    if not walk.positions:
        return
    view = memoryview(data)
    at = np.asarray(walk.positions, np.int64)
    sizes = np.asarray(walk.sizes, np.int64)
    magic = np.frombuffer(data, np.uint8)[at + 16]
    if (magic < 2).any():
        yield from _mixed(data, position, walk, magic)
        return
    head = _gather(data, at)
    checksum = google_crc32c.value
    crc = np.fromiter(
        (checksum(bytes(view[a + CRC_FROM : a + s])) for a, s in zip(walk.positions, walk.sizes, strict=True)),
        np.int64,
        len(at),
    )
    bad = crc != head["crc"]
    delta = head["last_offset_delta"].astype(np.int64)
    base = head["base_offset"].astype(np.int64)
    last = base + delta
    broken = ~bad & ((delta < 0) | (base < 0) | (head["records_count"] < 0))
    ok = np.flatnonzero(~bad & ~broken)
    backwards = np.zeros(len(at), np.bool_)
    if len(ok):
        reached = np.maximum.accumulate(last[ok])
        backwards[ok[1:]] = base[ok[1:]] <= reached[:-1]
    wrong = bad | broken | backwards
    if not wrong.any():
        yield Chunk(_arrays(data, position, at, sizes, head, last), data, position)
        return
    yield from _pieces(data, position, at, sizes, head, last, (bad, broken, backwards))


def _pieces(
    data: bytes,
    position: int,
    at: NDArray[np.int64],
    sizes: NDArray[np.int64],
    head: NDArray[Any],
    last: NDArray[np.int64],
    flags: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]],
) -> Iterator[Chunk | Damage]:
    bad, broken, backwards = flags
    wrong = bad | broken | backwards
    edges = np.flatnonzero(np.diff(np.concatenate(([True], wrong, [True])).astype(np.int8)) != 0)
    bounds = sorted({0, len(at), *(int(edge) for edge in edges if edge <= len(at))})
    for first, behind in zip(bounds[:-1], bounds[1:], strict=True):
        if not wrong[first]:
            part = slice(first, behind)
            yield Chunk(
                _arrays(data, position, at[part], sizes[part], head[part], last[part]), data, position
            )
            continue
        for number in range(first, behind):
            following = np.flatnonzero(~wrong[number:])
            hint = int(head["base_offset"][number + following[0]]) if len(following) else None
            if bad[number]:
                reason, detail = "crc", "checksum differs from the bytes"
            elif broken[number]:
                reason, detail = "bad_record", "negative offset delta or record count"
            else:
                reason, detail = "offset_regression", "base offset not above the batches before it"
            yield Damage(position + int(at[number]), int(sizes[number]), reason, detail, hint)


def _gather(data: bytes, at: NDArray[np.int64]) -> NDArray[Any]:
    """All headers in one copy."""
    raw = np.frombuffer(data, np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(raw, HEADER_BYTES)
    return np.ascontiguousarray(windows[at]).view(_HEADER)[:, 0]


def _arrays(
    data: bytes,
    position: int,
    at: NDArray[np.int64],
    sizes: NDArray[np.int64],
    head: NDArray[Any],
    last: NDArray[np.int64],
) -> BatchArrays:
    attributes = head["attributes"].astype(np.int16)
    base_sequence = head["base_sequence"].astype(np.int64)
    delta = head["last_offset_delta"].astype(np.int64)
    wrapped = np.where(base_sequence < 0, -1, (base_sequence + delta) & 0x7FFFFFFF)
    is_control = (attributes & 0x20) != 0
    kinds, epochs = _controls(data, at, sizes, head, is_control)
    base_ms = head["base_timestamp_ms"].astype(np.int64)
    has_horizon = (attributes & 0x40) != 0
    return BatchArrays(
        at + position,
        sizes,
        head["base_offset"].astype(np.int64),
        last,
        head["partition_leader_epoch"].astype(np.int32),
        head["magic"].astype(np.int8),
        head["crc"].astype(np.int64),
        attributes,
        (attributes & 7).astype(np.int8),
        ((attributes >> 3) & 1).astype(np.int8),
        (attributes & 0x10) != 0,
        is_control,
        np.where(has_horizon, base_ms, -1),
        base_ms,
        head["max_timestamp_ms"].astype(np.int64),
        head["producer_id"].astype(np.int64),
        head["producer_epoch"].astype(np.int16),
        head["base_sequence"].astype(np.int32),
        wrapped.astype(np.int32),
        head["records_count"].astype(np.int32),
        kinds,
        epochs,
    )


_MARKER = np.dtype(
    [("length", "u1"), ("attributes", "u1"), ("timestamp", "u1"), ("offset", "u1"), ("key_size", "u1"),
     ("key_version", ">i2"), ("type", ">i2"), ("value_size", "u1"), ("value_version", ">i2"),
     ("coordinator_epoch", ">i4"), ("headers", "u1")]
)
assert _MARKER.itemsize == MARKER_BYTES - HEADER_BYTES


def _controls(
    data: bytes,
    at: NDArray[np.int64],
    sizes: NDArray[np.int64],
    head: NDArray[Any],
    is_control: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Type and coordinator epoch of control batches: by layout for the usual 78 bytes, else record by record."""
    kinds = np.full(len(at), -1, np.int32)
    epochs = np.full(len(at), -1, np.int32)
    which = np.flatnonzero(is_control & (head["records_count"] > 0))
    if not len(which):
        return kinds, epochs
    usual = which[sizes[which] == MARKER_BYTES]
    if len(usual):
        raw = np.frombuffer(data, np.uint8)
        windows = np.lib.stride_tricks.sliding_window_view(raw, _MARKER.itemsize)
        body = np.ascontiguousarray(windows[at[usual] + HEADER_BYTES]).view(_MARKER)[:, 0]
        plain = (body["length"] == 32) & (body["key_size"] == 8) & (body["value_size"] == 12)
        plain &= (body["type"] >= 0) & (body["type"] <= 1) & (head["records_count"][usual] == 1)
        kinds[usual[plain]] = body["type"][plain]
        epochs[usual[plain]] = body["coordinator_epoch"][plain]
    for number in which[kinds[which] < 0]:
        begin, size = int(at[number]), int(sizes[number])
        try:
            found = records(
                data[begin + HEADER_BYTES : begin + size],
                int(head["attributes"][number]),
                int(head["records_count"][number]),
            )
        except WireError:
            continue
        kind, epoch = control(found[0].key, found[0].value)
        kinds[number] = -1 if kind is None else kind
        epochs[number] = -1 if epoch is None else epoch
    return kinds, epochs


def _mixed(data: bytes, position: int, walk: _Walk, magic: NDArray[np.uint8]) -> Iterator[Chunk | Damage]:
    """A stretch with legacy message sets: runs of one kind at a time."""
    first = 0
    count = len(magic)
    while first < count:
        behind = first
        is_legacy = magic[first] < 2
        while behind < count and (magic[behind] < 2) == is_legacy:
            behind += 1
        positions, sizes = walk.positions[first:behind], walk.sizes[first:behind]
        if is_legacy:
            yield Chunk(_legacy(data, position, positions, sizes), data, position)
        else:
            yield from _verified(data, position, _Walk(positions, sizes, 0, 0))
        first = behind


def _legacy(data: bytes, position: int, positions: list[int], sizes: list[int]) -> BatchArrays:
    """Magic 0 and 1: one row a message (set); only offset, format and codec are known without decoding."""
    count = len(positions)
    offsets = np.array([int.from_bytes(data[a : a + 8], "big") for a in positions], np.int64)
    attributes = np.array([data[a + 17] for a in positions], np.int16)
    magic = np.array([data[a + 16] for a in positions], np.int8)
    crc = np.array([int.from_bytes(data[a + 12 : a + 16], "big") for a in positions], np.int64)
    times = np.array(
        [int.from_bytes(data[a + 18 : a + 26], "big", signed=True) if data[a + 16] else -1 for a in positions],
        np.int64,
    )
    none32, none64 = np.full(count, -1, np.int32), np.full(count, -1, np.int64)
    no = np.zeros(count, np.bool_)
    return BatchArrays(
        np.asarray(positions, np.int64) + position, np.asarray(sizes, np.int64), offsets, offsets, none32,
        magic, crc, attributes, (attributes & 7).astype(np.int8), ((attributes >> 3) & 1).astype(np.int8),
        no, no, none64, times, times, none64, none32.astype(np.int16), none32, none32,
        np.full(count, 1, np.int32), none32, none32,
    )


def _resync(read_at: ReadAt, position: int, size: int, last_offset: int, limits: Limits) -> Damage:
    """Finds the next batch with a right checksum behind bytes that are none; names what was skipped."""
    rest = size - position
    data = read_at(position, min(limits.chunk_bytes, rest))
    if not any(data[: min(len(data), LENGTH_END)]) and _only_zeros(read_at, position, size, limits):
        return Damage(position, rest, "zero_tail", "zeros to the end of the file", None)
    base = position
    while base < size:
        data = read_at(base, min(limits.chunk_bytes, size - base))
        hit = _find_batch(data, 1 if base == position else 0, last_offset, limits)
        if hit is not None:
            offset = int.from_bytes(data[hit : hit + 8], "big")
            skipped = base + hit - position
            return Damage(position, skipped, "bad_length", "no batch here, the next one was searched", offset)
        step = len(data) - limits.max_batch_bytes if len(data) > 2 * limits.max_batch_bytes else 0
        base += step or max(len(data) - HEADER_BYTES, 1) if base + len(data) < size else len(data)
    reason = "torn_tail" if _is_torn(read_at(position, min(HEADER_BYTES, rest)), rest) else "bad_length"
    return Damage(position, rest, reason, "no whole batch up to the end of the file", None)


def _is_torn(data: bytes, rest: int) -> bool:
    """The beginning of one batch that the end of the file cuts."""
    if len(data) < LENGTH_END + 5:
        return True
    length = int.from_bytes(data[8:12], "big", signed=True)
    return data[16] <= 2 and length + LENGTH_END > rest and length > 0


def _only_zeros(read_at: ReadAt, position: int, size: int, limits: Limits) -> bool:
    while position < size:
        data = read_at(position, min(limits.chunk_bytes, size - position))
        if not data or data.count(0) != len(data):
            return False
        position += len(data)
    return True


def _find_batch(data: bytes, start: int, last_offset: int, limits: Limits) -> int | None:
    """First position of a batch of magic 2 that fits, continues the offsets and has a right checksum."""
    raw = np.frombuffer(data, np.uint8)
    candidates = np.flatnonzero(raw[16:] == 2)
    candidates = candidates[candidates >= start]
    if not len(candidates):
        return None
    windows = np.lib.stride_tricks.sliding_window_view(raw, LENGTH_END) if len(raw) >= LENGTH_END else raw[:0]
    lead = np.ascontiguousarray(windows[candidates]).view([("o", ">i8"), ("n", ">i4")])[:, 0]
    plausible = (
        (lead["o"] > last_offset) & (lead["n"] >= HEADER_BYTES - LENGTH_END) & (lead["n"] <= limits.max_batch_bytes)
        & (candidates + lead["n"] + LENGTH_END <= len(raw))
    )
    for at in candidates[plausible]:
        size = int.from_bytes(data[at + 8 : at + 12], "big") + LENGTH_END
        crc = int.from_bytes(data[at + 17 : at + 21], "big")
        if google_crc32c.value(data[at + CRC_FROM : at + size]) == crc:
            return int(at)
    return None
