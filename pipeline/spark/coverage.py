"""How far everything was read, from the plan and the segment rows; pure Python on the driver.

What this module decides, every absence rests on: up to which broker time each file was read, and whether
every coordinator partition is there. `replica_facts` tells where complete history begins.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from pipeline.config import Config
from pipeline.replay.alive import Alive
from pipeline.replay.coverage import (
    ALWAYS,
    NEVER,
    CoordinatorCoverage,
    PartitionCoverage,
    Tolerances,
    certain_until,
)
from pipeline.spark.coordinator_rows import CoordinatorLog
from pipeline.spark.partition_input import Coverage
from pipeline.spark.plan import Plan
from pipeline.spark.replica_facts import ReplicaFacts, instants, is_left
from schemas.codes import METADATA_TOPIC, OFFSETS_TOPIC, TXN_TOPIC

MANY_PARTITIONS = 10
"""One broker of several holds so many partitions without a gap only if it holds all."""
INTERNAL = (TXN_TOPIC, OFFSETS_TOPIC, METADATA_TOPIC)


class Absent(NamedTuple):
    """A partition that a checkpoint names and that is not in the copy although its high watermark is above 0."""

    copy: int
    topic: str
    partition: int
    high_watermark: int


def partition_count(plan: Plan, copy: int, topic: str, configured: int | None) -> int | None:
    """Number of partitions of an internal topic: configured, or as stopped brokers list them without a gap.

    A checkpoint that was copied from a running broker may be older than some of the partitions, so it tells no number.
    Few partitions may be the first ones of more, where some topic shows that other brokers hold partitions too.
    """
    if configured is not None:
        return configured
    listed = {one.partition for one in plan.replicas if one.copy == copy and one.topic == topic}
    mine = [log_dir for log_dir in plan.log_dirs if log_dir.copy == copy]
    if not any(log_dir.is_clean_shutdown for log_dir in mine):
        return None
    for log_dir in mine:
        listed |= {number for name, number in log_dir.high_watermarks if name == topic}
    if not _is_gapless(listed) or (len(listed) < MANY_PARTITIONS and _lacks_brokers(plan, copy)):
        return None
    return len(listed)


def _is_gapless(partitions: set[int]) -> bool:
    return bool(partitions) and partitions == set(range(max(partitions) + 1))


def _lacks_brokers(plan: Plan, copy: int) -> bool:
    """A topic lacks partitions below its greatest: brokers that hold them are not in the copy."""
    listed: dict[str, set[int]] = defaultdict(set)
    for replica in plan.replicas:
        if replica.copy == copy:
            listed[replica.topic].add(replica.partition)
    for log_dir in plan.log_dirs:
        if log_dir.copy == copy:
            for topic, partition in log_dir.high_watermarks:
                listed[topic].add(partition)
    return not all(_is_gapless(partitions) for partitions in listed.values())


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
    instant = instants(plan.log_dirs)
    return [
        one
        for one in facts
        if one.is_replayed
        and instant.get(one.copy)
        and not one.is_one_instant
        and one.high_watermark is not None
        and one.log_end_offset < one.high_watermark
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
    newest: dict[int, dict[int, Alive]],
    counts: dict[int, int | None],
    config: Config,
    longest_timeout_ms: int = 0,
) -> Coverage:
    """Everything that the rules about absences ask.

    Args:
        plan: What was found.
        facts: All replicas, with frontiers.
        newest: Replica id of a coordinator partition -> coordinator epoch -> how long it lived.
        counts: Copy -> number of partitions of `__transaction_state`.
        config: The configuration.
        longest_timeout_ms: The longest transaction timeout that a coordinator of the copy granted: the brokers' maximum
            is no shorter, whatever the settings say.
    """
    broker_ms = _broker_times(facts)
    dirs = {log_dir.path: log_dir for log_dir in plan.log_dirs}
    clean = {log_dir.path: log_dir.is_clean_shutdown for log_dir in plan.log_dirs}
    some_clean = {log_dir.copy for log_dir in plan.log_dirs if log_dir.is_clean_shutdown}
    partitions: dict[tuple[int, str, int], PartitionCoverage] = {}
    coordinators: dict[tuple[int, int], CoordinatorCoverage] = {}
    patience = tolerances(config)
    stamps = _stamps(facts)
    for one in facts:
        if not one.is_replayed:
            continue
        is_final = bool(clean.get(one.log_dir)) and not is_left(
            dirs[one.log_dir], one.topic, one.partition
        )
        until = _until(one, broker_ms, is_final)
        others = stamps[one.copy, one.broker_id] if is_final else ()
        partitions[one.copy, one.topic, one.partition] = PartitionCoverage(
            one.history_start_offset,
            until,
            one.is_one_instant,
            is_crash_image=one.copy in some_clean and not clean.get(one.log_dir),
            stamps=others,
        )
        if one.topic == TXN_TOPIC:
            frontier = NEVER if one.is_complete else _or(one.frontier_ms, ALWAYS)
            lived = newest.get(one.replica_id, {})
            times = np.array([ms for _, of in sorted(lived.items()) for ms in of.pulse], np.int64)
            coordinators[one.copy, one.partition] = CoordinatorCoverage(
                certain_until(until, times, others, patience.clock_skew_ms),
                frontier,
                lived,
                True,
                certain_until(until, times, others, patience.patience_ms),
            )
    everything = {
        copy: _everything(plan, copy, counts.get(copy), coordinators)
        for copy in {log_dir.copy for log_dir in plan.log_dirs} | {one.copy for one in facts}
    }
    longest_ms = max(patience.transaction_max_timeout_ms, longest_timeout_ms)
    patience = patience._replace(transaction_max_timeout_ms=longest_ms)
    return Coverage(partitions, coordinators, everything, patience)


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


def _stamps(facts: list[ReplicaFacts]) -> dict[tuple[int, int | None], tuple[int, ...]]:
    """(copy, broker) -> newest time of each of its logs, ascending."""
    found: dict[tuple[int, int | None], set[int]] = defaultdict(set)
    for one in facts:
        if one.read_until_ms is not None:
            found[one.copy, one.broker_id].add(one.read_until_ms)
    return defaultdict(tuple, {key: tuple(sorted(times)) for key, times in found.items()})


def _until(one: ReplicaFacts, broker_ms: dict[tuple[int, int | None], int], is_final: bool) -> int:
    """Broker time up to which the file is complete: a clean stop makes all files of a broker one instant."""
    if one.is_one_instant:
        return ALWAYS
    has_tail = one.high_watermark is None or one.log_end_offset >= one.high_watermark
    if is_final and has_tail:
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
    newest: dict[int, Alive] = {}
    for one in mine.values():
        for epoch, alive in one.alive.items():
            newest[epoch] = max(newest.get(epoch, alive), alive)
    return CoordinatorCoverage(
        min((one.read_until_ms for one in mine.values()), default=ALWAYS),
        max((one.frontier_ms for one in mine.values()), default=NEVER),
        newest,
        is_read,
        min((one.settled_until_ms for one in mine.values()), default=ALWAYS),
    )


def _is_empty(plan: Plan, copy: int, partition: int) -> bool:
    """A stopped broker names it with high watermark 0: nothing was ever written to it."""
    marks = [
        (log_dir.high_watermarks[TXN_TOPIC, partition], log_dir.is_clean_shutdown)
        for log_dir in plan.log_dirs
        if log_dir.copy == copy and (TXN_TOPIC, partition) in log_dir.high_watermarks
    ]
    return bool(marks) and all(mark == 0 and is_clean for mark, is_clean in marks)
