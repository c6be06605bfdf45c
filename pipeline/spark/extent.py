"""What a part of a segment file holds, chunk by chunk, and the parts of a file put together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from pipeline.replay import index_check
from pipeline.replay.index_check import IndexEntries, IndexProblem
from pipeline.wire.arrays import Array, BatchArrays
from pipeline.wire.batch import Damage
from schemas.codes import METADATA_TOPIC, OFFSETS_TOPIC, TXN_TOPIC

Row = dict[str, Any]
_STAMPED_BY_BROKERS = frozenset({TXN_TOPIC, OFFSETS_TOPIC, METADATA_TOPIC})


class Extent:
    """Running figures of a part; becomes a row of kind scan.

    Args:
        topic: Topic; all batches of internal topics carry a broker's time, others only as markers
            or with LogAppendTime.
        start: First byte of the part.
        indexes: Indexes of the segment, held against its batches.
    """

    def __init__(self, topic: str, start: int, indexes: Iterable[IndexEntries] = ()) -> None:
        self._is_internal = topic in _STAMPED_BY_BROKERS
        self._start = start
        self._stop = start
        self._positions: Array = np.empty(0, np.int64)
        self._last_offsets: Array = self._positions
        self._before_chunk: int | None = None
        self.size = 0
        self.readable = self.batches = self.records = self.markers = 0
        self.first: int | None = None
        self.last: int | None = None
        self.first_crc: int | None = None
        self.last_crc: int | None = None
        self.epoch = -1
        self.hole: int | None = None
        self.shortened: int | None = None
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self._indexes = tuple(indexes)
        self._problems: dict[str, IndexProblem | None] = {}
        self._epochs: list[tuple[int, int]] = []

    def add(self, one: BatchArrays) -> None:
        """Takes the headers of a chunk."""
        is_new = one.magic == 2
        before = int(one.base_offset[0]) - 1 if self.last is None else self.last
        expected = np.concatenate(([before], one.last_offset[:-1])) + 1
        gaps = np.flatnonzero((one.base_offset != expected) & is_new)
        if len(gaps):
            self._hole_before(int(one.base_offset[gaps[-1]]))
        # A cleaner removes records or sets the time until which it keeps a marker (KIP-534).
        is_cleaned = (one.records_count < one.last_offset - one.base_offset + 1) | (
            one.delete_horizon_ms >= 0
        )
        short = np.flatnonzero(is_new & is_cleaned)
        if len(short):
            self.shortened = int(one.last_offset[short[-1]])
        if self.first is None:
            self.first, self.first_crc = int(one.base_offset[0]), int(one.crc[0])
        self._before_chunk = self.last
        self._positions, self._last_offsets = one.position, one.last_offset
        self.last, self.last_crc = int(one.last_offset[-1]), int(one.crc[-1])
        self.epoch = max(self.epoch, int(one.partition_leader_epoch.max()))
        self.batches += len(one.position)
        self.records += int(one.records_count.sum())
        self.readable += int(one.size_bytes.sum())
        self._reach(int(one.position[-1]) + int(one.size_bytes[-1]))
        is_marker = one.is_control & (one.producer_id >= 0)
        self.markers += int(is_marker.sum())
        self._times(one, is_marker)
        self._epochs += index_check.change_points(
            one, self._epochs[-1][0] if self._epochs else None
        )
        for index in self._indexes:
            more = index_check.problems(index, one)
            self._problems[index.kind] = index_check.added(self._problems.get(index.kind), more)

    def _times(self, one: BatchArrays, is_marker: Array) -> None:
        stamped = (
            np.ones(len(is_marker), np.bool_)
            if self._is_internal
            else is_marker | (one.timestamp_type == 1)
        )
        times = one.max_timestamp_ms[stamped & (one.max_timestamp_ms >= 0)]
        if len(times):
            low = int(times.min())
            self.first_ms = low if self.first_ms is None else min(low, self.first_ms)
            self.last_ms = int(times[-1])

    def damage(self, damage: Damage) -> None:
        """Unreadable bytes in the middle: history begins anew behind them."""
        self._reach(damage.position + damage.size_bytes)
        if damage.next_offset_hint is not None:
            self._hole_before(damage.next_offset_hint)

    def _hole_before(self, offset: int) -> None:
        self.hole = offset if self.hole is None else max(offset, self.hole)

    def _reach(self, position: int) -> None:
        self._stop = max(self._stop, position)

    def before(self, position: int) -> int | None:
        """Last offset that was read in front of a position in, or behind, the newest chunk."""
        index = int(np.searchsorted(self._positions, position)) - 1
        return self._before_chunk if index < 0 else int(self._last_offsets[index])

    def row(self, file: str, base_offset: int) -> Row:
        """Columns of `bronze.segment`, the bytes that it covers (`position`, `stop`), and what sidecars are held to."""
        return {
            "file": file,
            "base_offset": base_offset,
            "size_bytes": self.size,
            "readable_bytes": self.readable,
            "first_offset": self.first,
            "last_offset": self.last,
            "batch_count": self.batches,
            "record_count": self.records,
            "first_crc": self.first_crc,
            "last_crc": self.last_crc,
            "max_leader_epoch": None if self.epoch < 0 else self.epoch,
            "hole_end_offset": self.hole,
            "shortened_end_offset": self.shortened,
            "first_broker_ms": self.first_ms,
            "last_broker_ms": self.last_ms,
            "marker_count": self.markers,
            "position": self._start,
            "stop": self._stop,
            "epoch_starts": self._epochs,
            "index_problems": [one for one in self._problems.values() if one is not None],
        }


def merged(scans: Iterable[Row]) -> list[Row]:
    """Parts of one file as one segment, by replica and base offset.

    Args:
        scans: Rows of `Extent.row` with `segment_id` and `replica_id`.
    """
    parts: dict[int, list[Row]] = defaultdict(list)
    for scan in scans:
        parts[scan["segment_id"]].append(scan)
    segments = [_join(sorted(rows, key=lambda row: row["position"])) for rows in parts.values()]
    return sorted(segments, key=lambda row: (row["replica_id"], row["base_offset"], row["file"]))


def disjointed(scans: Iterable[Row]) -> set[int]:
    """Segments whose parts do not meet, so that a cut was no batch boundary."""
    wrong: set[int] = set()
    stops: dict[int, int] = {}
    for row in sorted(scans, key=lambda row: (row["segment_id"], row["position"])):
        if stops.get(row["segment_id"], row["position"]) != row["position"]:
            wrong.add(row["segment_id"])
        stops[row["segment_id"]] = row["stop"]
    return wrong


def _last(values: Iterable[int], default: int | None) -> int | None:
    """The last of them: a clock that was ahead and was put back read the file no further than it goes."""
    return next(reversed(list(values)), default)


def _join(rows: list[Row]) -> Row:
    used = [row for row in rows if row["first_offset"] is not None]
    whole = dict(rows[0])
    for name in ("readable_bytes", "batch_count", "record_count", "marker_count"):
        whole[name] = sum(row[name] for row in rows)
    for name, pick in (
        ("max_leader_epoch", max),
        ("hole_end_offset", max),
        ("shortened_end_offset", max),
        ("first_broker_ms", min),
        ("last_broker_ms", _last),
    ):
        whole[name] = pick((row[name] for row in rows if row[name] is not None), default=None)
    for name in ("epoch_starts", "index_problems"):
        whole[name] = [one for row in rows for one in row[name]]
    if used:
        whole |= {name: used[0][name] for name in ("first_offset", "first_crc")}
        whole |= {name: used[-1][name] for name in ("last_offset", "last_crc")}
    for before, after in pairwise(used):
        if after["first_offset"] != before["last_offset"] + 1:
            whole["hole_end_offset"] = max(after["first_offset"], whole["hole_end_offset"] or 0)
    whole["is_superseded"] = False
    return whole


def overlaps(segments: list[Row]) -> tuple[list[Row], dict[int, int]]:
    """One offset, one batch: what a preceding segment of the replica holds does not count again.

    Args:
        segments: As `merged` orders them.

    Returns:
        The segments with `is_superseded`, and segment id -> first offset that counts where that is
        not its first.
    """
    keep_from: dict[int, int] = {}
    reached: dict[int, int] = {}
    marked = []
    for segment in segments:
        end = reached.get(segment["replica_id"], -1)
        first, last = segment["first_offset"], segment["last_offset"]
        if first is not None:
            if first <= end:
                keep_from[segment["segment_id"]] = end + 1
            reached[segment["replica_id"]] = max(end, last)
        marked.append({**segment, "is_superseded": first is not None and last <= end})
    return marked, keep_from
