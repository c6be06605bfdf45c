"""Offset and time index of one segment (`.index`, `.timeindex`).

Source: `OffsetIndex`, `TimeIndex`. The active segment's indexes are preallocated: entries end at
the first one behind entry 0 whose relative offset is 0. An entry 0 of zeros is no entry
either: a broker never indexes the first batch of a segment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    """`position` is where the batch that holds `offset` starts."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """`timestamp_ms` is the largest up to `offset`."""

    timestamp_ms: int
    offset: int


def read_offset_index(
    data: bytes, base_offset: int, limits: Limits = DEFAULT_LIMITS
) -> list[OffsetEntry]:
    """Read an offset index up to its zero tail; a torn last entry is ignored.

    Raises:
        WireError: a file beyond the limit.
    """
    return [
        OffsetEntry(base_offset + relative, position)
        for position, relative in _entries(data, limits, _OFFSET_ENTRY, relative_at=0)
    ]


def read_time_index(
    data: bytes, base_offset: int, limits: Limits = DEFAULT_LIMITS
) -> list[TimeEntry]:
    """Read a time index up to its zero tail; a torn last entry is ignored.

    Raises:
        WireError: a file beyond the limit.
    """
    return [
        TimeEntry(timestamp_ms, base_offset + relative)
        for timestamp_ms, relative in _entries(data, limits, _TIME_ENTRY, relative_at=1)
    ]


def _entries(
    data: bytes, limits: Limits, layout: struct.Struct, relative_at: int
) -> Iterator[tuple[int, int]]:
    """Other field and relative offset of each entry in front of the zero tail."""
    if len(data) > limits.max_sidecar_bytes:
        raise WireError(f"{len(data)} bytes", "too_large")
    whole = memoryview(data)[: len(data) // layout.size * layout.size]
    for number, entry in enumerate(layout.iter_unpack(whole)):
        relative, other = entry[relative_at], entry[1 - relative_at]
        if relative == 0 and (number or other == 0):
            return
        yield other, relative
