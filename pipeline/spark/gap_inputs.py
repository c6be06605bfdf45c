"""Sequence gaps with what the log shows around each; the table of irregular steps is small."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pipeline.replay import gap_cause
from pipeline.replay.gap_cause import Event, LogState
from pipeline.replay.statement import Statement
from pipeline.spark import stated, stored
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.run import Run
from pipeline.spark.sidecars import SNAPSHOT, sidecar_rows
from pipeline.spark.tables import Held
from schemas import silver

Row = dict[str, Any]


def sequence_gaps(run: Run) -> Held:
    """Input of `sequence_gap`."""
    only = {"kind": gap_cause.KINDS}
    found = stored.rows(
        silver.SEQUENCE_EVENT, run.output, run.run_id, Event._fields, only
    ).to_pylist()
    sidecars = list(sidecar_rows(run, SNAPSHOT)) if found else []
    return stated.held(run, statements((Event(**row) for row in found), run.facts, sidecars))


def statements(
    events: Iterable[Event], facts: Iterable[ReplicaFacts], sidecars: Iterable[Row]
) -> list[Statement]:
    """What is said of each event.

    Args:
        events: Irregular steps.
        facts: All replicas.
        sidecars: Rows of `bronze.sidecar`; empty snapshots have none.
    """
    places = {one.replica_id: one for one in facts}
    named: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in sidecars:
        if row["entry_kind"] == SNAPSHOT:
            named[row["replica_id"]][row["end_offset"]].add(row["producer_id"])
    said = []
    for event in events:
        place = places[event.replica_id]
        before = event.previous_offset
        is_forgotten = before is not None and any(
            before < end <= event.offset and event.producer_id not in producers
            for end, producers in named[event.replica_id].items()
        )
        log = LogState(place.is_complete, is_forgotten)
        one = gap_cause.statement(event, log)
        said += [] if one is None else [one]
    return said
