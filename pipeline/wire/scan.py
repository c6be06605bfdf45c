"""Scan a segment as arrays: the hot path.

Lengths are walked in Python, everything else is one numpy gather per chunk. Batches up to the
first imperfection of a chunk are taken as they are; from there `segment.Walker` goes on for a
while, so that damage has one meaning, whichever way it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.wire import arrays as columns
from pipeline.wire.arrays import Array, BatchArrays, Chunk, gather
from pipeline.wire.batch import (
    CODEC_MASK,
    CODEC_ZSTD,
    Batch,
    Damage,
)
from pipeline.wire.crc_chain import Verifier
from pipeline.wire.examine import MAX_OFFSET, ReadAt, examine
from pipeline.wire.header import (
    HEADER,
    HEADER_DTYPE,
    LENGTH,
    LENGTH_AT,
    LOG_OVERHEAD,
    MIN_LENGTH,
)
from pipeline.wire.limits import DEFAULT_LIMITS, Limits
from pipeline.wire.order import split_regressions
from pipeline.wire.segment import Walker, merge, regression
from pipeline.wire.vector import checksums, fields, markers, walk

# Below this mean size one checksum over the whole chunk is cheaper than one per batch.
_CHAIN_BELOW_BYTES = 2048
# The careful way takes this share of a chunk, and twice as much each time it is needed again;
# at most a quarter, because it holds a tuple per batch.
_CAREFUL_SHARE = 16
_CAREFUL_MOST = 4
_HELD_BACK = 2


def scan(
    read_at: ReadAt,
    size: int,
    *,
    start: int = 0,
    end: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    first_offset: int = 0,
) -> Iterator[Chunk | Damage]:
    """Read, verify and decode all batch headers of a segment, or of a part of it.

    Never raises on bytes, and answers a failing read with damage of reason `io`.

    Args:
        read_at: gives `length` bytes at a position, fewer only at the end of the file.
        size: bytes of the file.
        start: byte position of a batch (0, or a verified index position).
        end: batches that start at or behind it belong to the next split; None is `size`.
        limits: bounds.
        first_offset: offsets below it are `offset_regression` (the segment's base offset).

    Yields:
        Chunks in file order, each followed by the damage that lies within or behind it. Damage
        that touches and has one reason is one row within a chunk.
    """
    scanner = _Scanner(read_at, size, size if end is None else min(end, size), limits)
    scanner.position = start
    scanner.last_offset = first_offset - 1
    try:
        while scanner.position < scanner.end:
            yield from scanner.step()
    except OSError as error:
        rest = scanner.end - scanner.position
        yield Damage(scanner.position, rest, "io", type(error).__name__, None)
        return
    if size > limits.max_segment_bytes and scanner.end == limits.max_segment_bytes:
        rest = size - limits.max_segment_bytes
        yield Damage(limits.max_segment_bytes, rest, "too_large", f"file of {size} bytes", None)


class _Scanner:
    def __init__(self, read_at: ReadAt, size: int, end: int, limits: Limits) -> None:
        self._limits = limits
        self._read_at = read_at
        self._walker = Walker(read_at, size, limits)
        self._verifier = Verifier()
        self._careful_bytes = limits.chunk_bytes // _CAREFUL_SHARE
        self.position = 0
        self.end = min(end, limits.max_segment_bytes)
        self.last_offset = -1

    def step(self) -> Iterator[Chunk | Damage]:
        """Take the next chunk, the fast way as far as it is clean."""
        data, positions, stop = self._load()
        if positions:
            chunk, clean = self._decode(data, positions, stop)
            if chunk is not None:
                self.position += stop if clean == len(positions) else positions[clean]
                self.last_offset = int(chunk.arrays.last_offset[-1])
                yield chunk
            if clean == len(positions):
                self._careful_bytes = self._limits.chunk_bytes // _CAREFUL_SHARE
                return
        yield from self._careful()

    def _load(self) -> tuple[bytes, list[int], int]:
        """Read a chunk and walk its lengths; a batch beyond the chunk is read whole."""
        size = self._walker.window.size
        wanted = min(self._limits.chunk_bytes, size - self.position)
        data = self._read_at(self.position, wanted)
        positions, stop = walk(data, self.end - self.position)
        if not positions and len(data) >= HEADER.size:
            first = LOG_OVERHEAD + LENGTH.unpack_from(data, LENGTH_AT)[0]
            if len(data) < first <= min(self._limits.max_batch_bytes, size - self.position):
                data = self._read_at(self.position, first)
                positions, stop = walk(data, self.end - self.position)
        return data, positions, stop

    def _decode(self, data: bytes, positions: list[int], stop: int) -> tuple[Chunk | None, int]:
        """Decode the batches before the first imperfect one.

        Returns:
            The chunk, and how many batches it holds.
        """
        places = np.array(positions, np.int64)
        heads = gather(data, HEADER_DTYPE, places)
        sizes = np.diff(np.append(places, stop))
        base = heads["base_offset"].astype(np.int64)
        delta = heads["last_offset_delta"].astype(np.int64)
        last = base + delta
        previous = np.concatenate(([self.last_offset], last[:-1]))
        count = heads["records_count"]
        attributes = heads["attributes"].astype(np.int16)
        good = heads["magic"] == 2
        good &= self._right_checksums(data, places, positions, stop, heads["crc"])
        good &= (delta >= 0) & (base <= MAX_OFFSET - delta) & (base > previous)
        good &= (count >= 0) & (count <= delta + 1) & ((attributes & CODEC_MASK) <= CODEC_ZSTD)
        good &= sizes <= self._limits.max_batch_bytes
        marked = markers(data, places, sizes, count, attributes, good, self._limits)
        upcoming = self._upcoming(self.position + stop)
        if upcoming and upcoming[0] <= last[-1]:
            good[-1] = False
        clean = len(positions)
        if not good.all():
            # The batches just before may be to blame, and are judged with those that follow.
            clean = max(int(good.argmin()) - _HELD_BACK, 0)
            if clean == 0:
                return None, 0
        every = fields(self.position, places, sizes, heads, base, last, attributes, marked)
        whole = every if clean == len(positions) else BatchArrays._make(f[:clean] for f in every)
        return Chunk(whole, data, self.position), clean

    def _right_checksums(
        self, data: bytes, places: Array, positions: list[int], stop: int, stored: Array
    ) -> Array | bool:
        is_small = stop < _CHAIN_BELOW_BYTES * len(positions)
        if is_small and self._verifier.all_right(data, places, stop, stored):
            return True
        return np.asarray(stored == checksums(data, positions, stop))

    def _upcoming(self, position: int) -> list[int]:
        """Base offsets of the next two batches, as far as their headers make sense."""
        found: list[int] = []
        for _ in range(2):
            if position + HEADER.size > self._walker.window.size:
                break
            head = self._read_at(position, HEADER.size)
            if len(head) < HEADER.size:
                break
            base_offset, length, _, magic, *_ = HEADER.unpack(head)
            if length < MIN_LENGTH or magic != 2 or base_offset < 0:
                break
            found.append(base_offset)
            position += LOG_OVERHEAD + length
        return found

    def _witnesses(self, position: int) -> list[int]:
        """Base offsets of the next two batches, as far as they are right."""
        found: list[int] = []
        while len(found) < 2 and position < self._walker.window.size:
            batch = examine(self._walker.window, position, self._limits)
            if not isinstance(batch, Batch):
                break
            found.append(batch.base_offset)
            position += batch.size_bytes
        return found

    def _careful(self) -> Iterator[Chunk | Damage]:
        """Go on batch by batch for a share of a chunk."""
        origin = self.position
        stop = min(origin + self._careful_bytes, self.end)
        most = self._limits.chunk_bytes // _CAREFUL_MOST
        self._careful_bytes = min(2 * self._careful_bytes, most)
        batches: list[Batch] = []
        damages: list[Damage] = []
        for item in self._walker.walk(origin, max(stop, origin + 1)):
            if isinstance(item, Batch):
                batches.append(item)
            else:
                damages.append(self._clip(item))
                if item.size_bytes > self._limits.chunk_bytes:
                    break
        self.position = max(self._walker.position, origin + 1)
        self.end = min(self.end, self._walker.window.size)
        kept, regressed = split_regressions(
            batches, self.last_offset, self._witnesses(self.position)
        )
        if kept:
            self.last_offset = kept[-1].last_offset
            first, tail = kept[0].position, kept[-1].position + kept[-1].size_bytes
            data = self._read_at(first, tail - first)
            yield Chunk(columns.from_batches(kept), data, first)
        yield from merge(damages + [regression(batch) for batch in regressed])

    def _clip(self, damage: Damage) -> Damage:
        """The next split starts at its own batch, whatever was lost before."""
        return damage._replace(size_bytes=min(damage.size_bytes, self.end - damage.position))
