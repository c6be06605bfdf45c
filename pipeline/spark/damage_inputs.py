"""What `damaged_log` takes: damage that the reading met, and holes between segments."""

from __future__ import annotations

from typing import Any

from pipeline.spark import tables
from pipeline.spark.gaps import segment_gaps
from pipeline.spark.run import Run
from pipeline.spark.tables import Held

TAILS = ("torn_tail", "zero_tail")
_DAMAGE = (
    "copy int, topic string, partition int, broker_id int, file string, base_offset "
    "bigint, position bigint, size_bytes bigint, "
    "label string, explanation string, after_offset bigint, next_offset bigint, is_active boolean"
)


def damage_rows(run: Run) -> list[tuple[Any, ...]]:
    """Unreadable places and overlapping segments, in the columns of `damage`."""
    replicas = {one.replica_id: one for one in run.facts}
    places = {one.replica_id: one for one in run.plan.replicas}
    newest: dict[int, int] = {}
    by_id = {one["segment_id"]: one for one in run.ingested.segments}
    for one in run.ingested.segments:
        newest[one["replica_id"]] = max(newest.get(one["replica_id"], -1), one["base_offset"])
    rows = []
    for row in run.ingested.unreadable:
        place = replicas.get(row["replica_id"]) or places[row["replica_id"]]
        segment = by_id.get(row["segment_id"])
        base = segment["base_offset"] if segment else None
        is_active = segment is None or base == newest[row["replica_id"]]
        rows.append(
            (
                place.copy,
                place.topic,
                place.partition,
                place.broker_id,
                row["file"],
                base,
                row["position"],
                row["size_bytes"],
                _label(row, is_active),
                row["explanation"],
                row["after_offset"],
                row["next_offset"],
                is_active,
            )
        )
    for segment in run.ingested.segments:
        if segment["segment_id"] in run.ingested.keep_from:
            place = places[segment["replica_id"]]
            rows.append(
                (
                    place.copy,
                    place.topic,
                    place.partition,
                    place.broker_id,
                    segment["file"],
                    segment["base_offset"],
                    0,
                    segment["size_bytes"],
                    "segment_overlap",
                    "its offsets lie in the segment before it",
                    None,
                    None,
                    True,
                )
            )
    return rows + _gap_rows(run)


def _gap_rows(run: Run) -> list[tuple[Any, ...]]:
    """Segments that are missing between two others."""
    ingested = run.ingested
    return [
        (
            gap.replica.copy,
            gap.replica.topic,
            gap.replica.partition,
            gap.replica.broker_id,
            gap.segment["file"],
            gap.segment["base_offset"],
            0,
            0,
            "gap_between_segments",
            f"the segment in front of it ends at offset {gap.last_offset}",
            gap.last_offset,
            gap.segment["base_offset"],
            gap.is_running_copy,
        )
        for gap in segment_gaps(run.plan, run.facts, ingested.segments, ingested.unreadable)
    ]


def _label(row: dict[str, Any], is_active: bool) -> str:
    """Class of the damage; a last batch that a crash left half-written may keep its length and fail its checksum."""
    reason: str = row["reason"]
    if reason in TAILS:
        return reason
    if reason == "crc" and row["is_tail"] and is_active:
        return "torn_tail"
    return "crc" if reason == "crc" else "unreadable"


def damage(run: Run) -> Held:
    """Input of `damaged_log`."""
    rows = damage_rows(run)
    return Held(tables.local(run.spark, rows, _DAMAGE), not rows)
