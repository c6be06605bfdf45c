"""Walk a segment batch by batch, damage included: the reference that `scan` is tested against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pipeline.wire.arrays import Array, gather
from pipeline.wire.batch import CODEC_ZSTD, Batch, Damage
from pipeline.wire.examine import (
    ATTRIBUTES_MASK,
    Flaw,
    ReadAt,
    Window,
    checksum,
    examine,
    is_plausible,
)
from pipeline.wire.header import (
    CRC_COVERS_FROM,
    HEADER,
    HEADER_DTYPE,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MIN_LENGTH,
)
from pipeline.wire.limits import DEFAULT_LIMITS, Limits
from pipeline.wire.order import split_regressions

# A search may checksum this many bytes per byte searched, plus one chunk's worth at its start.
_CRC_AMPLIFICATION = 32
_BIG_ENDIAN_TOP_BYTES = 2**24
# The next batch is mostly near: a search looks at this much first, then at twice as much.
_FIRST_STEP_BYTES = 512


def iterate(
    data: bytes, limits: Limits = DEFAULT_LIMITS, *, first_offset: int = 0
) -> Iterator[Batch | Damage]:
    """Give every batch and every damaged stretch of a segment held in memory, in file order.

    Args:
        data: the whole segment.
        limits: bounds.
        first_offset: base offset of the segment; batches below it are `offset_regression`.
    """

    def read_at(position: int, length: int) -> bytes:
        return data[position : position + length]

    items = list(Walker(read_at, len(data), limits).walk(0, len(data)))
    batches = [item for item in items if isinstance(item, Batch)]
    damages = [item for item in items if isinstance(item, Damage)]
    kept, regressed = split_regressions(batches, first_offset - 1, ())
    damages = merge(damages + [regression(batch) for batch in regressed])
    everything: list[Batch | Damage] = [*kept, *damages]
    yield from sorted(everything, key=lambda item: item.position)


def regression(batch: Batch) -> Damage:
    """Describe a batch whose base offset cannot be right."""
    detail = f"base offset {batch.base_offset} out of order"
    return Damage(batch.position, batch.size_bytes, "offset_regression", detail, None)


def merge(damages: Iterable[Damage]) -> list[Damage]:
    """Join stretches that touch and have the same reason."""
    merged: list[Damage] = []
    for item in sorted(damages, key=lambda damage: damage.position):
        last = merged[-1] if merged else None
        touches = last is not None and last.position + last.size_bytes == item.position
        if last is not None and touches and last.reason == item.reason:
            size = last.size_bytes + item.size_bytes
            merged[-1] = last._replace(size_bytes=size, next_offset_hint=item.next_offset_hint)
        else:
            merged.append(item)
    return merged


class Walker:
    """Goes from batch to batch; behind damage to the next place where a batch surely starts.

    Offsets are not judged here but by `order.split_regressions`.
    """

    def __init__(self, read_at: ReadAt, size: int, limits: Limits) -> None:
        self._limits = limits
        self.window = Window(read_at, min(size, limits.max_segment_bytes), limits)
        self.position = 0
        self._barren_from = size + 1

    def walk(self, start: int, stop: int) -> Iterator[Batch | Damage]:
        """Go on from `start` until a batch starts at or behind `stop`, or the file ends.

        `position` tells afterwards where the walk stands.
        """
        self.position = start
        last_offset = -1
        while self.position < min(stop, self.window.size):
            found = examine(self.window, self.position, self._limits)
            if isinstance(found, Batch):
                self.position += found.size_bytes
                last_offset = found.last_offset
                yield found
            else:
                damage = self._skip(self.position, found, last_offset)
                self.position += damage.size_bytes
                yield damage

    def _skip(self, position: int, flaw: Flaw, last_offset: int) -> Damage:
        """Find where to go on behind a flaw."""
        window = self.window
        following = position + flaw.size_bytes if flaw.size_bytes else 0
        hint = None
        if following and (flaw.is_crc_right or following == window.size):
            return Damage(position, flaw.size_bytes, flaw.reason, flaw.detail, None)
        if following:
            own = is_plausible(window, position, -1)
            hint = is_plausible(window, following, last_offset if own is None else own)
            delta = self._offset_delta(position)
            if hint is not None and own is not None and hint == own + delta + 1:
                return Damage(position, flaw.size_bytes, flaw.reason, flaw.detail, hint)
            found = self._search(position + 1, following if hint is not None else window.size)
            if found is None and hint is not None:
                return Damage(position, flaw.size_bytes, flaw.reason, flaw.detail, hint)
        else:
            if self._is_zero_to_end(position):
                size = window.size - position
                return Damage(position, size, "zero_tail", "zeros to the end", None)
            found = self._search(position + 1, window.size)
        if found is not None:
            reason = "bad_length" if flaw.reason == "torn_tail" else flaw.reason
            return Damage(position, found[0] - position, reason, flaw.detail, found[1])
        size = flaw.size_bytes or window.size - position
        return Damage(position, size, flaw.reason, flaw.detail, None)

    def _offset_delta(self, position: int) -> int:
        head = self.window.get(position, HEADER.size)
        return HEADER.unpack_from(head)[6] if len(head) == HEADER.size else 0

    def _is_zero_to_end(self, position: int) -> bool:
        step = _FIRST_STEP_BYTES
        while position < self.window.size:
            piece = self.window.get(position, step)
            step = min(step * 2, self._limits.chunk_bytes)
            if np.frombuffer(piece, np.uint8).any():
                return False
            position += max(len(piece), 1)
        return True

    def _search(self, start: int, stop: int) -> tuple[int, int] | None:
        """Find the first batch of magic 2 at or behind `start` whose checksum is right.

        Returns:
            Its position and base offset, None when none starts before `stop`.
        """
        if start >= self._barren_from:
            return None
        spent = -self._limits.chunk_bytes
        step = _FIRST_STEP_BYTES
        at = start
        while at < stop and at + HEADER.size <= self.window.size:
            piece = self.window.get(at, step)
            step = min(step * 2, self._limits.chunk_bytes)
            count = min(len(piece) - HEADER.size + 1, stop - at)
            for offset, size, base_offset in _candidates(piece, count, self._limits):
                position = at + offset
                if position + size > self.window.size:
                    continue
                spent += size
                if spent > _CRC_AMPLIFICATION * (position - start):
                    spent -= size
                    continue
                if self._crc_ok(position, size):
                    return position, base_offset
            at += max(count, 1)
        if stop >= self.window.size:
            self._barren_from = min(self._barren_from, start)
        return None

    def _crc_ok(self, position: int, size: int) -> bool:
        data = self.window.get(position, size)
        if len(data) < size:
            return False
        stored = int.from_bytes(data[CRC_COVERS_FROM - 4 : CRC_COVERS_FROM], "big")
        return checksum(data) == stored


def _candidates(piece: bytes, count: int, limits: Limits) -> list[tuple[int, int, int]]:
    """Give (offset in the piece, size, base offset) where a header of magic 2 could start."""
    if count <= 0:
        return []
    octets = np.frombuffer(piece, np.uint8)

    def at(offset: int) -> Array:
        return octets[offset : offset + count]

    could = at(MAGIC_AT) == 2
    could &= at(0) < 0x80
    could &= at(LENGTH_AT) <= limits.max_batch_bytes // _BIG_ENDIAN_TOP_BYTES
    could &= at(CRC_COVERS_FROM) == 0
    could &= at(CRC_COVERS_FROM + 1) <= ATTRIBUTES_MASK
    places = np.flatnonzero(could)
    if not places.size:
        return []
    heads = gather(piece, HEADER_DTYPE, places)
    delta = heads["last_offset_delta"].astype(np.int64)
    length = heads["batch_length"].astype(np.int64)
    fits = (length >= MIN_LENGTH) & (length + LOG_OVERHEAD <= limits.max_batch_bytes)
    fits &= (delta >= 0) & (heads["records_count"] >= 0) & (heads["records_count"] <= delta + 1)
    fits &= (heads["attributes"] & 7) <= CODEC_ZSTD
    return list(
        zip(
            places[fits].tolist(),
            (length[fits] + LOG_OVERHEAD).tolist(),
            heads["base_offset"][fits].tolist(),
            strict=True,
        )
    )
