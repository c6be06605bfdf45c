"""Small tables that the suites look at, made of the counts, the run's findings and its doubts.

A value that was not measured is no value: it makes the expectation unknown, never passed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from pipeline.config_sections import Gate
from pipeline.gate.policy import CURRENT, Finding, is_failing
from pipeline.gate.profile import BRONZE, GOLD, SILVER, Profile, declared_types, name_of
from pipeline.gate.segments import NOTHING
from pipeline.spark import stored
from schemas import bronze, silver
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC
from schemas.table import Table

Row = dict[str, Any]
PIECES = {"bronze": BRONZE, "silver": SILVER, "gold": GOLD}


class Judged(NamedTuple):
    """What a run concluded, as the gate takes it.

    Attributes:
        output: Output root.
        run_id: The run.
        findings: All findings of the run with their status, suppressed ones included.
        shown: Those of them that the selection shows and gates.
        doubts: What could not be judged although it is in scope.
        as_of_ms: Newest broker-stamped time; None when no log holds one.
        now_ms: The clock.
    """

    output: str
    run_id: str
    findings: list[Finding]
    shown: list[Finding]
    doubts: list[str]
    as_of_ms: int | None
    now_ms: int | None


def columns(layer: str, counts: Profile) -> pd.DataFrame:
    """One row a column of the layer's tables: types declared and stored, nulls, values outside of the accepted ones."""
    rows = []
    for table in PIECES[layer]:
        found = counts.tables[name_of(table)]
        types = declared_types(table)
        for name in dict.fromkeys([*types, *found.types]):
            rows.append(
                {
                    "what": f"{name_of(table)}.{name}",
                    "declared": types.get(name, "not declared"),
                    "stored": found.types.get(name, "not stored"),
                    "nulls": found.nulls.get(name, 0),
                    "outside": found.outside.get(name, 0),
                }
            )
    return pd.DataFrame(rows)


def keys(layer: str, counts: Profile) -> pd.DataFrame:
    """One row a table: rows whose key another row has too."""
    return pd.DataFrame(
        [
            {"what": name_of(table), "doubles": counts.tables[name_of(table)].doubles}
            for table in PIECES[layer]
        ]
    )


def bronze_counts(
    counts: Profile, segments: list[Row], replicas: list[Row], damage: list[Row]
) -> pd.DataFrame:
    """Rows of bronze against what the ingest counted, segment by segment.

    Of the internal topics not all batches are kept, but all records of `__transaction_state`; where some of
    those could not be read, `bronze.unreadable` says so and they are not compared.
    """
    topics = {one["replica_id"]: one["topic"] for one in replicas}
    damaged = {one["segment_id"] for one in damage}
    states = counts.records[bronze.TXN_STATE.name]
    rows = []
    for one in segments:
        key, topic = one["segment_id"], topics.get(one["replica_id"])
        held = counts.segments.get(key, NOTHING)
        if topic not in (TXN_TOPIC, OFFSETS_TOPIC):
            rows.append(_pair(f"{one['file']}: batches", held.rows, one["batch_count"]))
            rows.append(_pair(f"{one['file']}: records", held.records, one["record_count"]))
        if topic == TXN_TOPIC and key not in damaged:
            rows.append(_pair(f"{one['file']}: records", states.get(key, 0), one["record_count"]))
        elif topic != TXN_TOPIC:
            rows.append(_pair(f"{one['file']}: markers", held.markers, one["marker_count"]))
    known = {one["segment_id"] for one in segments}
    strays = sum(held.rows for key, held in counts.segments.items() if key not in known)
    rows.append(_pair("batches of no segment", strays, 0))
    return pd.DataFrame(rows)


def bytes_of(segments: list[Row], damage: list[Row]) -> pd.DataFrame:
    """Every byte of every file: in a whole batch, or skipped with a reason.

    A reason without a size (the file could not be read to its end, or changed meanwhile) is about all the
    rest. A whole batch whose records make no sense is in both, and so is a line of a text.
    """
    skipped: dict[int, int] = defaultdict(int)
    open_ended = set()
    for one in damage:
        skipped[one["segment_id"]] += one["size_bytes"]
        if not one["size_bytes"]:
            open_ended.add(one["segment_id"])
    rows = [_pair("no segment", 0, 0)]
    for one in segments:
        key, size = one["segment_id"], one["size_bytes"]
        found = size if key in open_ended else min(one["readable_bytes"] + skipped[key], size)
        rows.append(_pair(one["file"], found, size))
    return pd.DataFrame(rows)


