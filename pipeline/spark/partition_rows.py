"""Arrow in, Arrow out: alignment and judgement of one data partition's runs and promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.replay.alignment import NONE, Alignment, Longs, align
from pipeline.replay.clock import is_crowded
from pipeline.replay.evidence import Flags, borne_out, have_rivals, overtaken
from pipeline.replay.open_runs import judge_run
from pipeline.replay.ownership import Judgement, Run, judge_unaligned
from pipeline.spark.partition_input import KEYS, RUN, Coverage, Key, PartitionInput, value
from pipeline.spark.partition_output import history_rows, nullable
from pipeline.spark.partition_promises import Promised
from pipeline.spark.stateful import groups


def aligner(coverage: Coverage) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: runs and promises sorted by partition -> rows of `PARTITION_HISTORY`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in groups(batches, KEYS):
            copy, topic, number = (table.column(name)[0].as_py() for name in KEYS)
            is_run = pc.equal(table.column("kind"), RUN)
            runs, promised = table.filter(is_run), table.filter(pc.invert(is_run))
            yield from judged((copy, topic, number), runs, promised, coverage)

    return run


def judged(
    key: Key, runs: pa.Table, promised: pa.Table, coverage: Coverage
) -> Iterator[pa.RecordBatch]:
    """Rows of `PARTITION_HISTORY` of one data partition.

    Args:
        key: Copy, topic, partition.
        runs: Its runs with their place and the owners of their producers.
        promised: The transactions that list it.
        coverage: How far everything was read.
    """
    return _Partition(PartitionInput(key, runs, promised, coverage)).judged()


class _Partition:
    """Judges one data partition."""

    def __init__(self, data: PartitionInput) -> None:
        self.data = data
        self.promised = Promised(data)
        self.is_borne_out = np.zeros(len(data.order), np.bool_)

    def judged(self) -> Iterator[pa.RecordBatch]:
        """Rows of both kinds."""
        data = self.data
        evidence, may_precede = self._evidence()
        found = align(
            data.markers,
            data.promises,
            clock_skew_ms=data.tolerances.clock_skew_ms,
            is_evidence=evidence,
            may_precede=may_precede,
            ends_nothing=data.run["first_offset"][data.order] == NONE,
        )
        self.is_borne_out = borne_out(
            data.markers, data.promises, found, evidence, data.coordinator, data.tolerances
        )
        self.promised.mark_doubtful(found, evidence & ~self.is_borne_out)
        late = self.promised.late(found, self.is_borne_out)
        statuses, reasons = self.promised.statuses(found, late)
        if data.runs.num_rows:
            yield from self._run_rows(found, evidence, statuses)
        if data.promised.num_rows:
            yield from self.promised.rows(found, statuses, reasons)

    def _evidence(self) -> tuple[Flags, Flags]:
        """By marker: the coordinator's file holds its time; its transaction may lie before what that file holds."""
        inside = np.zeros(len(self.data.order), np.bool_)
        may_precede = self.data.markers.offset < self.data.covered.history_start_offset
        for partition in np.unique(self.data.markers.coordinator_partition):
            mine = self.data.markers.coordinator_partition == partition
            coverage = self.data.coordinator(int(partition))
            if coverage.is_read:
                skew = self.data.tolerances.clock_skew_ms
                may_precede |= mine & (self.data.markers.ms <= coverage.frontier_ms + skew)
                inside |= mine & (self.data.markers.ms < coverage.read_until_ms - skew)
        return inside & ~may_precede, may_precede

    def _run_rows(
        self, found: Alignment, evidence: Flags, statuses: np.ndarray[Any, Any]
    ) -> Iterator[pa.RecordBatch]:
        count = self.data.runs.num_rows
        alignments = np.full(count, "none", dtype=object)
        owner_offset = np.full(count, NONE, np.int64)
        owner_epoch = np.full(count, NONE, np.int64)
        promise_of = np.full(count, -1, np.int64)
        has = found.promise >= 0
        promise_of[self.data.order[has]] = found.promise[has]
        alignments[self.data.order] = np.where(has, "aligned", "context")
        alignments[self.data.order[found.is_ambiguous]] = "ambiguous"
        is_untimed = found.is_untimed & evidence
        alignments[self.data.order[is_untimed]] = "other_clock"
        is_first = np.zeros(len(self.data.order), np.bool_)
        is_first[found.first_marker[found.first_marker >= 0]] = True
        alignments[self.data.order[has & ~is_first]] = "resent"
        self._mark_differences(found, has & is_first, alignments)
        before, after = self.data.around()
        for at in np.flatnonzero(~has & ~found.is_ambiguous & ~is_untimed):
            number = self.data.order[at]
            alignments[number] = self._unaligned(
                int(at), bool(evidence[at]), value(before[number]), found
            )
        mine = np.flatnonzero(promise_of >= 0)
        owner_offset[mine] = self.data.promise["transaction_offset"][promise_of[mine]]
        owner_epoch[mine] = self.data.promise["producer_epoch"][promise_of[mine]]
        # That somebody aborted by hand is told by the clocks; that nobody had begun a transaction is not.
        is_told = np.ones(count, np.bool_)
        is_told[self.data.order] = has | self.is_borne_out
        is_told |= alignments != "manual_abort"
        firm = np.where(is_told, alignments, "in_flight")
        judgements = self._judgements(found, firm, promise_of, statuses)
        # The owner's id, or that of the transaction which was found.
        promised = self.data.names.take(pa.array(promise_of, mask=promise_of < 0))
        ids = pc.coalesce(self.data.runs.column("transactional_id"), promised)
        yield from history_rows(
            self.data.runs,
            {
                "transactional_id": ids,
                "transaction_offset": nullable(owner_offset),
                "transaction_epoch": nullable(owner_epoch),
                "alignment": pa.array(alignments, pa.string()),
                "before_ms": nullable(before),
                "after_ms": nullable(after),
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
        outcome = self.data.promises.outcome[number]
        kind = self.data.markers.type[at]
        other = (kind != outcome) & (kind != NONE) & (outcome != NONE)
        alignments[self.data.order[at[other]]] = "wrong_outcome"
        epoch = (self.data.markers.epoch[at] != self.data.promises.prepare_epoch[number]) & ~other
        alignments[self.data.order[at[epoch]]] = "wrong_epoch"
        # A marker before it may have been cut away, unless history holds the time of the decision.
        known = self.data.promises.prepare_ms[number] - self.data.tolerances.clock_skew_ms
        late = self.data.is_late(at, number) & (known > self.data.whole_from_ms) & ~other & ~epoch
        late &= ~found.is_untimed[at]
        late &= ~self._is_clock(at, late)
        is_doubtful = have_rivals(
            at, number, late, self.data.markers, self.data.promises, found, self.data.tolerances
        )
        alignments[self.data.order[at[is_doubtful]]] = "ambiguous"
        late &= ~is_doubtful
        # Behind a stop nothing follows that could tell. Of running brokers a later copy will.
        is_sure = bool(self.data.covered.stamps) | overtaken(
            late,
            self.data.markers.coordinator_partition[at],
            self.data.promise["prepare_offset"][number],
            self.data.promise["complete_offset"][number],
        )
        alignments[self.data.order[at[late & is_sure]]] = "early_completion"
        alignments[self.data.order[at[late & ~is_sure]]] = "other_clock"

    def _is_clock(self, at: Longs, late: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Markers behind Complete* in a crowd of such: that is the clock of one of the brokers."""
        result = np.zeros(len(at), np.bool_)
        markers = self.data.markers
        group = np.stack((markers.leader_epoch[at], markers.coordinator_partition[at]))
        for pair in np.unique(group[:, late], axis=1).T:
            mine = np.flatnonzero((group == pair[:, None]).all(axis=0))
            result[mine] = is_crowded(late[mine])
        return result

    def _unaligned(self, at: int, evidence: bool, before_ms: int | None, found: Alignment) -> str:
        markers = self.data.markers
        coordinator = self.data.coordinator(int(markers.coordinator_partition[at]))
        promises = (
            [
                self.data.promise_at(n, found)
                for n in self.data.of_producer(int(markers.producer_id[at]))
            ]
            if evidence
            else []
        )
        said = judge_unaligned(
            value(markers.ms[at]),
            value(markers.type[at]),
            value(markers.epoch[at]),
            promises=promises,
            coordinator=coordinator,
            is_below_history=bool(markers.offset[at] < self.data.covered.history_start_offset),
            has_data=bool(self.data.run["first_offset"][self.data.order[at]] != NONE),
            before_ms=before_ms,
            ahead_ms=(int(found.low[at]), int(found.high[at])),
            whole_from_ms=self.data.whole_from_ms,
            tolerances=self.data.tolerances,
        )
        is_accused = said in ("torn", "unexpected", "early_completion")
        return "in_flight" if is_accused and not self.is_borne_out[at] else said

    def _judgements(
        self,
        found: Alignment,
        alignments: np.ndarray[Any, Any],
        promise_of: Longs,
        statuses: np.ndarray[Any, Any],
    ) -> list[Judgement]:
        run = self.data.run
        before, after = self.data.around()
        epoch_of = (
            np.where(
                promise_of >= 0,
                self.data.promise["producer_epoch"][np.maximum(promise_of, 0)],
                NONE,
            )
            if len(self.data.promise["producer_epoch"])
            else np.full(len(promise_of), NONE, np.int64)
        )
        special = (
            self.data.is_open
            | (run["min_epoch"] != run["max_epoch"])
            | (epoch_of > run["max_epoch"])
        )
        special |= np.isin(alignments, ("manual_abort", "unexpected"))
        special |= run["first_append_ms"] != NONE
        result = [Judgement(None, None, None, None)] * len(promise_of)
        for number in np.flatnonzero(special & self.data.is_transactional):
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
        values = {name: value(column[number]) for name, column in self.data.run.items()}
        partition = int(self.data.run["coordinator_partition"][number])
        numbers = self.data.of_producer(int(self.data.run["producer_id"][number]))
        aligned = int(promise_of[number])
        return judge_run(
            Run(
                int(self.data.run["producer_id"][number]),
                values["first_offset"],
                values["min_epoch"],
                values["max_epoch"],
                bool(self.data.is_open[number]),
                True,
                values["first_append_ms"],
                values["marker_offset"],
                values["marker_ms"],
                values["marker_type"],
                values["marker_epoch"],
                value(before[number]),
                value(after[number]),
                values["max_epoch_before"],
                self.data.last_ms,
                *self._clock(number, found),
            ),
            str(alignments[number]),
            self.data.promise_at(aligned, found) if aligned >= 0 else None,
            [self.data.promise_at(one, found) for one in numbers],
            self.data.owner_at(number),
            partition=self.data.covered,
            coordinator=self.data.coordinator(partition),
            everything=self.data.everything,
            statuses={at: str(statuses[one]) for at, one in enumerate(numbers)},
            tolerances=self.data.tolerances,
        )

    def _clock(self, number: int, found: Alignment) -> tuple[int, int]:
        """By how much the clock of a run's marker is ahead of the coordinator's: least, greatest."""
        at = np.searchsorted(self.data.markers.offset, self.data.run["marker_offset"][number])
        if at == len(self.data.markers.offset):
            return -self.data.tolerances.clock_skew_ms, self.data.tolerances.clock_skew_ms
        return int(found.low[at]), int(found.high[at])
