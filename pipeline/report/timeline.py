"""The timeline of a finding: data, markers and coordinator records of its producer on one time axis.

Times of data are the client's unless the topic has LogAppendTime: those dots are hollow, and no verdict
rests on them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pipeline.report.event import LOG_APPEND_TIME, Event
from pipeline.report.examples import Finding
from pipeline.report.facts import Facts, Row
from pipeline.report.surroundings import Surroundings, only_place
from pipeline.text import counted
from schemas.codes import STATE_NAMES

NEAREST = 30
"""Events of one kind that a timeline holds: those nearest to the finding."""


class Timelines:
    """Events of many findings, read in one go.

    Args:
        facts: The run's tables.
        findings: Those whose timelines will be asked for.
    """

    def __init__(self, facts: Facts, findings: Sequence[Finding]) -> None:
        producers = {one["producer_id"] for one in findings if (one["producer_id"] or -1) >= 0}
        producers |= {0 for one in findings if one["producer_id"] == 0}
        ids = {one["transactional_id"] for one in findings if one["transactional_id"]}
        groups = {one["group_id"] for one in findings if one["group_id"]}
        steps = facts.steps(ids, producers)
        producers |= {
            one["producer_id"]
            for one in steps
            if one["transactional_id"] in ids and one["producer_id"] is not None
        }
        self._steps = _by(steps, "transactional_id")
        self._owner: dict[int, set[str]] = defaultdict(set)
        for one in steps:
            self._owner[one["producer_id"]].add(one["transactional_id"])
        self._batches = _by(facts.batches(producers), "producer_id")
        self._markers = _by(facts.markers(producers), "producer_id")
        self._commits = _by(facts.commits(groups), "group_id")
        self._generations = _by(facts.generations(groups), "group_id")
        self._around = Surroundings(facts, findings)

    def of(self, finding: Finding) -> list[Event]:
        """Events around a finding, in time order; of one that names no producer, id or group those of its place."""
        if only_place(finding) is not None:
            return self._around.of(finding)
        ids = {finding["transactional_id"]} - {None} or self._owner.get(
            finding["producer_id"], set()
        )
        producers = {finding["producer_id"]} - {None} or {
            step["producer_id"] for one in ids for step in self._steps.get(one, ())
        }
        place = (finding["topic"], finding["partition"])
        events = [
            event
            for one in sorted(producers, key=lambda number: (number is None, number))
            for event in (
                *_nearest(self._batches.get(one, ()), finding, "base_offset", place, _data),
                *_nearest(self._markers.get(one, ()), finding, "marker_offset", place, _marker),
            )
        ]
        middle = _middle(finding, events)
        for one in sorted(ids):
            steps = sorted(self._steps.get(one, ()), key=lambda step: _distance(step, middle))
            events += [
                _step(step, finding) for step in steps[:NEAREST] if step["append_ms"] is not None
            ]
        held = [
            one
            for one in self._commits.get(finding["group_id"], ())
            if (one["topic"], one["partition"]) == place and one["append_ms"] is not None
        ]
        first = finding["first_offset"] or 0
        held.sort(key=lambda one: abs(one["record_offset"] - first))
        known = self._generations.get(finding["group_id"], [])
        events += [_offset(one, finding, known) for one in held[:NEAREST]]
        near = sorted(known, key=lambda one: abs(one["base_offset"] - first))
        events += [
            _generation(one) for one in near[:NEAREST] if one["max_timestamp_ms"] is not None
        ]
        return sorted(events, key=lambda event: (event.time_ms, event.lane, event.offset or 0))


def _by(rows: list[Row], column: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def _nearest(rows: Any, finding: Finding, offset: str, place: Any, make: Any) -> list[Event]:
    """Events of the finding's partition by offset; of all partitions when it names none that has rows."""
    here = [row for row in rows if (row["topic"], row["partition"]) == place] or list(rows)
    first = finding["first_offset"] or 0
    here.sort(key=lambda row: abs(row[offset] - first))
    return [event for row in here[:NEAREST] if (event := make(row, finding)) is not None]


