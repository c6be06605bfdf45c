"""What the timelines of many findings need of the run's tables, read in one go and bounded.

A transaction spans partitions: its run in the finding's partition names the transaction, the transaction
names its runs elsewhere, and each run says which batches lie in it. So the batches of a producer
that wrote millions are passed over, but those near a finding are held.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.report.causes import Finding
from pipeline.report.facts import Facts, Row
from pipeline.report.nearest import Groups, Selection, grouped, nearest
from pipeline.report.timeline_names import Names
from schemas import bronze, silver
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

_NEWEST = 2**62
_RUNS = (
    "replica_id", "topic", "partition", "producer_id", "run_number", "is_open", "first_offset",
    "last_offset", "marker_offset", "marker_type", "marker_ms", "marker_epoch", "before_ms", "after_ms",
    "coordinator_partition", "transaction_offset",
)  # fmt: skip
_BATCHES = (
    "replica_id", "producer_id", "producer_epoch", "base_offset", "last_offset", "max_timestamp_ms",
    "timestamp_type", "is_control",
)  # fmt: skip
_STEPS = (
    "transactional_id", "producer_id", "producer_epoch", "coordinator_partition", "offset",
    "append_ms", "state", "cause",
)  # fmt: skip
_COMMITS = (
    "group_id", "topic", "partition", "offsets_partition", "record_offset", "committed_offset",
    "append_ms", "outcome", "producer_id",
)  # fmt: skip
SPREAD = 100
"""Runs of a producer on each side of a finding, and open ones: a transaction has one in each of its partitions."""
Points = dict[int, set[int]]


class TimelineRows:
    """Rows near findings.

    Args:
        facts: The run's tables.
        findings: Those whose timelines will be asked for.
    """

    def __init__(self, facts: Facts, findings: Sequence[Finding]) -> None:
        self._facts = facts
        self._names = Names(facts.owners() if findings else [])
        self._all_producers = {one for each in findings for one in self._names.producers(each)} - {
            -1
        }
        self._all_ids = {name for one in findings for name in self._names.ids(one)}
        self._groups = {one["group_id"] for one in findings} - {None}
        replayed = [one for one in facts.replicas if one["is_replayed"]]
        self._place = {one["replica_id"]: (one["topic"], one["partition"]) for one in replayed}
        self._replicas = {
            place: [one["replica_id"] for one in held]
            for place, held in grouped(replayed, "topic", "partition").items()
        }
        self._writers = Groups({"replica_id": self._place, "producer_id": self._all_producers})
        self._producers = Groups({"producer_id": self._all_producers})
        self._read_runs(findings)
        self._read_batches(findings)
        self._read_steps(findings)
        self._read_commits(findings)
        self.generations = grouped(facts.generations(self._groups), "group_id")

    def own_run(self, finding: Finding) -> Row | None:
        """The run that the finding lies in."""
        at = finding["first_offset"]
        for row in self._runs_of(finding, (finding["topic"], finding["partition"])):
            ends = [row[name] for name in ("last_offset", "marker_offset") if row[name] is not None]
            first = row["first_offset"] if row["first_offset"] is not None else row["marker_offset"]
            if at is not None and ends and first <= at <= max(ends):
                return row
        return None

    def runs(self, finding: Finding) -> list[Row]:
        """Runs of its producers, in every partition."""
        return self._runs_of(finding, None)

    def batches(self, finding: Finding) -> list[Row]:
        """Data batches of its producers, in every partition; offset commits tell those of `__consumer_offsets`."""
        return [
            one
            for producer in self._names.producers(finding)
            for one in self._batches.get(producer, ())
        ]

    def steps(self, finding: Finding) -> list[Row]:
        """Coordinator records of its transactional ids, in log order."""
        return [one for name in self._names.ids(finding) for one in self._steps.get(name, ())]

    def commits(self, finding: Finding) -> list[Row]:
        """Offset commits: those of its group for its partition, and those of its producers."""
        key = (finding["group_id"], finding["topic"], finding["partition"])
        of_group = self._commits_of_place.get(key, ()) if finding["group_id"] else ()
        found = {(one["offsets_partition"], one["record_offset"]): one for one in of_group}
        for producer in self._names.producers(finding):
            for one in self._commits.get(producer, ()):
                found[one["offsets_partition"], one["record_offset"]] = one
        return list(found.values())

    def total(self, finding: Finding) -> int:
        """How many events all of these tables hold for it, near or not."""
        found = sum(self._step_count[name] for name in self._names.ids(finding))
        for producer in self._names.producers(finding):
            found += sum(
                held[producer]
                for held in (self._batch_count, self._marker_count, self._commit_count)
            )
        if finding["group_id"] is not None:
            key = (finding["group_id"], finding["topic"], finding["partition"])
            found += self._group_count[key]
            found -= sum(self._both_count[*key, one] for one in self._names.producers(finding))
        return found

    def _runs_of(self, finding: Finding, place: tuple[str, int] | None) -> list[Row]:
        return [
            one
            for producer in self._names.producers(finding)
            for one in self._runs.get(producer, ())
            if place is None or (one["topic"], one["partition"]) == place
        ]

    def _read_runs(self, findings: Sequence[Finding]) -> None:
        by_offset = self._points(findings)
        by_time: Points = defaultdict(set)
        for one in findings:
            for producer in self._names.producers(one):
                by_time[self._producers.number(producer)] |= _moments(one, None)
        opened = Groups({**self._producers.columns, "is_open": [True]})
        newest: Points = {number: {_NEWEST} for number in by_time}
        rows, (*_, count, _) = nearest(
            self._pieces(silver.PARTITION_TXN, _RUNS, self._writers),
            [
                Selection(self._writers, "first_offset", by_offset),
                Selection(self._writers, "marker_offset", by_offset),
                Selection(self._producers, "marker_ms", by_time, SPREAD),
                Selection(opened, "first_offset", newest, SPREAD),
            ],
        )
        self._runs = grouped(rows, "producer_id")
        self._marker_count = self._by_producer(count)

    def _read_batches(self, findings: Sequence[Finding]) -> None:
        points = self._points(findings)
        for one in findings:
            for row in self.runs(one):
                number = self._writers.number(row["replica_id"], row["producer_id"])
                ends = {row["first_offset"], row["last_offset"]} - {None}
                points.setdefault(number, set()).update(ends)
        topics = Groups(
            {
                "replica_id": [
                    one for one, place in self._place.items() if place[0] != OFFSETS_TOPIC
                ],
                "producer_id": self._all_producers,
            }
        )
        pieces = (
            piece.filter(pc.invert(pc.fill_null(piece["is_control"], False)))
            for piece in self._pieces(bronze.BATCH, _BATCHES, topics)
        )
        chosen = [
            Selection(self._writers, "base_offset", points),
            Selection(self._producers, "max_timestamp_ms", {}),
        ]
        rows, (_, count) = nearest(pieces, chosen)
        for row in rows:
            row["topic"], row["partition"] = self._place[row["replica_id"]]
        self._batches = grouped(rows, "producer_id")
        self._batch_count = self._by_producer(count)

    def _read_steps(self, findings: Sequence[Finding]) -> None:
        groups = Groups({"transactional_id": self._all_ids})
        by_time: Points = defaultdict(set)
        by_offset: Points = defaultdict(set)
        for one in findings:
            own = self.own_run(one)
            for name in self._names.ids(one):
                by_time[groups.number(name)] |= _moments(one, own)
                if one["topic"] == TXN_TOPIC and one["first_offset"] is not None:
                    by_offset[groups.number(name)].add(one["first_offset"])
                if own is not None and own["transaction_offset"] is not None:
                    by_offset[groups.number(name)].add(own["transaction_offset"])
        rows, (count, _) = nearest(
            self._pieces(silver.COORDINATOR_STEP, _STEPS, groups),
            [Selection(groups, "append_ms", by_time), Selection(groups, "offset", by_offset)],
        )
        rows.sort(key=lambda row: (row["coordinator_partition"], row["offset"]))
        self._steps = grouped(rows, "transactional_id")
        self._step_count = Counter({name: count[groups.number(name)] for name in self._all_ids})

    def _read_commits(self, findings: Sequence[Finding]) -> None:
        places = {(one["topic"], one["partition"]) for one in findings if one["group_id"]}
        of_place = Groups(
            {
                "group_id": self._groups,
                "topic": [topic for topic, _ in places],
                "partition": [number for _, number in places],
            }
        )
        both = Groups({**of_place.columns, **self._producers.columns})
        by_offset: Points = defaultdict(set)
        by_time: Points = defaultdict(set)
        for one in findings:
            key = (one["group_id"], one["topic"], one["partition"])
            if (number := of_place.number(*key)) >= 0:
                by_offset[number].add(one["first_offset"] or 0)
            for producer in self._names.producers(one):
                if (number := self._producers.number(producer)) >= 0:
                    by_time[number] |= _moments(one, self.own_run(one))
        chosen = [
            Selection(of_place, "record_offset", by_offset),
            Selection(self._producers, "append_ms", by_time),
            Selection(both, "append_ms", {}),
        ]
        is_wanted = bool(by_offset or by_time)
        pieces = self._facts.pieces(silver.COMMITTED_OFFSET, _COMMITS) if is_wanted else ()
        rows, (in_place, by_producer, in_both) = nearest(pieces, chosen)
        rows.sort(key=lambda row: row["record_offset"])
        self._commits = grouped(rows, "producer_id")
        self._commits_of_place = grouped(rows, "group_id", "topic", "partition")
        self._commit_count = self._by_producer(by_producer)
        keys = [(group, *place) for group in self._groups for place in places]
        self._group_count = Counter({key: in_place[of_place.number(*key)] for key in keys})
        self._both_count = Counter(
            {
                (*key, one): in_both[both.number(*key, one)]
                for key in keys
                for one in self._all_producers
            }
        )

    def _points(self, findings: Sequence[Finding]) -> Points:
        """Offsets of findings, for each replica of their partition and each of their producers."""
        found: Points = defaultdict(set)
        for one in findings:
            for replica in self._replicas.get((one["topic"], one["partition"]), ()):
                for producer in self._names.producers(one):
                    number = self._writers.number(replica, producer)
                    if one["first_offset"] is not None and number >= 0:
                        found[number].add(one["first_offset"])
        return found

    def _by_producer(self, count: Counter[int]) -> Counter[int]:
        return Counter({one: count[self._producers.number(one)] for one in self._all_producers})

    def _pieces(self, table: Any, columns: Sequence[str], groups: Groups) -> Iterable[pa.Table]:
        only: dict[str, Collection[Any]] = dict(groups.columns)
        return self._facts.pieces(table, columns, only) if all(only.values()) else ()


def _moments(finding: Finding, run: Row | None) -> set[int]:
    """Times that say when it was: the finding's, and those of brokers around its run."""
    times = [finding["first_timestamp_ms"], finding["last_timestamp_ms"]]
    times += [] if run is None else [run["marker_ms"], run["before_ms"], run["after_ms"]]
    return {one for one in times if one is not None}
