"""Sidecars held against logs without Spark: the project's own rules over the rows of `tests.pure_audit`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipeline.replay.last_batches import NEEDED, LastBatches
from pipeline.replay.statement import Statement
from pipeline.spark import sidecars
from tests.pure_audit import Replayed
from tests.pure_input import Row, places


def accused(code: str, said: list[Statement]) -> Iterator[Row]:
    """Statements as findings."""
    for one in said:
        yield {"code": code, "class": one.label, "status": "new", **one._asdict()}


def damage(one: Replayed) -> list[Statement]:
    """Sidecars that do not fit their logs."""
    read = one.read
    known = sidecars.log_places(read.plan, read.facts, read.segments)
    said = sidecars.file_statements(read.plan, known, read.segments, read.keep_from)
    replayed = [place.replica_id for place in places(read)]
    entries = sidecars.snapshot_entries(_filled(read.sidecars), replayed)
    keys = [(replica, entry.producer_id, end) for replica, end, entry in entries]
    last = LastBatches(keys)
    for replica in {key[0] for key in keys}:
        batches = read.batches.get(replica, [])
        if batches:
            last.add(_columns(replica, batches))
    runs = [run for run in one.runs if run["replica_id"] in last.replicas]
    return said + sidecars.snapshot_statements(known, entries, last, sidecars.open_at(keys, runs))


def txn_index(one: Replayed) -> list[Statement]:
    """Aborted transactions that are shown, committed ones that are hidden."""
    read = one.read
    every = sidecars.log_places(read.plan, read.facts, read.segments)
    known = {place.replica_id: every[place.replica_id] for place in places(read)}
    return sidecars.visibility_statements(
        read.plan, known, _filled(read.sidecars),
        [run for run in one.runs if run["marker_type"] == 0],
        lambda producers: [run for run in one.runs if run["producer_id"] in producers],
        read.unreadable,
    )  # fmt: skip


def _filled(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["replica_id"] != 0]


def _columns(replica_id: int, batches: list[Any]) -> dict[str, np.ndarray[Any, Any]]:
    found = {
        name: np.array(
            [-1 if (v := getattr(b, name)) is None else int(v) for b in batches], np.int64
        )
        for name in NEEDED
        if name != "replica_id"
    }
    return found | {"replica_id": np.full(len(batches), replica_id, np.int64)}
