"""Segments that are not in the copy although the ones before and behind them are; pure Python on the driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from pipeline.spark.coverage import INTERNAL
from pipeline.spark.plan import Plan
from pipeline.spark.replica_facts import ReplicaFacts

Row = dict[str, Any]


class Gap(NamedTuple):
    """Offsets between two segments of one replica that neither holds.

    Attributes:
        replica: The replica.
        segment: Row of `bronze.segment` of the one behind the gap.
        last_offset: Last offset in front of it.
        is_running_copy: The broker was not stopped cleanly: retention may have removed the segment meanwhile.
    """

    replica: ReplicaFacts
    segment: Row
    last_offset: int
    is_running_copy: bool


def segment_gaps(
    plan: Plan, facts: Iterable[ReplicaFacts], segments: Iterable[Row], unreadable: Iterable[Row]
) -> list[Gap]:
    """Gaps that nothing but a lost segment explains.

    A broker rolls a segment at its log end, so the next one is named by the offset behind it (Kafka:
    `UnifiedLog.roll`). Only the cleaner, retention and damage make that untrue: nothing is said of internal topics, of
    topics of which any replica shows cleaning (a checkpoint, a hole inside a segment, a shortened batch), of what
    lies below the log start, of segments with unreadable places and of message sets older than version 2.

    Args:
        plan: What was found.
        facts: All replicas.
        segments: Rows of `bronze.segment`.
        unreadable: Rows of `bronze.unreadable`.
    """
    by_replica: dict[int, list[Row]] = defaultdict(list)
    for segment in segments:
        if segment["first_offset"] is not None and not segment["is_superseded"]:
            by_replica[segment["replica_id"]].append(segment)
    damaged = {row["segment_id"] for row in unreadable}
    places = {one.replica_id: one for one in facts if one.topic not in INTERNAL}
    topics = {replica_id: (one.copy, one.topic) for replica_id, one in places.items()}
    cleaned = cleaned_topics(plan, topics, (one for held in by_replica.values() for one in held))
    is_clean = {log_dir.path: log_dir.is_clean_shutdown for log_dir in plan.log_dirs}
    gaps = []
    for replica_id, place in sorted(places.items()):
        if (place.copy, place.topic) in cleaned:
            continue
        mine = sorted(by_replica[replica_id], key=lambda one: one["base_offset"])
        for before, after in pairwise(mine):
            is_known = {before["segment_id"], after["segment_id"]}.isdisjoint(damaged)
            is_known &= None not in (before["max_leader_epoch"], after["max_leader_epoch"])
            lost = max(before["last_offset"] + 1, place.log_start_offset or 0)
            if is_known and after["base_offset"] > lost:
                is_running = not is_clean.get(place.log_dir, False)
                gaps.append(Gap(place, after, before["last_offset"], is_running))
    return gaps


def cleaned_topics(
    plan: Plan, places: Mapping[int, tuple[int, str]], segments: Iterable[Row]
) -> set[tuple[int, str]]:
    """(copy, topic) of which any replica shows cleaning: a checkpoint, a hole in a segment, a shortened batch.

    Args:
        plan: What was found.
        places: Replica id -> (copy, topic), of the replicas whose segments count.
        segments: Rows of `bronze.segment`.
    """
    cleaned = {(one.copy, topic) for one in plan.log_dirs for topic, _ in one.cleaner_offsets}
    for segment in segments:
        is_cleaned = (
            segment["hole_end_offset"] is not None or segment["shortened_end_offset"] is not None
        )
        if is_cleaned and segment["replica_id"] in places:
            cleaned.add(places[segment["replica_id"]])
    return cleaned
