"""Partitions that moved from one log directory of their broker to another while the broker was copied.

A copy made in passes, or disk by disk, holds such a partition twice: as it was, and as it is. Taken for two copies of
the broker, each would lack half of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations

from pipeline.spark.files import opened
from pipeline.spark.found import Partition
from pipeline.spark.inventory import LogDir
from pipeline.spark.walk import Walk
from pipeline.wire import checkpoints
from pipeline.wire.batch import Damage
from pipeline.wire.log_dir import parse_file
from pipeline.wire.scan import scan

Place = tuple[str, int]
"""Topic and partition."""


def left_behind(
    walk: Walk, log_dirs: Mapping[str, LogDir], topic_ids: Mapping[str, str | None]
) -> list[Partition]:
    """What another log directory of the same broker holds in a later state.

    Log directories are told apart by `directory.id` (KIP-858, Kafka 3.7). Without it, those are disks that have few
    partitions in common, for two copies of one directory hold the same; and those of which each holds partitions of a
    topic that the other one lacks. All others are copies of their broker.

    Args:
        walk: What was found.
        log_dirs: By path.
        topic_ids: By path of the partition's directory.
    """
    found: dict[tuple[int, str, str | None, int], list[Partition]] = defaultdict(list)
    with_disks = _with_disks(walk, log_dirs)
    for one in walk.partitions:
        broker = log_dirs[one.log_dir].broker_id
        if broker in with_disks and not one.suffix:
            found[broker, one.topic, topic_ids[one.path], one.partition].append(one)
    behind = []
    for same in found.values():
        if len(same) > 1:
            same.sort(key=lambda one: (*_state(walk, one), one.path))
            behind += same[:-1]
    return behind


def _with_disks(walk: Walk, log_dirs: Mapping[str, LogDir]) -> set[int]:
    """Brokers of which every two log directories are two disks.

    Where a broker was certainly copied twice, the others were as well: what they hold twice may have been reassigned.
    """
    of_broker: dict[int, list[LogDir]] = defaultdict(list)
    for one in log_dirs.values():
        if one.broker_id is not None:
            of_broker[one.broker_id].append(one)
    held: dict[str, set[Place]] = defaultdict(set)
    for partition in walk.partitions:
        if not partition.suffix:
            held[partition.log_dir].add((partition.topic, partition.partition))
    for one in log_dirs.values():
        held[one.path] |= one.high_watermarks.keys() | one.recovery_points.keys()
    disks = {
        broker: all(_are_disks(*pair, held) for pair in combinations(its, 2))
        for broker, its in of_broker.items()
    }
    are_named = {
        broker for broker, its in of_broker.items() if all(one.directory_id for one in its)
    }
    return {
        broker
        for broker, are in disks.items()
        if are and (broker in are_named or all(disks.values()))
    }


def _are_disks(one: LogDir, other: LogDir, held: Mapping[str, set[Place]]) -> bool:
    """Whether two log directories of a broker are two of its `log.dirs`, and not one of them copied twice."""
    if one.directory_id is not None and other.directory_id is not None:
        return one.directory_id != other.directory_id
    its, others = held[one.path], held[other.path]
    if len(its & others) * 2 < min(len(its), len(others)):
        return True
    # Partitions of a topic come to a broker and leave it together, or with the reassignment of all brokers.
    is_spread = {topic for topic, _ in its - others} & {topic for topic, _ in others - its}
    return one.has_checkpoints and other.has_checkpoints and bool(is_spread)


def _state(walk: Walk, one: Partition) -> tuple[int, int]:
    """How far a directory's log got: leader epoch, end offset."""
    epochs = None
    if "leader-epoch-checkpoint" in one.files:
        file = one.files["leader-epoch-checkpoint"]
        epochs = walk.read(file, checkpoints.leader_epoch_checkpoint)
    segments = [
        (named.base_offset, file.path)
        for name, file in one.files.items()
        if (named := parse_file(name)) is not None and named.kind == "log" and not named.suffix
    ]
    return max((epoch for epoch, _ in epochs or ()), default=-1), _end_offset(
        *max(segments, default=(-1, ""))
    )


def _end_offset(base_offset: int, path: str) -> int:
    """Offset behind the last batch of a segment that can be read: the cleaner may have merged those before it."""
    end_offset = base_offset
    try:
        with opened(path) as file:
            for piece in scan(file.read_at, file.size, first_offset=base_offset):
                if not isinstance(piece, Damage):
                    end_offset = int(piece.arrays.last_offset.max(initial=end_offset - 1)) + 1
    except OSError:
        return base_offset  # That it cannot be read is told where it is read as a whole.
    return end_offset
