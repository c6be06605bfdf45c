"""One data partition's runs and promises as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.replay.alignment import NONE, OPEN_END, Alignment, Longs, Markers, Promises
from pipeline.replay.coverage import (
    NEVER,
    NO_COORDINATOR,
    NOT_COPIED,
    CoordinatorCoverage,
    PartitionCoverage,
    Tolerances,
    certain_until,
)
from pipeline.replay.ownership import OwnerState
from pipeline.replay.promises import Promise
from pipeline.replay.transaction_state import COMPLETE

KEYS = ("copy", "topic", "partition")
Key = tuple[int, str, int]
RUN, PROMISE = "partition_txn", "transaction_partition"


class Coverage(NamedTuple):
    """How far everything was read; small, and sent to every task.

    Attributes:
        partitions: (copy, topic, partition) -> its replayed replica.
        coordinators: (copy, partition of `__transaction_state`) -> coverage.
        everything: copy -> all coordinator partitions together.
        tolerances: Configured patience.
    """

    partitions: dict[tuple[int, str, int], PartitionCoverage]
    coordinators: dict[tuple[int, int], CoordinatorCoverage]
    everything: dict[int, CoordinatorCoverage]
    tolerances: Tolerances


def longs(table: pa.Table, name: str, null: int = NONE) -> Longs:
    """A column as numbers; a null becomes `null`."""
    column = pc.fill_null(pc.cast(table.column(name), pa.int64()), null)
    return np.asarray(column.to_numpy(), dtype=np.int64)


def value(number: int) -> int | None:
    """A number of `longs` as Python takes it."""
    return None if number in (NONE, OPEN_END) else int(number)


class PartitionInput:
    """One data partition: its runs, the transactions that list it, and how far it was read.

    Attributes:
        runs: Rows of runs.
        promised: Rows of promises.
        run: Column -> numbers of `runs`.
        promise: Column -> numbers of `promised`.
        markers: Markers of the runs, by offset.
        order: For each marker the number of its run.
        promises: Promises as the alignment takes them.
        covered: How far the partition was read.
        everything: How far the coordinators were read.
        doubtful: Promises that an ambiguous marker fits.
    """

    def __init__(self, key: Key, runs: pa.Table, promised: pa.Table, coverage: Coverage) -> None:
        self.coverage = coverage
        self.tolerances = coverage.tolerances
        self.copy = key[0]
        self.covered = coverage.partitions.get(key, NOT_COPIED)
        self.everything = coverage.everything.get(self.copy, NO_COORDINATOR)
        self.doubtful: set[int] = set()
        self.runs = runs
        self.promised = promised
        self._read_runs()
        self._read_promises()

    def _read_runs(self) -> None:
        names = (
            "first_offset",
            "min_epoch",
            "max_epoch",
            "first_append_ms",
            "marker_offset",
            "marker_ms",
            "marker_type",
            "marker_epoch",
            "marker_coordinator_epoch",
            "marker_leader_epoch",
            "producer_id",
            "coordinator_partition",
            "max_epoch_before",
        )
        self.run = {name: longs(self.runs, name) for name in names}
        self.is_open = np.asarray(self.runs.column("is_open").to_numpy(), dtype=np.bool_)
        self.is_transactional = np.asarray(
            self.runs.column("is_transactional").to_numpy(), np.bool_
        )
        has_marker = np.flatnonzero(self.run["marker_offset"] != NONE)
        order = has_marker[np.argsort(self.run["marker_offset"][has_marker], kind="stable")]
        self.order = order
        take = {name: values[order] for name, values in self.run.items()}
        self.markers = Markers(
            take["marker_offset"],
            take["marker_ms"],
            take["producer_id"],
            take["marker_epoch"],
            take["marker_type"],
            take["marker_leader_epoch"],
            take["marker_coordinator_epoch"],
            take["coordinator_partition"],
        )
        known = (self.markers.ms != NONE) & (
            self.markers.offset >= self.covered.history_start_offset
        )
        self.timed = np.flatnonzero(self.markers.ms != NONE)
        times = self.markers.ms[known]
        self.history_from_ms = int(times.min()) if len(times) else OPEN_END
        is_whole = self.covered.history_start_offset == 0
        self.whole_from_ms = NEVER if is_whole else self.history_from_ms
        self.last_ms = int(times[-1]) if len(times) else None
        self.covered = self.covered._replace(read_until_ms=self._read_until_ms())

    def _read_until_ms(self) -> int:
        """How far the partition's file goes for certain, by the times in it that its leaders stamped."""
        begun = np.flatnonzero(self.run["first_append_ms"] != NONE)
        offsets = np.concatenate((self.markers.offset[self.timed], self.run["first_offset"][begun]))
        times = np.concatenate((self.markers.ms[self.timed], self.run["first_append_ms"][begun]))
        return certain_until(
            self.covered.read_until_ms,
            times[np.argsort(offsets, kind="stable")],
            self.covered.stamps,
            self.tolerances.patience_ms,
        )

    def _read_promises(self) -> None:
        names = (
            "producer_id",
            "producer_epoch",
            "prepare_epoch",
            "outcome",
            "transaction_version",
            "added_ms",
            "prepare_offset",
            "prepare_ms",
            "complete_offset",
            "complete_ms",
            "prepare_leader_epoch",
            "complete_leader_epoch",
            "coordinator_partition",
            "transaction_offset",
            "state",
            "txn_timeout_ms",
            "start_ms",
            "leader_epoch",
        )
        self.promise = {name: longs(self.promised, name) for name in names}
        one = self.promise
        is_done = np.isin(one["state"], COMPLETE)
        self.promises = Promises(
            one["producer_id"],
            one["producer_epoch"],
            one["prepare_epoch"],
            one["outcome"],
            one["transaction_version"],
            one["added_ms"],
            one["prepare_offset"],
            one["prepare_ms"],
            np.where(is_done & (one["complete_ms"] != NONE), one["complete_ms"], OPEN_END),
            one["prepare_leader_epoch"],
            one["complete_leader_epoch"],
        )
        self.by_producer: dict[int, list[int]] = {}
        if len(one["producer_id"]):
            order = np.lexsort((one["transaction_offset"], one["producer_id"]))
            self.producer_order = order
            self.producer_keys = one["producer_id"][order]
        self.names = self.promised.column("transactional_id")

    def coordinator(self, partition: int) -> CoordinatorCoverage:
        if partition == NONE:
            return self.everything
        return self.coverage.coordinators.get((self.copy, partition), NO_COORDINATOR)

    def promise_at(self, number: int, found: Alignment) -> Promise:
        one = self.promise
        return Promise(
            transactional_id=self.names[number].as_py(),
            transaction_offset=int(one["transaction_offset"][number]),
            coordinator_partition=int(one["coordinator_partition"][number]),
            epoch=int(one["producer_epoch"][number]),
            prepare_epoch=value(one["prepare_epoch"][number]),
            state=int(one["state"][number]),
            outcome=value(one["outcome"][number]),
            version=int(one["transaction_version"][number]),
            timeout_ms=int(one["txn_timeout_ms"][number]),
            start_ms=value(one["start_ms"][number]),
            added_ms=value(one["added_ms"][number]),
            prepare_ms=value(one["prepare_ms"][number]),
            complete_ms=value(one["complete_ms"][number]),
            prepare_leader_epoch=value(one["prepare_leader_epoch"][number]),
            has_marker=bool(found.first_marker[number] >= 0),
            leader_epoch=value(one["leader_epoch"][number]),
            has_ambiguous=number in self.doubtful,
            complete_offset=value(one["complete_offset"][number]),
            complete_leader_epoch=value(one["complete_leader_epoch"][number]),
        )

    def is_late(self, marker: Longs, promise: Longs) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Markers behind their transaction's Complete* by more than two clocks may differ."""
        until = self.promises.complete_ms[promise] + self.tolerances.clock_skew_ms
        return np.asarray(self.markers.ms[marker] > until)

    def of_producer(self, producer_id: int) -> list[int]:
        if not self.promised.num_rows:
            return []
        first = int(np.searchsorted(self.producer_keys, producer_id, side="left"))
        last = int(np.searchsorted(self.producer_keys, producer_id, side="right"))
        return [int(number) for number in self.producer_order[first:last]]

    def owner_at(self, number: int) -> OwnerState | None:
        row = {
            name: self.runs.column(name)[number].as_py()
            for name in (
                "transactional_id",
                "coordinator_partition",
                "owner_is_current",
                "owner_state",
                "owner_epoch",
                "owner_version",
                "owner_append_ms",
            )
        }
        if row["transactional_id"] is None:
            return None
        return OwnerState(*row.values())

    def around(self) -> tuple[Longs, Longs]:
        """Time of the last marker before each run's first offset, and of the first one behind it."""
        offsets, times = self.markers.offset[self.timed], self.markers.ms[self.timed]
        count = len(self.run["first_offset"])
        if not len(offsets):
            return np.full(count, NONE, np.int64), np.full(count, NONE, np.int64)
        at = np.searchsorted(offsets, self.run["first_offset"])
        before = np.where(at > 0, times[np.maximum(at - 1, 0)], NONE)
        after = np.where(at < len(offsets), times[np.minimum(at, len(offsets) - 1)], NONE)
        return before, after
