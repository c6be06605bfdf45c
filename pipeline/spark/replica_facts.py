"""Facts of each copied replica, and which one stands for its partition; pure Python on the driver.

Every absence rests on where the complete history of a replica begins, so it is decided here, once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from pipeline.spark.plan import LogDir, Plan, Replica
from schemas.codes import METADATA_TOPIC, TXN_TOPIC

STOPPED_TOGETHER_MS = 10_000
"""Brokers whose newest times are further apart were stopped one after the other, perhaps to run again meanwhile."""


class ReplicaFacts(NamedTuple):
    """A row of `silver.replica` (same names), plus what only the driver needs."""

    replica_id: int
    copy: int
    topic: str
    partition: int
    topic_id: str | None
    broker_id: int | None
    log_dir: str
    is_replayed: bool
    is_one_instant: bool
    history_start_offset: int
    log_start_offset: int | None
    cleaner_offset: int | None
    high_watermark: int | None
    log_end_offset: int
    max_leader_epoch: int | None
    first_broker_ms: int | None
    read_until_ms: int | None
    frontier_ms: int | None
    is_complete: bool
    is_damaged: bool


def replica_facts(
    plan: Plan, segments: Iterable[dict[str, Any]], damaged: set[int]
) -> list[ReplicaFacts]:
    """Facts of every current replica, one of each partition marked as the one that is replayed.

    Args:
        plan: What was found.
        segments: Rows of `bronze.segment`.
        damaged: Replica ids with unreadable bytes other than normal tails.
    """
    by_replica: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for segment in segments:
        by_replica[segment["replica_id"]].append(segment)
    dirs = {log_dir.path: log_dir for log_dir in plan.log_dirs}
    instant = instants(plan.log_dirs)
    facts = [
        _facts(
            replica, dirs[replica.log_dir_path], by_replica[replica.replica_id], instant, damaged
        )
        for replica in plan.replicas
        if replica.suffix == "" and by_replica.get(replica.replica_id)
    ]
    return _outlived(_elect(_stopped_apart(facts)))


def _stopped_apart(facts: list[ReplicaFacts]) -> list[ReplicaFacts]:
    """Takes `is_one_instant` from brokers that were stopped, or copied, clearly before others of their copy.

    What the others wrote later proves nothing of a file that had ended by then: each broker of a rolling restart leaves
    `.kafka_cleanshutdown`. A broker whose logs hold no broker's time at all may be any of them.
    """
    newest: dict[tuple[int, int | str], int] = {}
    for one in facts:
        key = _broker(one)
        newest[key] = max(
            newest.get(key, -1), -1 if one.read_until_ms is None else one.read_until_ms
        )
    last: dict[int, int] = {}
    for (copy, _), ms in newest.items():
        last[copy] = max(last.get(copy, -1), ms)
    return [
        one._replace(is_one_instant=False)
        if one.is_one_instant and newest[_broker(one)] + STOPPED_TOGETHER_MS < last[one.copy]
        else one
        for one in facts
    ]


def _broker(one: ReplicaFacts) -> tuple[int, int | str]:
    return one.copy, one.log_dir if one.broker_id is None else one.broker_id


def instants(log_dirs: Iterable[LogDir]) -> dict[int, bool]:
    """Copy -> every broker of it was stopped cleanly."""
    clean: dict[int, bool] = {}
    for log_dir in log_dirs:
        clean[log_dir.copy] = clean.get(log_dir.copy, True) and log_dir.is_clean_shutdown
    return clean


def _facts(
    replica: Replica,
    log_dir: LogDir,
    segments: list[dict[str, Any]],
    instant: dict[int, bool],
    damaged: set[int],
) -> ReplicaFacts:
    key = (replica.topic, replica.partition)
    used = [one for one in segments if not one["is_superseded"] and one["first_offset"] is not None]
    used.sort(key=lambda one: (one["base_offset"], one["first_offset"]))
    log_start = log_dir.log_starts.get(key)
    cleaner = log_dir.cleaner_offsets.get(key)
    start = _complete_from(used)
    is_complete = start == 0 and not log_start
    if replica.topic != TXN_TOPIC:
        start = max(start, log_start or 0, cleaner or 0)
    end = max((one["last_offset"] + 1 for one in used), default=segments[0]["base_offset"])
    epochs = [one["max_leader_epoch"] for one in used if one["max_leader_epoch"] is not None]
    first = [one["first_broker_ms"] for one in used if one["first_broker_ms"] is not None]
    last = [one["last_broker_ms"] for one in used if one["last_broker_ms"] is not None]
    return ReplicaFacts(
        replica.replica_id,
        replica.copy,
        replica.topic,
        replica.partition,
        replica.topic_id,
        replica.broker_id,
        replica.log_dir_path,
        False,
        instant.get(replica.copy, False)
        and not is_left(log_dir, *key)
        and not _lacks_tail(segments, log_dir.high_watermarks.get(key)),
        start,
        log_start,
        cleaner,
        log_dir.high_watermarks.get(key),
        end,
        max(epochs, default=None),
        min(first, default=None),
        last[-1] if last else None,
        None,
        is_complete,
        replica.replica_id in damaged,
    )


def is_left(log_dir: LogDir, topic: str, partition: int) -> bool:
    """A broker that was stopped cleanly names every partition that it holds: this one it holds no more.

    A copy in several passes that removes nothing keeps what was deleted, or moved to other brokers, between them.
    """
    is_known = (topic, partition) in log_dir.high_watermarks or topic == METADATA_TOPIC
    return log_dir.is_clean_shutdown and log_dir.has_checkpoints and not is_known


def _lacks_tail(segments: list[dict[str, Any]], high_watermark: int | None) -> bool:
    """The log ends below its own high watermark: a segment is missing (or the checkpoint is newer than the data)."""
    ends = [one["base_offset"] for one in segments]
    ends += [one["last_offset"] + 1 for one in segments if one["last_offset"] is not None]
    return high_watermark is not None and max(ends) < high_watermark


def _complete_from(segments: list[dict[str, Any]]) -> int:
    """First offset from which nothing is missing: behind the last hole and the last batch that a cleaner changed."""
    start = 0
    expected: int | None = 0
    for segment in segments:
        if segment["first_offset"] != expected:
            start = max(start, segment["first_offset"])
        if segment["hole_end_offset"] is not None:
            start = max(start, segment["hole_end_offset"])
        if segment["shortened_end_offset"] is not None:
            start = max(start, segment["shortened_end_offset"] + 1)
        expected = segment["last_offset"] + 1
    return start


def _elect(facts: list[ReplicaFacts]) -> list[ReplicaFacts]:
    """Marks the most complete replica of each partition: newest topic incarnation, leader epoch, then end."""
    groups: dict[tuple[int, str, int], list[int]] = defaultdict(list)
    for index, one in enumerate(facts):
        groups[one.copy, one.topic, one.partition].append(index)
    topic_ms = _topic_ms(facts)
    elected = list(facts)
    for members in groups.values():
        current = _newest_topic([facts[index] for index in members], topic_ms)
        best = max(
            members,
            key=lambda index: (
                current is None or facts[index].topic_id == current,
                facts[index].max_leader_epoch if facts[index].max_leader_epoch is not None else -1,
                facts[index].log_end_offset,
                -facts[index].history_start_offset,
                -(facts[index].broker_id or 0),
            ),
        )
        elected[best] = facts[best]._replace(is_replayed=True)
    return elected


def _topic_ms(facts: list[ReplicaFacts]) -> dict[tuple[int, str | None], int]:
    """(copy, topic id) -> newest time that a broker stamped in any partition of it."""
    newest: dict[tuple[int, str | None], int] = {}
    for one in facts:
        if one.read_until_ms is not None:
            key = (one.copy, one.topic_id)
            newest[key] = max(newest.get(key, one.read_until_ms), one.read_until_ms)
    return newest


def _newest_topic(
    replicas: list[ReplicaFacts], topic_ms: dict[tuple[int, str | None], int]
) -> str | None:
    """Topic id of the partition's newest incarnation; None where there is one only, or nothing tells.

    A broker that was down while a topic was deleted and made anew keeps its directory. Leader epochs of the new one
    begin at 0 (Kafka: `ReplicationControlManager.createTopic`), so between two ids they tell nothing, and times do.
    """
    ids = {one.topic_id for one in replicas}
    times = {one: topic_ms.get((replicas[0].copy, one)) for one in ids if one is not None}
    known = {one: ms for one, ms in times.items() if ms is not None}
    if len(ids) < 2 or len(known) < len(ids):
        return None
    return max(known, key=lambda one: (known[one], one))


def _outlived(facts: list[ReplicaFacts]) -> list[ReplicaFacts]:
    """Takes `is_one_instant` from copies that lack a broker which went on when theirs stopped.

    A follower fetches each partition at its own pace: one may lack the marker, or the Ongoing, of what another holds.
    A leader that is alone raises its high watermark to its log's end (Kafka: `Partition.maybeIncrementLeaderHW`); below
    it, somebody else had yet to acknowledge, or to tell that all had.
    """
    outlived = {
        one.copy
        for one in facts
        if one.is_replayed
        and one.is_one_instant
        and one.high_watermark is not None
        and one.high_watermark < one.log_end_offset
    }
    return [one._replace(is_one_instant=False) if one.copy in outlived else one for one in facts]


def with_frontiers(
    facts: list[ReplicaFacts], first_ms: dict[int, int | None]
) -> list[ReplicaFacts]:
    """Sets `frontier_ms` of the coordinator's partitions.

    Args:
        facts: All replicas.
        first_ms: Replica id -> append time of the first record at or above the start of its complete history.
    """
    return [
        one._replace(frontier_ms=first_ms.get(one.replica_id))
        if one.topic == TXN_TOPIC and not one.is_complete
        else one
        for one in facts
    ]
