"""Open runs and what waits behind them; costs nothing where nothing is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pipeline.replay import pinning
from pipeline.replay.pinning import OpenRun, Pinned, Waiting
from pipeline.replay.statement import Statement
from pipeline.spark import stated, stored
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.run import Run
from pipeline.spark.stated import Array
from pipeline.spark.tables import Held
from schemas import bronze, silver
from schemas.codes import OFFSETS_TOPIC

Row = dict[str, Any]
_BATCH = (
    "replica_id", "base_offset", "last_offset", "records_count", "is_control", "position", "segment_id",
)  # fmt: skip
_PLACE = ("base_offset", "segment_id", "position")
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


def logs(facts: Iterable[ReplicaFacts]) -> dict[int, Pinned]:
    """What is known of each replica, by its id."""
    return {
        one.replica_id: Pinned(
            one.log_end_offset, one.read_until_ms, one.cleaner_offset, one.log_start_offset or 0
        )
        for one in facts
    }


def statements(
    oldest: Iterable[tuple[OpenRun, int]],
    logs: Mapping[int, Pinned],
    waiting: Mapping[int, Waiting],
) -> list[Statement]:
    """What each pins.

    Args:
        oldest: From `open_runs`.
        logs: From `logs`.
        waiting: By replica.
    """
    return [
        pinning.statement(run, younger, logs[run.replica_id], waiting[run.replica_id])
        for run, younger in oldest
    ]


def pinned_offset(run: Run) -> Held:
    """Input of `lso_pinned`."""
    columns = [*OpenRun._fields, "is_open"]
    rows = stored.rows(silver.PARTITION_TXN, run.output, run.run_id, columns, {"is_open": [True]})
    oldest, known = open_runs(rows.to_pylist()), logs(run.facts)
    waiting = {
        one.replica_id: _waiting(run, one, pinning.held_at(one, known[one.replica_id]))
        for one, _ in oldest
    }
    return stated.held(run, statements(oldest, known, waiting))


def behind(rows: Mapping[str, Array], at: int) -> tuple[int, tuple[int, ...] | None]:
    """Records at and behind an offset, and base offset, segment and position of the first batch that reaches there.

    Of a batch across the offset the part behind counts.

    Args:
        rows: Columns `_BATCH` of batches of one replica.
        at: The offset.
    """
    reaches = rows["last_offset"] >= at
    found = reaches.nonzero()[0]
    if not len(found):
        return 0, None
    offsets = rows["last_offset"] - np.maximum(rows["base_offset"], at) + 1
    counts = np.minimum(rows["records_count"], offsets)
    first = found[np.argmin(rows["base_offset"][found])]
    place = tuple(int(rows[name][first]) for name in _PLACE)
    return int(counts[reaches & (rows["is_control"] != 1)].sum()), place


def _waiting(run: Run, one: OpenRun, at: int) -> Waiting:
    only = {"replica_id": [one.replica_id]}
    pieces = stored.pieces(bronze.BATCH, run.output, run.run_id, _BATCH, only)
    found = [behind(stated.longs(piece), at) for piece in pieces]
    records = sum(count for count, _ in found)
    place = min((place for _, place in found if place is not None), default=None)
    size = None if place is None else size_behind(run.ingested.segments, one.replica_id, *place[1:])
    if one.topic == OFFSETS_TOPIC:
        commits = stored.pieces(bronze.OFFSET_COMMIT, run.output, run.run_id, _COMMIT, only)
        records = sum(int((stated.longs(piece)["base_offset"] >= at).sum()) for piece in commits)
    return Waiting(records, size)
