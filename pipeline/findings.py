"""Runs the detectors, gives findings their ids, evidence and status, and writes them."""

from __future__ import annotations

import fnmatch
import hashlib
import inspect
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from pipeline.config_sections import Selection
from pipeline.detect import DETECTORS
from pipeline.replay import known_defects
from pipeline.spark import detect_inputs, trust, version_inputs
from pipeline.spark.places import Replica, places
from pipeline.spark.run import Run
from pipeline.spark.tables import Held
from pipeline.spark.version_inputs import Proven
from pipeline.text import sanitise
from schemas import gold

Finding = dict[str, Any]
THREADS = 4
_ID_FIELDS = (
    "code",
    "class",
    "topic",
    "partition",
    "producer_id",
    "first_offset",
    "transactional_id",
    "group_id",
)
_ID_FIELDS_BY_CODE = {
    "hanging_transaction": (
        "code",
        "topic",
        "partition",
        "producer_id",
        "first_offset",
        "group_id",
    ),
}
_TEXTS = (
    "topic",
    "transactional_id",
    "group_id",
    "title",
    "explanation",
    "advice",
    "refuted_by",
)


def finding_id(finding: Finding) -> str:
    """SHA-256 of what the fault is: never of broker, segment, certainty or end."""
    fields = _ID_FIELDS_BY_CODE.get(finding["code"], _ID_FIELDS)
    text = json.dumps([finding[name] for name in fields], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def detect(run: Run, attempted: dict[str, str | None]) -> list[Finding]:
    """Findings of all detectors that could be attempted, with ids and evidence, not yet a status.

    Args:
        run: The run, its silver written.
        attempted: Detector code -> None, or why it was not attempted.
    """
    inputs = _Inputs(run)
    detectors = [one for one in DETECTORS if attempted.get(one.CODE) is None]
    inputs.make(name for one in detectors for name in inspect.signature(one.find).parameters)
    asked = [one.find for one in detectors if inputs.has_rows(one.find)]
    # Most of a detector's time is Spark's analysis of what it asks.
    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(lambda find: find(**inputs.of(find)), asked))
    if not parts:
        return []
    raw: DataFrame = reduce(DataFrame.unionByName, parts)
    rows = raw.toArrow().to_pylist()
    places = _places(run, rows)
    ceilings = trust.ceilings(run.plan)
    advised = _with_causes(rows, lambda: version_inputs.proven(run))
    told: dict[str, list[Finding]] = defaultdict(list)
    for row in _newest_first(run, advised):
        finding = _finish(row, places)
        finding["certainty"] = trust.capped(finding["certainty"], ceilings.get(row["copy"]))
        told[finding["finding_id"]].append(finding)
    return order([reduce(_merge, same) for same in told.values()])


def _newest_first(run: Run, rows: list[Finding]) -> list[Finding]:
    """Rows of the copy that was read furthest first: where copies tell one fault, its words are the latest.

    Spark gives rows in no order; of one copy, their texts decide.
    """
    until: dict[int, int] = defaultdict(int)
    for one in run.facts:
        until[one.copy] = max(until[one.copy], one.read_until_ms or 0)

    def order_of(row: Finding) -> tuple[Any, ...]:
        return -until[row["copy"]], -row["copy"], row["title"], row["explanation"]

    return sorted(rows, key=order_of)


def _with_causes(rows: list[Finding], proven: Callable[[], Proven]) -> list[Finding]:
    """Adds to each advice the defects that may be behind it, but none that its brokers are proven to have fixed."""
    if not any((row["code"], row["class"]) in known_defects.CAUSES for row in rows):
        return rows
    bound_at = proven()
    advised = []
    for row in rows:
        at = row["last_timestamp_ms"] or row["first_timestamp_ms"]
        causes = known_defects.told(row["code"], row["class"], bound_at(row["copy"], at))
        advised.append(row | {"advice": _joined(row["advice"], causes)} if causes else row)
    return advised


def _joined(advice: str, causes: str) -> str:
    """A command at the end of an advice ends there, for whoever copies it."""
    return (
        f"{advice} {causes}"
        if advice.endswith(".")
        else f"{advice}; {causes[:1].lower()}{causes[1:]}"
    )


class _Inputs:
    """Arguments by parameter name, each made once by the function of `detect_inputs` with that name."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.settings: dict[str, Any] = {"race_window_ms": run.config.race_window_ms}
        self.made: dict[str, Held] = {}

    def make(self, names: Iterable[str]) -> None:
        """Makes all inputs, several at a time: each is small, and most of its time is waiting."""
        wanted = sorted({name for name in names if name not in self.settings})
        with ThreadPoolExecutor(THREADS) as pool:
            functions = [getattr(detect_inputs, name) for name in wanted]
            made = list(pool.map(lambda function: function(self.run), functions))
        self.made = dict(zip(wanted, made, strict=True))

    def has_rows(self, find: Any) -> bool:
        """Whether a detector has anything to look at."""
        names = inspect.signature(find).parameters
        return any(name in self.made and not self.made[name].is_empty for name in names)

    def of(self, find: Any) -> dict[str, Any]:
        """What a detector's `find` asks for."""
        return {
            name: self.settings[name] if name in self.settings else self.made[name].rows
            for name in inspect.signature(find).parameters
        }


