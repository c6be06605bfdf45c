"""Open runs and what waits behind them; costs nothing where nothing is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.replay import pinning
from pipeline.replay.pinning import OpenRun, Pinned, Waiting
from pipeline.replay.statement import Statement
from pipeline.spark import stated, stored
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.run import Run
from pipeline.spark.tables import Held
from schemas import bronze, silver
from schemas.codes import OFFSETS_TOPIC

Row = dict[str, Any]
_BATCH = ("replica_id", "base_offset", "records_count", "is_control", "position", "segment_id")
_COMMIT = ("replica_id", "base_offset")


def open_runs(rows: Iterable[Row]) -> list[tuple[OpenRun, int]]:
    """The oldest open run of each replica."""
    return pinning.oldest(
        OpenRun(*(row[name] for name in OpenRun._fields))
        for row in rows
        if row["is_open"] and row["first_offset"] is not None
    )


def size_behind(segments: Iterable[Row], replica_id: int, segment_id: int, position: int) -> int:
    """Bytes of a replica's log from a position on.

    Args:
        segments: Rows of `bronze.segment`.
        replica_id: The replica.
        segment_id: Segment of the position.
        position: Byte in it.
    """
    mine = [one for one in segments if one["replica_id"] == replica_id]
    base = next(one["base_offset"] for one in mine if one["segment_id"] == segment_id)
    later = sum(one["readable_bytes"] for one in mine if one["base_offset"] > base)
    here = next(one["size_bytes"] for one in mine if one["segment_id"] == segment_id)
    return int(here - position + later)


def statements(
    oldest: Iterable[tuple[OpenRun, int]],
    facts: Iterable[ReplicaFacts],
    waiting: Mapping[int, Waiting],
) -> list[Statement]:
    """What each pins.

    Args:
        oldest: From `open_runs`.
        facts: All replicas.
        waiting: By replica.
    """
    logs = {
        one.replica_id: Pinned(one.log_end_offset, one.read_until_ms, one.cleaner_offset)
        for one in facts
    }
    return [
        pinning.statement(run, younger, logs[run.replica_id], waiting[run.replica_id])
        for run, younger in oldest
    ]


def pinned_offset(run: Run) -> Held:
    """Input of `lso_pinned`."""
    columns = [*OpenRun._fields, "is_open"]
    rows = stored.rows(silver.PARTITION_TXN, run.output, run.run_id, columns, {"is_open": [True]})
    oldest = open_runs(rows.to_pylist())
    waiting = {one.replica_id: _waiting(run, one) for one, _ in oldest}
    return stated.held(run, statements(oldest, run.facts, waiting))


def _waiting(run: Run, one: OpenRun) -> Waiting:
    only = {"replica_id": [one.replica_id]}
    records, size = 0, None
    for piece in stored.pieces(bronze.BATCH, run.output, run.run_id, _BATCH, only):
        rows = stated.longs(piece)
        behind = rows["base_offset"] >= one.first_offset
        records += int(rows["records_count"][behind & (rows["is_control"] != 1)].sum())
        at = (rows["base_offset"] == one.first_offset).nonzero()[0]
        if len(at):
            place = (int(rows["segment_id"][at[0]]), int(rows["position"][at[0]]))
            size = size_behind(run.ingested.segments, one.replica_id, *place)
    if one.topic == OFFSETS_TOPIC:
        commits = stored.pieces(bronze.OFFSET_COMMIT, run.output, run.run_id, _COMMIT, only)
        records = sum(
            int((stated.longs(piece)["base_offset"] >= one.first_offset).sum()) for piece in commits
        )
    return Waiting(records, size)
