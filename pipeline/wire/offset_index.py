"""Offset and time index of one segment (`.index`, `.timeindex`).

Source: `OffsetIndex`, `TimeIndex`. The active segment's indexes are preallocated: entries end at
the first one behind entry 0 whose relative offset is 0. An entry 0 of zeros is no entry
either: a broker never indexes the first batch of a segment.
"""

from __future__ import annotations

import struct
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
    entries: list[OffsetEntry] = []
    for relative, position in _OFFSET_ENTRY.iter_unpack(_whole(data, _OFFSET_ENTRY.size, limits)):
        if relative == 0 and (entries or position == 0):
            break
        entries.append(OffsetEntry(base_offset + relative, position))
    return entries


def read_time_index(
    data: bytes, base_offset: int, limits: Limits = DEFAULT_LIMITS
) -> list[TimeEntry]:
    """Read a time index up to its zero tail; a torn last entry is ignored.

    Raises:
        WireError: a file beyond the limit.
    """
    entries: list[TimeEntry] = []
    for timestamp_ms, relative in _TIME_ENTRY.iter_unpack(_whole(data, _TIME_ENTRY.size, limits)):
        if relative == 0 and (entries or timestamp_ms == 0):
            break
        entries.append(TimeEntry(timestamp_ms, base_offset + relative))
    return entries


def _whole(data: bytes, entry_size: int, limits: Limits) -> memoryview:
    if len(data) > limits.max_sidecar_bytes:
        raise WireError(f"{len(data)} bytes", "too_large")
    return memoryview(data)[: len(data) // entry_size * entry_size]
