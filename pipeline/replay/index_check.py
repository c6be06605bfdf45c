"""Offset and time index of a segment against the batches that it points at.

The index is sparse and may be older or newer than a log that was copied from a running broker: an entry that points
behind the last batch, or into bytes that could not be read, says nothing.

Source: `OffsetIndex`, `TimeIndex`, `LogSegment.append`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipeline.wire.arrays import BatchArrays

Longs = np.ndarray[Any, np.dtype[np.int64]]
_OFFSET_ENTRY = np.dtype([("relative", ">i4"), ("value", ">i4")])
_TIME_ENTRY = np.dtype([("value", ">i8"), ("relative", ">i4")])
_NEW_FORMAT = 2


class IndexEntries(NamedTuple):
    """Entries of one index up to its zero tail.

    Attributes:
        kind: index or timeindex.
        offset: Offset of each entry.
        value: Byte position, or largest timestamp in ms up to that offset.
    """

    kind: str
    offset: Longs
    value: Longs


class IndexProblem(NamedTuple):
    """Entries that point at something else; the first of them stands for all.

    Attributes:
        kind: index or timeindex.
        entry_count: How many.
        offset: Offset of the first.
        value: Its position or timestamp.
        expected: Position or timestamp of the batch that holds the offset or position.
    """

    kind: str
    entry_count: int
    offset: int
    value: int
    expected: int


def entries(kind: str, data: bytes, base_offset: int) -> IndexEntries:
    """Reads an index; a torn last entry is left out.

    Args:
        kind: index or timeindex.
        data: The file.
        base_offset: Offset in its name.
    """
    form = _OFFSET_ENTRY if kind == "index" else _TIME_ENTRY
    found = np.frombuffer(data, form, len(data) // form.itemsize)
    is_zero = found["relative"] == 0
    if len(found):
        is_zero[0] &= found["value"][0] == 0
    end = int(np.argmax(is_zero)) if is_zero.any() else len(found)
    offset = found["relative"][:end].astype(np.int64) + base_offset
    return IndexEntries(kind, offset, found["value"][:end].astype(np.int64))


def problems(index: IndexEntries, batches: BatchArrays) -> IndexProblem | None:
    """What one chunk of the log contradicts.

    An entry of `.index` is the position of a batch, and its offset is not below the batch's first. One of `.timeindex`
    is the largest timestamp of the batch that holds its offset. Message sets older than version 2 are passed over.

    Args:
        index: The whole index.
        batches: Batches of the chunk in file order.
    """
    is_new = batches.magic == _NEW_FORMAT
    if not len(index.offset) or not is_new.any():
        return None
    of_chunk = BatchArrays._make(column[is_new] for column in batches)
    wrong, expected = (_positions if index.kind == "index" else _times)(index, of_chunk)
    if not len(wrong):
        return None
    first = wrong[0]
    return IndexProblem(
        index.kind, len(wrong), int(index.offset[first]), int(index.value[first]), int(expected[0])
    )


def _positions(index: IndexEntries, batches: BatchArrays) -> tuple[Longs, Longs]:
    """Entries inside a batch, or at one that begins behind their offset."""
    at = np.searchsorted(batches.position, index.value, side="right") - 1
    known = np.flatnonzero(at >= 0)
    batch = at[known]
    start = batches.position[batch]
    within = index.value[known] < start + batches.size_bytes[batch]
    is_start = index.value[known] == start
    is_behind = index.offset[known] >= batches.base_offset[batch]
    wrong = within & ~(is_start & is_behind)
    return known[wrong], start[wrong]


def _times(index: IndexEntries, batches: BatchArrays) -> tuple[Longs, Longs]:
    """Entries whose timestamp is not the largest of the batch that holds their offset."""
    at = np.searchsorted(batches.base_offset, index.offset, side="right") - 1
    known = np.flatnonzero(at >= 0)
    batch = at[known]
    within = index.offset[known] <= batches.last_offset[batch]
    wrong = within & (index.value[known] != batches.max_timestamp_ms[batch])
    return known[wrong], batches.max_timestamp_ms[batch][wrong]


def added(known: IndexProblem | None, more: IndexProblem | None) -> IndexProblem | None:
    """Problems of two chunks of one file, in file order."""
    if known is None or more is None:
        return known or more
    return known._replace(entry_count=known.entry_count + more.entry_count)


def change_points(batches: BatchArrays, before: int | None) -> list[tuple[int, int]]:
    """(leader epoch, first offset) wherever the epoch of a chunk is not that of the batch before it.

    Args:
        batches: Batches of the chunk in file order.
        before: Leader epoch of the batch in front of the chunk; None for the first.
    """
    is_new = (batches.magic == _NEW_FORMAT) & (batches.partition_leader_epoch >= 0)
    epochs, offsets = batches.partition_leader_epoch[is_new], batches.base_offset[is_new]
    if not len(epochs):
        return []
    earlier = np.concatenate(([-1 if before is None else before], epochs[:-1]))
    at = np.flatnonzero(epochs != earlier)
    return [(int(epochs[one]), int(offsets[one])) for one in at]
