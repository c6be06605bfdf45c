"""Arrow in, Arrow out: alignment and judgement of one data partition's runs and promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.replay.alignment import NONE, OPEN_END, Alignment, Longs, Markers, Promises, align
from pipeline.replay.coordinator import COMPLETE
from pipeline.replay.coverage import (
    NEVER,
    NO_COORDINATOR,
    NOT_COPIED,
    CoordinatorCoverage,
    PartitionCoverage,
    Tolerances,
)
from pipeline.replay.open_runs import judge_run
from pipeline.replay.ownership import (
    Judgement,
    OwnerState,
    Promise,
    Run,
    is_late_marker,
    judge_unaligned,
    promise_status,
)
from pipeline.spark.arrow import arrow_schema
from pipeline.spark.stateful import groups
from schemas.silver import PARTITION_HISTORY

KEYS = ("copy", "topic", "partition")
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


def aligner(coverage: Coverage) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: runs and promises sorted by partition -> rows of `PARTITION_HISTORY`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in groups(batches, KEYS):
            yield from _Partition(table, coverage).judged()

    return run


def _longs(table: pa.Table, name: str, null: int = NONE) -> Longs:
    column = pc.fill_null(pc.cast(table.column(name), pa.int64()), null)
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _value(number: int) -> int | None:
    return None if number in (NONE, OPEN_END) else int(number)


class _Partition:
    """One data partition: its runs, the transactions that list it, and how far it was read."""

    def __init__(self, table: pa.Table, coverage: Coverage) -> None:
        self.coverage = coverage
        self.tolerances = coverage.tolerances
        copy, topic, number = (table.column(name)[0].as_py() for name in KEYS)
        self.copy = copy
        self.covered = coverage.partitions.get((copy, topic, number), NOT_COPIED)
        self.everything = coverage.everything.get(copy, NO_COORDINATOR)
        self.doubtful: set[int] = set()
        is_run = pc.equal(table.column("kind"), RUN)
        self.runs = table.filter(is_run)
        self.promised = table.filter(pc.invert(is_run))
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
        self.run = {name: _longs(self.runs, name) for name in names}
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
        self.last_ms = int(times.max()) if len(times) else None

    def _read_promises(self) -> None:
        names = (
            "producer_id",
            "producer_epoch",
            "prepare_epoch",
            "outcome",
            "transaction_version",
            "added_ms",
            "prepare_ms",
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
        self.promise = {name: _longs(self.promised, name) for name in names}
        one = self.promise
        is_done = np.isin(one["state"], COMPLETE)
        self.promises = Promises(
            one["producer_id"],
            one["producer_epoch"],
            one["prepare_epoch"],
            one["outcome"],
            one["transaction_version"],
            one["added_ms"],
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

    def _coordinator(self, partition: int) -> CoordinatorCoverage:
        if partition == NONE:
            return self.everything
        return self.coverage.coordinators.get((self.copy, partition), NO_COORDINATOR)

    def judged(self) -> Iterator[pa.RecordBatch]:
        """Rows of both kinds."""
        evidence = self._evidence()
        found = align(
            self.markers,
            self.promises,
            clock_skew_ms=self.tolerances.clock_skew_ms,
            is_evidence=evidence,
        )
        self._mark_doubtful(found)
        statuses, reasons = self._statuses(found, self._late_promises(found, evidence))
        if self.runs.num_rows:
            yield from self._run_rows(found, evidence, statuses)
        if self.promised.num_rows:
            yield from self._promise_rows(found, statuses, reasons)

    def _evidence(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        result = np.zeros(len(self.order), np.bool_)
        above = self.markers.offset >= self.covered.history_start_offset
        for partition in np.unique(self.markers.coordinator_partition):
            mine = self.markers.coordinator_partition == partition
            coverage = self._coordinator(int(partition))
            if coverage.is_read:
                skew = self.tolerances.clock_skew_ms
                late = self.markers.ms > coverage.frontier_ms + skew
                early = self.markers.ms < coverage.read_until_ms - skew
                result |= mine & late & early & above
        return result

    def _promise(self, number: int, found: Alignment) -> Promise:
        one = self.promise
        return Promise(
            transactional_id=self.names[number].as_py(),
            transaction_offset=int(one["transaction_offset"][number]),
            coordinator_partition=int(one["coordinator_partition"][number]),
            epoch=int(one["producer_epoch"][number]),
            prepare_epoch=_value(one["prepare_epoch"][number]),
            state=int(one["state"][number]),
            outcome=_value(one["outcome"][number]),
            version=int(one["transaction_version"][number]),
            timeout_ms=int(one["txn_timeout_ms"][number]),
            start_ms=_value(one["start_ms"][number]),
            added_ms=_value(one["added_ms"][number]),
            prepare_ms=_value(one["prepare_ms"][number]),
            complete_ms=_value(one["complete_ms"][number]),
            prepare_leader_epoch=_value(one["prepare_leader_epoch"][number]),
            has_marker=bool(found.first_marker[number] >= 0),
            leader_epoch=_value(one["leader_epoch"][number]),
            has_ambiguous=number in self.doubtful,
        )

    def _mark_doubtful(self, found: Alignment) -> None:
        """Promises that an ambiguous marker fits: nobody knows whether they were kept."""
        one, skew = self.promise, self.tolerances.clock_skew_ms
        until = self.promises.complete_ms
        for at in np.flatnonzero(found.is_ambiguous):
            ms, epoch = int(self.markers.ms[at]), int(self.markers.epoch[at])
            self.doubtful |= {
                number
                for number in self._of_producer(int(self.markers.producer_id[at]))
                if one["prepare_epoch"][number] == epoch
                and one["prepare_ms"][number] - skew <= ms <= until[number] + skew
            }

    def _late_promises(self, found: Alignment, evidence: np.ndarray[Any, Any]) -> set[int]:
        """Promises whose marker came only after Complete* (versions 0 and 1, whose epochs name nothing)."""
        markers = self.markers
        alone = evidence & (found.promise < 0) & ~found.is_ambiguous & (markers.type == 1)
        return {
            number
            for at in np.flatnonzero(alone)
            for number in self._of_producer(int(markers.producer_id[at]))
            if is_late_marker(
                int(markers.ms[at]),
                1,
                int(markers.epoch[at]),
                self._promise(number, found),
                self.whole_from_ms,
                self.tolerances,
            )
        }

    def _statuses(
        self, found: Alignment, late: set[int]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        count = self.promised.num_rows
        statuses = np.full(count, "present", dtype=object)
        reasons = np.full(count, None, dtype=object)
        above = self.run["first_offset"] >= self.covered.history_start_offset
        with_open = set(self.run["producer_id"][self.is_open & above].tolist())
        kept = self._kept(found)
        for number in np.flatnonzero(found.first_marker < 0):
            if int(number) in late:
                reasons[number] = "its marker came after Complete*"
                continue
            promise = self._promise(int(number), found)
            statuses[number], reasons[number] = promise_status(
                promise,
                partition=self.covered,
                coordinator=self._coordinator(promise.coordinator_partition),
                history_from_ms=self.history_from_ms,
                has_open_run=self._is_last(int(number), with_open),
                tolerances=self.tolerances,
                kept_ms=kept.get((promise.coordinator_partition, promise.leader_epoch)),
            )
        return statuses, reasons

    def _kept(self, found: Alignment) -> dict[tuple[int, int | None], int]:
        """(coordinator partition, its epoch) -> earliest Complete* whose marker lies in complete history."""
        one = self.promise
        numbers = np.flatnonzero(found.first_marker >= 0)
        marker = found.first_marker[numbers]
        is_kept = self.markers.offset[marker] >= self.covered.history_start_offset
        is_kept &= np.isin(one["state"][numbers], COMPLETE) & (one["complete_ms"][numbers] != NONE)
        is_kept &= ~self._is_late(marker, numbers)
        kept: dict[tuple[int, int | None], int] = {}
        for number in numbers[is_kept]:
            if one["complete_leader_epoch"][number] == one["leader_epoch"][number]:
                key = (
                    int(one["coordinator_partition"][number]),
                    _value(one["leader_epoch"][number]),
                )
                ms = int(one["complete_ms"][number])
                kept[key] = min(ms, kept.get(key, ms))
        return kept

    def _is_late(self, marker: Longs, promise: Longs) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Markers behind their transaction's Complete* by more than two clocks may differ."""
        until = self.promises.complete_ms[promise] + self.tolerances.clock_skew_ms
        return np.asarray(self.markers.ms[marker] > until)

    def _is_last(self, number: int, with_open: set[int]) -> bool:
        """Open data vouch for the last transaction of their producer only."""
        producer_id = int(self.promise["producer_id"][number])
        return producer_id in with_open and self._of_producer(producer_id)[-1] == number

    def _of_producer(self, producer_id: int) -> list[int]:
        if not self.promised.num_rows:
            return []
        first = int(np.searchsorted(self.producer_keys, producer_id, side="left"))
        last = int(np.searchsorted(self.producer_keys, producer_id, side="right"))
        return [int(number) for number in self.producer_order[first:last]]

    def _run_rows(
        self, found: Alignment, evidence: np.ndarray[Any, Any], statuses: np.ndarray[Any, Any]
    ) -> Iterator[pa.RecordBatch]:
        count = self.runs.num_rows
        alignments = np.full(count, "none", dtype=object)
        owner_offset = np.full(count, NONE, np.int64)
        owner_epoch = np.full(count, NONE, np.int64)
        promise_of = np.full(count, -1, np.int64)
        has = found.promise >= 0
        promise_of[self.order[has]] = found.promise[has]
        alignments[self.order] = np.where(has, "aligned", "context")
        alignments[self.order[found.is_ambiguous]] = "ambiguous"
        is_first = np.zeros(len(self.order), np.bool_)
        is_first[found.first_marker[found.first_marker >= 0]] = True
        alignments[self.order[has & ~is_first]] = "resent"
        self._mark_differences(found, has & is_first, alignments)
        for at in np.flatnonzero(~has & ~found.is_ambiguous):
            alignments[self.order[at]] = self._unaligned(int(at), bool(evidence[at]), found)
        mine = np.flatnonzero(promise_of >= 0)
        owner_offset[mine] = self.promise["transaction_offset"][promise_of[mine]]
        owner_epoch[mine] = self.promise["producer_epoch"][promise_of[mine]]
        judgements = self._judgements(found, alignments, promise_of, statuses)
        before, after = self._around()
        ids = self.runs.column("transactional_id").to_pylist()
        for number in mine:
            if ids[number] is None:
                ids[number] = self.names[int(promise_of[number])].as_py()
        yield _rows(
            self.runs,
            {
                "transactional_id": pa.array(ids, pa.string()),
                "transaction_offset": _nullable(owner_offset),
                "transaction_epoch": _nullable(owner_epoch),
                "alignment": pa.array(alignments, pa.string()),
                "before_ms": _nullable(before),
                "after_ms": _nullable(after),
                **{
                    name: pa.array([getattr(item, name) for item in judgements], pa.string())
                    for name in Judgement._fields
                },
            },
        )

    def _mark_differences(
        self, found: Alignment, first: np.ndarray[Any, Any], alignments: np.ndarray[Any, Any]
    ) -> None:
        """Aligned first markers whose type or epoch is not what the coordinator decided."""
        at = np.flatnonzero(first)
        number = found.promise[at]
        outcome = self.promises.outcome[number]
        kind = self.markers.type[at]
        other = (kind != outcome) & (kind != NONE) & (outcome != NONE)
        alignments[self.order[at[other]]] = "wrong_outcome"
        epoch = (self.markers.epoch[at] != self.promises.prepare_epoch[number]) & ~other
        alignments[self.order[at[epoch]]] = "wrong_epoch"
        # A marker before it may have been cut away, unless history holds the time of the decision.
        known = self.promises.prepare_ms[number] - self.tolerances.clock_skew_ms
        late = self._is_late(at, number) & (known > self.whole_from_ms) & ~other & ~epoch
        alignments[self.order[at[late]]] = "early_completion"

    def _unaligned(self, at: int, evidence: bool, found: Alignment) -> str:
        markers = self.markers
        coordinator = self._coordinator(int(markers.coordinator_partition[at]))
        promises = (
            [self._promise(n, found) for n in self._of_producer(int(markers.producer_id[at]))]
            if evidence
            else []
        )
        return judge_unaligned(
            _value(markers.ms[at]),
            _value(markers.type[at]),
            _value(markers.epoch[at]),
            promises=promises,
            coordinator=coordinator,
            is_below_history=bool(markers.offset[at] < self.covered.history_start_offset),
            whole_from_ms=self.whole_from_ms,
            tolerances=self.tolerances,
        )

    def _around(self) -> tuple[Longs, Longs]:
        """Time of the last marker before each run's first offset, and of the first one behind it."""
        offsets, times = self.markers.offset[self.timed], self.markers.ms[self.timed]
        count = len(self.run["first_offset"])
        if not len(offsets):
            return np.full(count, NONE, np.int64), np.full(count, NONE, np.int64)
        at = np.searchsorted(offsets, self.run["first_offset"])
        before = np.where(at > 0, times[np.maximum(at - 1, 0)], NONE)
        after = np.where(at < len(offsets), times[np.minimum(at, len(offsets) - 1)], NONE)
        return before, after

    def _judgements(
        self,
        found: Alignment,
        alignments: np.ndarray[Any, Any],
        promise_of: Longs,
        statuses: np.ndarray[Any, Any],
    ) -> list[Judgement]:
        run = self.run
        before, after = self._around()
        epoch_of = (
            np.where(
                promise_of >= 0, self.promise["producer_epoch"][np.maximum(promise_of, 0)], NONE
            )
            if len(self.promise["producer_epoch"])
            else np.full(len(promise_of), NONE, np.int64)
        )
        special = (
            self.is_open | (run["min_epoch"] != run["max_epoch"]) | (epoch_of > run["max_epoch"])
        )
        special |= np.isin(alignments, ("manual_abort", "unexpected"))
        special |= run["first_append_ms"] != NONE
        result = [Judgement(None, None, None, None)] * len(promise_of)
        for number in np.flatnonzero(special & self.is_transactional):
            result[number] = self._judge(
                int(number), found, alignments, promise_of, statuses, before, after
            )
        return result

    def _judge(
        self,
        number: int,
        found: Alignment,
        alignments: np.ndarray[Any, Any],
        promise_of: Longs,
        statuses: np.ndarray[Any, Any],
        before: Longs,
        after: Longs,
    ) -> Judgement:
        value = {name: _value(values[number]) for name, values in self.run.items()}
        partition = int(self.run["coordinator_partition"][number])
        numbers = self._of_producer(int(self.run["producer_id"][number]))
        aligned = int(promise_of[number])
        return judge_run(
            Run(
                int(self.run["producer_id"][number]),
                value["first_offset"],
                value["min_epoch"],
                value["max_epoch"],
                bool(self.is_open[number]),
                True,
                value["first_append_ms"],
                value["marker_offset"],
                value["marker_ms"],
                value["marker_type"],
                value["marker_epoch"],
                _value(before[number]),
                _value(after[number]),
                value["max_epoch_before"],
                self.last_ms,
                *self._clock(number, found),
            ),
            str(alignments[number]),
            self._promise(aligned, found) if aligned >= 0 else None,
            [self._promise(one, found) for one in numbers],
            self._owner(number),
            partition=self.covered,
            coordinator=self._coordinator(partition),
            everything=self.everything,
            statuses={at: str(statuses[one]) for at, one in enumerate(numbers)},
            tolerances=self.tolerances,
        )

    def _clock(self, number: int, found: Alignment) -> tuple[int, int]:
        """By how much the clock of a run's marker is ahead of the coordinator's: least, greatest."""
        at = np.searchsorted(self.markers.offset, self.run["marker_offset"][number])
        if at == len(self.markers.offset):
            return -self.tolerances.clock_skew_ms, self.tolerances.clock_skew_ms
        return int(found.low[at]), int(found.high[at])

    def _owner(self, number: int) -> OwnerState | None:
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

    def _promise_rows(
        self, found: Alignment, statuses: np.ndarray[Any, Any], reasons: np.ndarray[Any, Any]
    ) -> Iterator[pa.RecordBatch]:
        first = found.first_marker
        has = first >= 0

        def marker(values: Longs) -> pa.Array:
            if not len(values):
                return pa.nulls(len(first), pa.int64())
            return _nullable(np.where(has, values[np.maximum(first, 0)], NONE))

        yield _rows(
            self.promised,
            {
                "marker_offset": marker(self.markers.offset),
                "marker_type": marker(self.markers.type),
                "marker_epoch": marker(self.markers.epoch),
                "marker_ms": marker(self.markers.ms),
                "marker_count": pa.array(found.marker_count),
                "status": pa.array(statuses, pa.string()),
                "reason": pa.array(reasons, pa.string()),
            },
        )


def _nullable(values: Longs) -> pa.Array:
    return pa.array(values, mask=values == NONE)


def _rows(table: pa.Table, computed: dict[str, pa.Array]) -> pa.RecordBatch:
    """The input's columns and the computed ones, in the physical schema."""
    arrays = []
    for field in arrow_schema(PARTITION_HISTORY):
        column = computed.get(field.name)
        if column is None and field.name in table.column_names:
            column = table.column(field.name).combine_chunks()
        if column is None:
            column = pa.nulls(table.num_rows, field.type)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        arrays.append(column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(PARTITION_HISTORY))