def offsets_of(counts: Profile, segments: list[Row], replicas: list[Row]) -> pd.DataFrame:
    """Offsets inside each segment that no batch spans and that the ingest does not report as a hole.

    Of the internal topics not all batches are kept; their offsets were followed while they were read.
    """
    topics = {one["replica_id"]: one["topic"] for one in replicas}
    rows = [{"what": "no segment", "untold": 0}]
    for one in segments:
        held = counts.segments.get(one["segment_id"])
        if held is None or topics.get(one["replica_id"]) in (TXN_TOPIC, OFFSETS_TOPIC):
            continue
        missing = held.last - held.first + 1 - held.covered
        is_told = one["hole_end_offset"] is not None and missing > 0
        rows.append({"what": one["file"], "untold": 0 if is_told else missing})
    return pd.DataFrame(rows)


def silver_counts(counts: Profile, segments: list[Row], replicas: list[Row]) -> pd.DataFrame:
    """Rows of silver against the bronze that they were made of."""
    by_topic: dict[str, set[int]] = defaultdict(set)
    for one in replicas:
        if one["is_replayed"]:
            by_topic[one["topic"]].add(one["replica_id"])
    replayed = {replica for members in by_topic.values() for replica in members}
    replica_of = {one["segment_id"]: one["replica_id"] for one in segments}
    overlapping = _overlapping(segments)
    rows = [
        _pair(
            "silver.transaction_partition: partitions that transactions list",
            counts.tables["silver.transaction_partition"].rows,
            counts.tables["silver.transaction"].total,
        )
    ]
    for table, topic, source in (
        (silver.COORDINATOR_STEP, TXN_TOPIC, bronze.TXN_STATE),
        (silver.COMMITTED_OFFSET, OFFSETS_TOPIC, bronze.OFFSET_COMMIT),
    ):
        if not by_topic[topic] & overlapping:
            held = counts.records[source.name]
            mine = by_topic[topic]
            expected = sum(n for key, n in held.items() if replica_of.get(key) in mine)
            rows.append(
                _pair(f"{name_of(table)}: rows", counts.tables[name_of(table)].rows, expected)
            )
    if not replayed & overlapping:
        expected = sum(
            held.of_producers
            for key, held in counts.segments.items()
            if replica_of.get(key) in replayed
        )
        found = counts.tables["silver.partition_txn"].total
        rows.append(_pair("silver.partition_txn: records of producers", found, expected))
    return pd.DataFrame(rows)


def gold_counts(counts: Profile, findings: list[Finding]) -> pd.DataFrame:
    """Rows of `gold.finding` against the findings that are shown and gated."""
    return pd.DataFrame(
        [_pair("gold.finding: rows", counts.tables["gold.finding"].rows, len(findings))]
    )


def findings(shown: list[Finding], gate: Gate) -> pd.DataFrame:
    """One row a finding: what it means to the gate."""
    rows = [{"what": "no finding", "effect": "passes"}]
    for one in shown:
        current = "fails" if is_failing(one, gate) else "passes"
        place = "" if one["topic"] is None else f" {one['topic']}-{one['partition']}"
        at = "" if one["first_offset"] is None else f" offset {one['first_offset']}"
        rows.append(
            {
                "what": f"{one['code']}/{one['class']}{place}{at}: {one['title']} [{one['finding_id'][:12]}]",
                "effect": current if one["status"] in CURRENT else one["status"],
            }
        )
    return pd.DataFrame(rows)


def doubts(reasons: list[str]) -> pd.DataFrame:
    """One row for everything in scope that could not be judged."""
    rows = [{"what": "everything else", "state": "judged"}]
    rows += [{"what": reason, "state": "not judged"} for reason in reasons]
    return pd.DataFrame(rows)


def age(as_of_ms: int | None, now_ms: int | None) -> pd.DataFrame:
    """The age of the copy; not a value without a time or a clock, never below 0."""
    known = None if as_of_ms is None or now_ms is None else max(now_ms - as_of_ms, 0)
    return pd.DataFrame([{"what": "newest broker-stamped time", "age_ms": known}])


def stored_rows(table: Table, judged: Judged) -> list[Row]:
    """Rows of a small table of the run."""
    found: pa.Table = stored.rows(table, judged.output, judged.run_id)
    return list(found.to_pylist())


def unreadable(judged: Judged) -> list[Row]:
    """Damage of segments: what `bronze.unreadable` says of each."""
    return stored.details(bronze.UNREADABLE, judged.output, judged.run_id)


def _pair(what: str, found: int, expected: int) -> Row:
    return {"what": what, "found": found, "expected": expected}


def _overlapping(segments: list[Row]) -> set[int]:
    """Replicas in which a segment begins before its predecessor ends: their doubles are counted once only."""
    ends: dict[int, int] = {}
    found = set()
    for one in sorted(
        segments, key=lambda row: (row["replica_id"], row["base_offset"], row["file"])
    ):
        if one["first_offset"] is None:
            continue
        key = one["replica_id"]
        if one["first_offset"] <= ends.get(key, -1):
            found.add(key)
        ends[key] = max(ends.get(key, -1), one["last_offset"])
    return found
