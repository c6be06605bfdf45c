"""What became of the promises of one data partition: was each transaction's marker written?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.replay.alignment import NONE, OPEN_END, Alignment, Longs
from pipeline.replay.clock import MIN_VOTERS
from pipeline.replay.coverage import NEVER
from pipeline.replay.ownership import is_late_marker
from pipeline.replay.promises import Marked, promise_status
from pipeline.replay.transaction_state import COMPLETE
from pipeline.spark.partition_input import PartitionInput, value
from pipeline.spark.partition_output import history_rows, nullable


def _merged(begins: Longs, ends: Longs) -> list[tuple[int, int]]:
    """Intervals that do not overlap and cover the same."""
    merged: list[tuple[int, int]] = []
    for begin, end in np.unique(np.stack((begins, ends)), axis=1).T.tolist():
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


class Promised:
    """Judges the promises of a partition."""

    def __init__(self, data: PartitionInput) -> None:
        self.data = data

    def mark_doubtful(self, found: Alignment, unproven: np.ndarray[Any, Any]) -> None:
        """Promises that an ambiguous marker fits, or one of unknown time may: nobody knows whether they were kept.

        Args:
            found: Which marker is whose.
            unproven: By marker: it is nobody's by the clocks only.
        """
        lost = np.flatnonzero(
            (found.promise < 0) & (found.is_untimed | found.is_ambiguous | unproven)
        )
        self._doubt_by_order(found, lost)
        one, skew = self.data.promise, self.data.tolerances.clock_skew_ms
        until = self.data.promises.complete_ms
        for at in np.flatnonzero(found.is_ambiguous):
            ms, epoch = int(self.data.markers.ms[at]), int(self.data.markers.epoch[at])
            self.data.doubtful |= {
                number
                for number in self.data.of_producer(int(self.data.markers.producer_id[at]))
                if one["prepare_epoch"][number] == epoch
                and one["prepare_ms"][number] - skew <= ms <= until[number] + skew
            }

    def _doubt_by_order(self, found: Alignment, lost: Longs) -> None:
        """Promises that these markers may keep, whatever the clocks were.

        Such a marker lies between two whose transactions are known: its own had not ended before the first one's was
        decided, and was decided before the second one's had ended. One of unknown time may be of any epoch.
        """
        markers, one = self.data.markers, self.data.promise
        completed = np.where(one["complete_offset"] == NONE, OPEN_END, one["complete_offset"])
        for partition in np.unique(markers.coordinator_partition[lost]):
            mine = markers.coordinator_partition == partition
            firm = np.flatnonzero(mine & (found.promise >= 0) & ~found.is_untimed)
            here = lost[mine[lost]]
            behind = np.searchsorted(firm, here)
            begins = np.concatenate(([NONE], one["prepare_offset"][found.promise[firm]]))[behind]
            ends = np.append(completed[found.promise[firm]], OPEN_END)[behind]
            is_any = found.is_untimed[here]
            rows = np.flatnonzero(one["coordinator_partition"] == partition)
            for producer_id in (None, *np.unique(markers.producer_id[here[~is_any]]).tolist()):
                if producer_id is not None:
                    rows = np.array(self.data.of_producer(producer_id), np.int64)
                    is_its = ~is_any & (markers.producer_id[here] == producer_id)
                else:
                    is_its = is_any
                for begin, end in _merged(begins[is_its], ends[is_its]):
                    may_be = (completed[rows] > begin) & (one["prepare_offset"][rows] < end)
                    self.data.doubtful |= set(rows[may_be].tolist())

    def late(self, found: Alignment, evidence: np.ndarray[Any, Any]) -> set[int]:
        """Promises whose marker came only after Complete* (versions 0 and 1, whose epochs name nothing)."""
        markers = self.data.markers
        alone = evidence & (found.promise < 0) & (markers.type == 1)
        alone &= ~found.is_ambiguous & ~found.is_untimed
        return {
            number
            for at in np.flatnonzero(alone)
            for number in self.data.of_producer(int(markers.producer_id[at]))
            if is_late_marker(
                int(markers.ms[at]),
                1,
                int(markers.epoch[at]),
                self.data.promise_at(number, found),
                self.data.whole_from_ms,
                self.data.tolerances,
            )
        }

    def statuses(
        self, found: Alignment, late: set[int]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        count = self.data.promised.num_rows
        statuses = np.full(count, "present", dtype=object)
        reasons = np.full(count, None, dtype=object)
        above = self.data.run["first_offset"] >= self.data.covered.history_start_offset
        with_open = set(self.data.run["producer_id"][self.data.is_open & above].tolist())
        kept, marked = self._kept(found), self._marked(found)
        marked_until_ms = max((one.prepare_ms for one in marked.values()), default=NEVER)
        for number in np.flatnonzero(found.first_marker < 0):
            if int(number) in late:
                reasons[number] = "its marker came after Complete*"
                continue
            promise = self.data.promise_at(int(number), found)
            statuses[number], reasons[number] = promise_status(
                promise,
                partition=self.data.covered,
                coordinator=self.data.coordinator(promise.coordinator_partition),
                history_from_ms=self.data.history_from_ms,
                has_open_run=self._is_last(int(number), with_open),
                tolerances=self.data.tolerances,
                kept_ms=kept.get((promise.coordinator_partition, promise.leader_epoch)),
                marked=marked.get(promise.coordinator_partition),
                marked_until_ms=marked_until_ms,
            )
        return statuses, reasons

    def _kept(self, found: Alignment) -> dict[tuple[int, int | None], int]:
        """(coordinator partition, its epoch) -> earliest Complete* whose marker lies in complete history."""
        one = self.data.promise
        numbers = np.flatnonzero(found.first_marker >= 0)
        marker = found.first_marker[numbers]
        is_kept = self.data.markers.offset[marker] >= self.data.covered.history_start_offset
        is_kept &= np.isin(one["state"][numbers], COMPLETE) & (one["complete_ms"][numbers] != NONE)
        is_kept &= ~self.data.is_late(marker, numbers)
        kept: dict[tuple[int, int | None], int] = {}
        for number in numbers[is_kept]:
            if one["complete_leader_epoch"][number] == one["leader_epoch"][number]:
                key = (
                    int(one["coordinator_partition"][number]),
                    value(one["leader_epoch"][number]),
                )
                ms = int(one["complete_ms"][number])
                kept[key] = min(ms, kept.get(key, ms))
        return kept

    def _marked(self, found: Alignment) -> dict[int, Marked]:
        """Coordinator partition -> its newest decision whose marker certainly lies here.

        An epoch of version 2 names it; of those that only times tell, the last ones may be others' whose clock jumped,
        and so may all behind a clock that was put back.
        """
        one = self.data.promise
        numbers = np.flatnonzero((found.first_marker >= 0) & (one["prepare_offset"] != NONE))
        marked: dict[int, Marked] = {}
        for partition in np.unique(one["coordinator_partition"][numbers]):
            mine = numbers[one["coordinator_partition"][numbers] == partition]
            mine = mine[np.argsort(one["prepare_offset"][mine])]
            ms, is_named = one["prepare_ms"][mine], one["transaction_version"][mine] == 2
            is_timed = ~is_named & (
                ms >= np.maximum.accumulate(ms) - self.data.tolerances.clock_skew_ms
            )
            for ranked, rank in ((mine[is_named], 1), (mine[is_timed], MIN_VOTERS)):
                if len(ranked) >= rank:
                    at = ranked[-rank]
                    last = Marked(int(one["prepare_offset"][at]), int(one["prepare_ms"][at]))
                    marked[int(partition)] = max(marked.get(int(partition), last), last)
        return marked

    def _is_last(self, number: int, with_open: set[int]) -> bool:
        """Open data vouch for the last transaction of their producer only."""
        producer_id = int(self.data.promise["producer_id"][number])
        return producer_id in with_open and self.data.of_producer(producer_id)[-1] == number

    def rows(
        self, found: Alignment, statuses: np.ndarray[Any, Any], reasons: np.ndarray[Any, Any]
    ) -> Iterator[pa.RecordBatch]:
        first = found.first_marker
        has = first >= 0

        def marker(values: Longs) -> pa.Array:
            if not len(values):
                return pa.nulls(len(first), pa.int64())
            return nullable(np.where(has, values[np.maximum(first, 0)], NONE))

        yield from history_rows(
            self.data.promised,
            {
                "marker_offset": marker(self.data.markers.offset),
                "marker_type": marker(self.data.markers.type),
                "marker_epoch": marker(self.data.markers.epoch),
                "marker_ms": marker(self.data.markers.ms),
                "marker_count": pa.array(found.marker_count),
                "status": pa.array(statuses, pa.string()),
                "reason": pa.array(reasons, pa.string()),
            },
        )