def _data(row: Row, finding: Finding) -> Event | None:
    if row["max_timestamp_ms"] is None:
        return None
    place = f"{row['topic']}-{row['partition']}"
    is_client = row["timestamp_type"] != LOG_APPEND_TIME
    clock = "client's clock" if is_client else "LogAppendTime"
    words = (
        f"data {place} offsets {row['base_offset']} to {row['last_offset']}, "
        f"producer {row['producer_id']} epoch {row['producer_epoch']} ({clock})"
    )
    accused = _is_accused(finding, place, row["base_offset"])
    return Event(
        "data",
        row["max_timestamp_ms"],
        place,
        words,
        row["base_offset"],
        is_client,
        None,
        accused,
        row["producer_epoch"],
    )


def _marker(row: Row, finding: Finding) -> Event | None:
    if row["marker_ms"] is None:
        return None
    kind = {0: "abort", 1: "commit"}.get(row["marker_type"], "abort")
    place = f"{row['topic']}-{row['partition']}"
    words = (
        f"{kind.upper()} marker {place} offset {row['marker_offset']}, producer {row['producer_id']} "
        f"epoch {row['marker_epoch']}"
    )
    accused = _is_accused(finding, place, row["marker_offset"])
    return Event(
        kind,
        row["marker_ms"],
        place,
        words,
        row["marker_offset"],
        False,
        None,
        accused,
        row["marker_epoch"],
    )


def _step(row: Row, finding: Finding) -> Event:
    state = row["state"]
    name = "tombstone" if state is None else STATE_NAMES.get(state, f"state {state}")
    words = (
        f"{row['transactional_id']}: {name} ({row['cause']}), producer {row['producer_id']} epoch "
        f"{row['producer_epoch']}, __transaction_state-{row['coordinator_partition']} offset {row['offset']}"
    )
    place = f"__transaction_state-{row['coordinator_partition']}"
    accused = _is_accused(finding, place, row["offset"])
    return Event(
        "state",
        row["append_ms"],
        row["transactional_id"],
        words,
        row["offset"],
        False,
        state,
        accused,
        row["producer_epoch"],
    )


def _offset(row: Row, finding: Finding, generations: Sequence[Row]) -> Event:
    """A commit, with the generation that was the group's then: a value does not tell its own."""
    words = (
        f"{row['group_id']} commits {row['topic']}-{row['partition']} at {row['committed_offset']} "
        f"({row['outcome']}), record {row['record_offset']}"
    )
    before = [one for one in generations if one["base_offset"] < row["record_offset"]]
    if before:
        words += f", in generation {before[-1]['generation_or_epoch']}"
    accused = row["record_offset"] == finding["first_offset"]
    lane = f"commits of {row['group_id']}"
    return Event(
        "offset", row["append_ms"], lane, words, row["record_offset"], False, None, accused
    )


def _generation(row: Row) -> Event:
    members = "" if row["member_count"] is None else f", {counted(row['member_count'], 'member')}"
    words = f"{row['group_id']}: generation {row['generation_or_epoch']}{members}, record {row['base_offset']}"
    lane = f"generations of {row['group_id']}"
    return Event("offset", row["max_timestamp_ms"], lane, words, row["base_offset"])


def _is_accused(finding: Finding, place: str, offset: int) -> bool:
    is_here = place == f"{finding['topic']}-{finding['partition']}"
    return bool(is_here and offset == finding["first_offset"])


def _middle(finding: Finding, events: Sequence[Event]) -> int:
    accused = [event.time_ms for event in events if event.is_accused]
    known = [finding["first_timestamp_ms"], finding["last_timestamp_ms"]]
    return next((one for one in (*accused, *known, *[event.time_ms for event in events]) if one), 0)


def _distance(step: Row, middle: int) -> int:
    return abs((step["append_ms"] or 0) - middle)
