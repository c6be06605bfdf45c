"""The timeline of a finding: the whole transaction on one time axis, and what its producer did around it.

Data, markers and offset commits in every partition that it touched, and the coordinator's records. Times
of data are the client's unless the topic has LogAppendTime: those dots are hollow, and no verdict
rests on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.report.causes import Finding
from pipeline.report.event import Event
from pipeline.report.facts import Facts, Row
from pipeline.report.surroundings import Surroundings, only_place
from pipeline.report.timeline_events import commit, data, generation, marker, step
from pipeline.report.timeline_rows import TimelineRows
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC, TransactionState

CONTEXT = 12
"""Events of one line that are not of the finding's transaction: those nearest to it."""
EVENTS, LANES = 48, 12
"""Events and lines of one timeline on the page: two hundred of them are 4 MB at most."""

_COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


class Timeline(NamedTuple):
    """What is shown.

    Attributes:
        events: In time order.
        left_out: How many further ones the tables hold of this producer, transactional id or group.
    """

    events: list[Event]
    left_out: int


class _Candidate(NamedTuple):
    """An event, whether it is of the finding's transaction, and how far from the finding it is."""

    event: Event
    is_of_it: bool
    distance: int


class Timelines:
    """Timelines of many findings, read in one go.

    Args:
        facts: The run's tables.
        findings: Those whose timelines will be asked for.
        events: How many events one holds.
        lanes: How many lines.
    """

    def __init__(
        self, facts: Facts, findings: Sequence[Finding], events: int = EVENTS, lanes: int = LANES
    ) -> None:
        self._rows = TimelineRows(facts, findings)
        self._around = Surroundings(facts, findings)
        self._events, self._lanes = events, lanes

    def of(self, finding: Finding) -> Timeline:
        """Events around a finding; of one that names no producer, id or group those of its place."""
        if only_place(finding) is not None:
            return Timeline(self._around.of(finding), 0)
        found = self._candidates(finding)
        chosen = _bounded(found, finding, self._events, self._lanes)
        left_out = self._rows.total(finding) - len(chosen)
        chosen += self._generations(finding)
        chosen.sort(key=lambda event: (event.time_ms, event.lane, event.offset or 0))
        return Timeline(chosen, left_out)

    def _candidates(self, finding: Finding) -> list[_Candidate]:
        rows, own = self._rows, self._rows.own_run(finding)
        steps = rows.steps(finding)
        ours = _transaction(finding, own, steps)
        runs = [one for one in rows.runs(finding) if one is own or _is_in(ours, one)]
        generations = rows.generations.get(finding["group_id"], [])
        made = [
            *(
                (
                    data(row, finding),
                    _is_inside(runs, row["topic"], row["partition"], row["base_offset"]),
                )
                for row in rows.batches(finding)
            ),
            *((marker(row, finding), row in runs) for row in rows.runs(finding)),
            *((step(row, finding), row in ours) for row in steps),
            *(
                (
                    commit(row, finding, generations),
                    _is_inside(runs, OFFSETS_TOPIC, row["offsets_partition"], row["record_offset"]),
                )
                for row in rows.commits(finding)
            ),
        ]
        known = [(event, is_of_it) for event, is_of_it in made if event is not None]
        middle = _middle(finding, [event for event, _ in known])
        place = f"{finding['topic']}-{finding['partition']}"
        first = finding["first_offset"]
        return [
            _Candidate(
                event,
                is_of_it,
                abs((event.offset or 0) - first)
                if event.lane == place and first is not None
                else abs(event.time_ms - middle),
            )
            for event, is_of_it in known
        ]

    def _generations(self, finding: Finding) -> list[Event]:
        first = finding["first_offset"] or 0
        held = self._rows.generations.get(finding["group_id"], [])
        near = sorted(held, key=lambda one: abs(one["base_offset"] - first))[:CONTEXT]
        return [event for one in near if (event := generation(one)) is not None]


def _transaction(finding: Finding, own: Row | None, steps: Sequence[Row]) -> list[Row]:
    """The coordinator's records of the finding's transaction: from the record after Complete* to the next one."""
    at: tuple[int, int] | None = None
    if finding["topic"] == TXN_TOPIC and finding["first_offset"] is not None:
        at = (finding["partition"], finding["first_offset"])
    elif own is not None and own["transaction_offset"] is not None:
        at = (own["coordinator_partition"], own["transaction_offset"])
    if at is None:
        return []
    held: list[Row] = []
    for one in steps:
        if one["coordinator_partition"] != at[0]:
            continue
        held.append(one)
        if one["state"] in _COMPLETE:
            if one["offset"] >= at[1]:
                break
            held = []
    return held if held and held[-1]["offset"] >= at[1] else []


def _is_in(ours: Sequence[Row], run: Row) -> bool:
    """A run of the transaction of these records."""
    at = run["transaction_offset"]
    if not ours or at is None or run["coordinator_partition"] != ours[0]["coordinator_partition"]:
        return False
    return bool(ours[0]["offset"] <= at <= ours[-1]["offset"])


def _is_inside(runs: Iterable[Row], topic: str, partition: int, offset: int) -> bool:
    return any(
        (one["topic"], one["partition"]) == (topic, partition)
        and one["first_offset"] is not None
        and one["first_offset"] <= offset
        and (one["last_offset"] is None or offset <= one["last_offset"])
        for one in runs
    )


def _middle(finding: Finding, events: Sequence[Event]) -> int:
    """When the finding was: by a broker's clock where there is one."""
    accused = sorted((event.is_client_time, event.time_ms) for event in events if event.is_accused)
    known = [finding["first_timestamp_ms"], finding["last_timestamp_ms"]]
    times = [*(time for _, time in accused[:1]), *known, *(event.time_ms for event in events)]
    return next((one for one in times if one), 0)


def _bounded(found: Sequence[_Candidate], finding: Finding, events: int, lanes: int) -> list[Event]:
    """The transaction and what is nearest to it: lines in turn, so that a busy one takes no other's place."""
    place = f"{finding['topic']}-{finding['partition']}"
    by_lane: dict[str, list[_Candidate]] = {}
    for one in sorted(
        found, key=lambda one: (not one.event.is_accused, not one.is_of_it, one.distance)
    ):
        held = by_lane.setdefault(one.event.lane, [])
        others = sum(not other.is_of_it for other in held)
        if one.is_of_it or one.event.is_accused or others < CONTEXT:
            held.append(one)

    def rank(lane: str) -> tuple[bool, bool, bool, int]:
        best = by_lane[lane][0]
        return lane != place, best.event.kind != "state", not best.is_of_it, best.distance

    shown = sorted(by_lane, key=rank)[:lanes]
    ranked = [
        (number, order, one.event)
        for order, lane in enumerate(shown)
        for number, one in enumerate(by_lane[lane])
    ]
    ranked.sort(key=lambda one: one[:2])
    return [event for _, _, event in ranked[:events]]
