"""What the detectors accuse from files alone: replicas that differ, damage, ghosts of snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.replay.coverage import is_behind
from pipeline.replay.lineage import Lineage, may_be_of_two_topics
from pipeline.spark.damage_inputs import damage_rows
from pipeline.spark.detect_inputs import OWNED_STATUSES
from pipeline.spark.replica_facts import ReplicaFacts
from tests.pure_audit import Replayed
from tests.pure_input import Row, places


def finding(code: str, label: str, severity: str, row: Row, **fields: Any) -> Row:
    """One accusation about a row that tells where it is."""
    names = ("topic", "partition", "producer_id", "transactional_id", "group_id", "first_offset")
    found = {name: row.get(name) for name in names}
    certainty = "consistent_with" if label in ("early_completion", "bypass") else "proven"
    return {
        "code": code, "class": label, "severity": severity, "certainty": certainty,
        "status": "new", **found, **fields,
    }  # fmt: skip


def snapshot_only(one: Replayed) -> Iterator[Row]:
    """Open transactions that only a snapshot at the log end still holds, and that no coordinator owns."""
    is_held = {_whose(run) for run in one.runs if run["is_open"]}
    is_held |= {_whose(row) for row in one.promises if row["status"] in OWNED_STATUSES}
    first: dict[int, int] = {}
    for segment in one.read.segments:
        if segment["first_offset"] is not None:
            replica = segment["replica_id"]
            first[replica] = min(
                segment["first_offset"], first.get(replica, segment["first_offset"])
            )
    by_replica = {place.replica_id: place for place in places(one.read)}
    for row in one.read.sidecars:
        place = by_replica.get(row["replica_id"])
        start = row.get("current_txn_first_offset")
        if place is None or start is None or row["end_offset"] != place.log_end_offset:
            continue
        kept = first.get(place.replica_id, place.log_end_offset)
        if start < max(kept, place.log_start_offset or 0):
            where = {"topic": place.topic, "partition": place.partition, "first_offset": start,
                     "producer_id": row["producer_id"]}  # fmt: skip
            if (place.copy, place.topic, place.partition, row["producer_id"]) in is_held:
                continue
            coverage = one.read.coverage
            is_judged = is_behind(
                place.read_until_ms,
                coverage.partitions[place.copy, place.topic, place.partition],
                coverage.everything[place.copy],
                coverage.tolerances,
            )
            severity = "critical" if is_judged else "info"
            yield finding("hanging_transaction", "snapshot_only", severity, where)


def _whose(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("copy", "topic", "partition", "producer_id"))


def _batches(one: Replayed, place: ReplicaFacts) -> dict[int, Any]:
    """First row at each offset: a batch, or the record that stands for one of an internal topic."""
    found: dict[int, Any] = {}
    for row in (
        *one.read.batches.get(place.replica_id, []),
        *(_Dotted(row) for rows in (one.read.states, one.read.commits)
          for row in rows.get(place.replica_id, [])),
    ):  # fmt: skip
        found.setdefault(row.base_offset, row)
    return found


class _Dotted:
    def __init__(self, row: Row) -> None:
        self.__dict__ = {"is_control": False, "is_transactional": False, **row}


def divergence(one: Replayed) -> Iterator[Row]:
    """Replicas that differ from the one that is replayed, where it was acknowledged."""
    lost = {
        (run["copy"], run["topic"], run["partition"], run["producer_id"], run["transaction_epoch"])
        for run in one.runs
        if run["first_offset"] is None and run["marker_type"] == 1
        and run["alignment"] in ("aligned", "resent")
    }  # fmt: skip
    for main in places(one.read):
        place = (main.copy, main.topic, main.partition)
        ours = _batches(one, main)
        for other in one.read.facts:
            same = (other.copy, other.topic, other.partition) == place
            if not same or other is main or other.topic_id != main.topic_id:
                continue
            floor = max(main.history_start_offset, other.history_start_offset)
            differing = [
                theirs
                for offset, theirs in sorted(_batches(one, other).items())
                if offset >= floor and _differs(ours.get(offset), theirs, main.log_end_offset)
            ]
            if not differing:
                continue
            first = differing[0].base_offset
            is_lost = any(
                row.is_transactional
                and not row.is_control
                and (*place, row.producer_id, row.producer_epoch) in lost
                for row in differing
            )
            if main.topic_id is None and ours and _is_stranger(ours, _batches(one, other)):
                continue
            if first < (other.high_watermark or 0) or is_lost:
                has_other = any(row.base_offset in ours for row in differing)
                label = "same_offset_other_bytes" if has_other else "lost_tail"
                where = {"topic": main.topic, "partition": main.partition, "first_offset": first}
                yield finding("replica_divergence", label, "critical", where)


def _is_stranger(ours: Row, theirs: Row) -> bool:
    has_shared = any(not _differs(ours.get(at), row, 0) for at, row in theirs.items())
    return may_be_of_two_topics(_lineage(ours), _lineage(theirs), has_shared=has_shared)


def _lineage(batches: Row) -> Lineage:
    epochs = [row.partition_leader_epoch for row in batches.values()]
    times = [row.max_timestamp_ms for row in batches.values() if row.max_timestamp_ms is not None]
    return Lineage(min(batches), min(epochs), max(epochs), min(times, default=None))


def _differs(ours: Any, theirs: Any, end: int) -> bool:
    if ours is None:
        return bool(theirs.base_offset >= end)
    same = (ours.crc, ours.partition_leader_epoch) == (theirs.crc, theirs.partition_leader_epoch)
    return not same


def damage(one: Replayed) -> Iterator[Row]:
    """Bytes that no broker wrote."""
    for row in damage_rows(one.read):  # type: ignore[arg-type]  # asks only what `Read` has
        topic, partition, label, is_active = row[1], row[2], row[8], row[12]
        is_normal = (
            label in ("torn_tail", "zero_tail", "gap_between_segments") and is_active
        ) or label == "segment_overlap"
        if not is_normal:
            where = {"topic": topic, "partition": partition, "first_offset": row[10]}
            yield finding("damaged_log", label, "major", where, reason=row[9])