def _places(run: Run, rows: list[Finding]) -> dict[tuple[int, str, int, int], list[Finding]]:
    """(copy, topic, partition, offset) -> every replica's file and byte position that holds it."""
    wanted = sorted(
        {
            (row["copy"], place["topic"], place["partition"], place["offset"])
            for row in rows
            for place in row["places"]
            if place["topic"] is not None and place["partition"] is not None
        }
    )
    if not wanted:
        return {}
    replicas = [
        Replica(one.replica_id, one.copy, one.topic, one.partition, one.broker_id)
        for one in run.facts
    ]
    files = {one["segment_id"]: one["file"] for one in run.ingested.segments}
    return places(run.output, run.run_id, wanted, replicas, files)


def _finish(row: Finding, places: dict[tuple[int, str, int, int], list[Finding]]) -> Finding:
    finding: Finding = {name: row.get(name) for name in gold.FINDING.names}
    finding["finding_id"] = finding_id(row)
    evidence: list[Finding] = []
    for place in row["places"]:
        key = (row["copy"], place["topic"], place["partition"], place["offset"])
        holders: list[Finding] = places.get(key) or [
            {"broker": None, "file": None, "position": None}
        ]
        for holder in sorted(holders, key=lambda one: (one["broker"] or 0, one["file"] or "")):
            file = None if holder["file"] is None else sanitise(holder["file"])
            evidence.append(
                {**holder, "file": file, "offset": place["offset"], "what": place["what"]}
            )
    finding["evidence"] = evidence
    for name in _TEXTS:
        if finding[name] is not None:
            finding[name] = sanitise(finding[name])
    return finding


def _merge(one: Finding, other: Finding) -> Finding:
    """The same fault seen twice: the more severe row, of equals `one`; all evidence."""
    first, second = sorted((one, other), key=_rank)
    more = [item for item in second["evidence"] if item not in first["evidence"]]
    return {**first, "evidence": first["evidence"] + more}


def _rank(finding: Finding) -> tuple[Any, ...]:
    return (
        gold.SEVERITIES.index(finding["severity"]),
        gold.CERTAINTIES.index(finding["certainty"]),
        finding["code"],
        finding["class"],
        finding["topic"] or "",
        -1 if finding["partition"] is None else finding["partition"],
        -1 if finding["first_offset"] is None else finding["first_offset"],
        finding["finding_id"],
    )


def order(findings: list[Finding]) -> list[Finding]:
    """Most severe first; the same input gives the same order."""
    return sorted(findings, key=_rank)


def with_status(
    findings: list[Finding],
    previous: list[Finding],
    over: Callable[[list[Finding]], Callable[[Finding], bool]],
) -> list[Finding]:
    """Sets each status against the previous completed run and adds what that run had and this one has not.

    Args:
        findings: Of this run.
        previous: Findings of the previous completed run that were new, open or not seen.
        over: Given those that this run does not report, says of each whether it is over (`pipeline.lifecycle`).
    """
    before = {one["finding_id"] for one in previous}
    now = {one["finding_id"] for one in findings}
    result = [
        {**one, "status": "open" if one["finding_id"] in before else "new"} for one in findings
    ]
    gone = [one for one in previous if one["finding_id"] not in now]
    if gone:
        is_over = over(gone)
        result += [{**one, "status": "resolved" if is_over(one) else "not_seen"} for one in gone]
    return order(result)


def stored_rows(findings: list[Finding], run_id: str) -> list[tuple[Any, ...]]:
    """Rows of `gold.finding`: values in column order, evidence as tuples."""
    names = [name for name in gold.FINDING.names if name != "run_id"]
    return [(run_id, *(_stored(one, name) for name in names)) for one in findings]


def _stored(finding: Finding, name: str) -> Any:
    if name != "evidence":
        return finding[name]
    fields = ("broker", "file", "position", "offset", "what")
    return [tuple(one[field] for field in fields) for one in finding["evidence"]]


def selected(finding: Finding, selection: Selection) -> bool:
    """Whether the selection shows and gates it."""
    globs = (
        (selection.topics, finding["topic"]),
        (selection.transactional_id, finding["transactional_id"]),
        (selection.group, finding["group_id"]),
    )
    if any(
        glob is not None and not fnmatch.fnmatchcase(value or "", glob) for glob, value in globs
    ):
        return False
    if selection.producer_id is not None and finding["producer_id"] != selection.producer_id:
        return False
    last = finding["last_timestamp_ms"] or finding["first_timestamp_ms"]
    if selection.since_ms is not None and last is not None and last < selection.since_ms:
        return False
    first = finding["first_timestamp_ms"] or finding["last_timestamp_ms"]
    return not (selection.until_ms is not None and first is not None and first > selection.until_ms)
