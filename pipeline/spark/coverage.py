"""How far everything was read, from the plan and the segment rows; pure Python on the driver.

What this module decides, every absence rests on: which replica stands for a partition, where its
complete history begins,
up to which broker time each file was read, and whether every coordinator partition is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from pipeline.config import Config
from pipeline.replay.coverage import (
    ALWAYS,
    NEVER,
    CoordinatorCoverage,
    PartitionCoverage,
    Tolerances,
)
from pipeline.spark.coordinator_rows import CoordinatorLog
from pipeline.spark.partition_rows import Coverage
from pipeline.spark.plan import LogDir, Plan, Replica
from schemas.codes import METADATA_TOPIC, OFFSETS_TOPIC, TXN_TOPIC

INTERNAL = (TXN_TOPIC, OFFSETS_TOPIC, METADATA_TOPIC)


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


class Absent(NamedTuple):
    """A partition that a checkpoint names and that is not in the copy although its high watermark is above 0."""

    copy: int
    topic: str
    partition: int
    high_watermark: int


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
    instant = _instants(plan.log_dirs)
    facts = [
        _facts(
            replica, dirs[replica.log_dir_path], by_replica[replica.replica_id], instant, damaged
        )
        for replica in plan.replicas
        if replica.suffix == "" and by_replica.get(replica.replica_id)
    ]
    return _elect(facts)


def _instants(log_dirs: Iterable[LogDir]) -> dict[int, bool]:
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
        and not _lacks_tail(segments, log_dir.high_watermarks.get(key)),
        start,
        log_start,
        cleaner,
        log_dir.high_watermarks.get(key),
        end,
        max(epochs, default=None),
        min(first, default=None),
        max(last, default=None),
        None,
        is_complete,
        replica.replica_id in damaged,
    )


def _lacks_tail(segments: list[dict[str, Any]], high_watermark: int | None) -> bool:
    """The log ends below its own high watermark: a segment is missing (or the checkpoint is newer than the data)."""
    ends = [one["base_offset"] for one in segments]
    ends += [one["last_offset"] + 1 for one in segments if one["last_offset"] is not None]
    return high_watermark is not None and max(ends) < high_watermark


def _complete_from(segments: list[dict[str, Any]]) -> int:
    """First offset from which nothing is missing: behind the last hole and the last shortened batch."""
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
    elected = list(facts)
    for members in groups.values():
        best = max(
            members,
            key=lambda index: (
                facts[index].max_leader_epoch if facts[index].max_leader_epoch is not None else -1,
                facts[index].log_end_offset,
                -facts[index].history_start_offset,
                -(facts[index].broker_id or 0),
            ),
        )
        elected[best] = facts[best]._replace(is_replayed=True)
    return elected


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


def partition_count(plan: Plan, copy: int, topic: str, configured: int | None) -> int | None:
    """Number of partitions of an internal topic: configured, or as stopped brokers list them without a gap.

    A checkpoint that was copied from a running broker may be older than some of the partitions, so it tells no number.
    """
    if configured is not None:
        return configured
    listed = {one.partition for one in plan.replicas if one.copy == copy and one.topic == topic}
    mine = [log_dir for log_dir in plan.log_dirs if log_dir.copy == copy]
    if not any(log_dir.is_clean_shutdown for log_dir in mine):
        return None
    for log_dir in mine:
        listed |= {number for name, number in log_dir.high_watermarks if name == topic}
    if listed and listed == set(range(max(listed) + 1)):
        return max(listed) + 1
    return None


def absent_partitions(plan: Plan) -> list[Absent]:
    """Partitions that a high-watermark checkpoint names above 0 and that no log directory of the copy holds."""
    present = {
        (replica.copy, replica.topic, replica.partition)
        for replica in plan.replicas
        if replica.suffix in ("", "future")
    }
    absent: dict[tuple[int, str, int], int] = {}
    for log_dir in plan.log_dirs:
        for (topic, partition), offset in log_dir.high_watermarks.items():
            key = (log_dir.copy, topic, partition)
            if offset > 0 and key not in present:
                absent[key] = max(offset, absent.get(key, 0))
    return [Absent(*key, offset) for key, offset in sorted(absent.items())]


def cut_short(plan: Plan, facts: list[ReplicaFacts]) -> list[ReplicaFacts]:
    """Replayed replicas of brokers that were stopped cleanly, in a copy of one instant but for what they lack."""
    instant = _instants(plan.log_dirs)
    return [
        one for one in facts if one.is_replayed and instant.get(one.copy) and not one.is_one_instant
    ]


def coordinator_logs(
    facts: list[ReplicaFacts], counts: dict[int, int | None]
) -> dict[int, CoordinatorLog]:
    """Replica id -> what the coordinator replay needs, for the replayed replicas of `__transaction_state`."""
    return {
        one.replica_id: CoordinatorLog(
            one.copy, one.partition, counts.get(one.copy), one.history_start_offset, one.is_complete
        )
        for one in facts
        if one.is_replayed and one.topic == TXN_TOPIC
    }


def coverage(
    plan: Plan,
    facts: list[ReplicaFacts],
    newest: dict[int, dict[int, int]],
    counts: dict[int, int | None],
    config: Config,
) -> Coverage:
    """Everything that the rules about absences ask.

    Args:
        plan: What was found.
        facts: All replicas, with frontiers.
        newest: Replica id of a coordinator partition -> coordinator epoch -> newest append time.
        counts: Copy -> number of partitions of `__transaction_state`.
        config: The configuration.
    """
    broker_ms = _broker_times(facts)
    clean = {log_dir.path: log_dir.is_clean_shutdown for log_dir in plan.log_dirs}
    some_clean = {log_dir.copy for log_dir in plan.log_dirs if log_dir.is_clean_shutdown}
    partitions: dict[tuple[int, str, int], PartitionCoverage] = {}
    coordinators: dict[tuple[int, int], CoordinatorCoverage] = {}
    for one in facts:
        if not one.is_replayed:
            continue
        until = _until(one, broker_ms, clean)
        partitions[one.copy, one.topic, one.partition] = PartitionCoverage(
            one.history_start_offset,
            until,
            one.is_one_instant,
            is_crash_image=one.copy in some_clean and not clean.get(one.log_dir),
        )
        if one.topic == TXN_TOPIC:
            frontier = NEVER if one.is_complete else _or(one.frontier_ms, ALWAYS)
            coordinators[one.copy, one.partition] = CoordinatorCoverage(
                until, frontier, newest.get(one.replica_id, {}), True
            )
    everything = {
        copy: _everything(plan, copy, counts.get(copy), coordinators)
        for copy in {log_dir.copy for log_dir in plan.log_dirs} | {one.copy for one in facts}
    }
    return Coverage(partitions, coordinators, everything, tolerances(config))


def tolerances(config: Config) -> Tolerances:
    """The configured patience as the replay takes it."""
    return Tolerances(
        config.marker_grace_ms,
        config.clock_skew_ms,
        config.transaction_max_timeout_ms,
        config.late_buffer_ms,
        config.abort_scan_ms,
        config.copy_started_ms,
        config.as_of_ms,
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _broker_times(facts: list[ReplicaFacts]) -> dict[tuple[int, int | None], int]:
    newest: dict[tuple[int, int | None], int] = {}
    for one in facts:
        if one.read_until_ms is not None:
            key = (one.copy, one.broker_id)
            newest[key] = max(newest.get(key, NEVER), one.read_until_ms)
    return newest


def _until(
    one: ReplicaFacts, broker_ms: dict[tuple[int, int | None], int], clean: dict[str, bool]
) -> int:
    """Broker time up to which the file is complete: a clean stop makes all files of a broker one instant."""
    if one.is_one_instant:
        return ALWAYS
    has_tail = one.high_watermark is None or one.log_end_offset >= one.high_watermark
    if clean.get(one.log_dir) and has_tail:
        return broker_ms.get((one.copy, one.broker_id), NEVER)
    return _or(one.read_until_ms, NEVER)


def _everything(
    plan: Plan,
    copy: int,
    count: int | None,
    coordinators: dict[tuple[int, int], CoordinatorCoverage],
) -> CoordinatorCoverage:
    mine = {number: one for (of, number), one in coordinators.items() if of == copy}
    is_read = count is not None and all(
        number in mine or _is_empty(plan, copy, number) for number in range(count)
    )
    newest: dict[int, int] = {}
    for one in mine.values():
        for epoch, ms in one.newest_ms.items():
            newest[epoch] = max(newest.get(epoch, NEVER), ms)
    return CoordinatorCoverage(
        min((one.read_until_ms for one in mine.values()), default=ALWAYS),
        max((one.frontier_ms for one in mine.values()), default=NEVER),
        newest,
        is_read,
    )


def _is_empty(plan: Plan, copy: int, partition: int) -> bool:
    """A stopped broker names it with high watermark 0: nothing was ever written to it."""
    marks = [
        (log_dir.high_watermarks[TXN_TOPIC, partition], log_dir.is_clean_shutdown)
        for log_dir in plan.log_dirs
        if log_dir.copy == copy and (TXN_TOPIC, partition) in log_dir.high_watermarks
    ]
    return bool(marks) and all(mark == 0 and is_clean for mark, is_clean in marks)
