"""Partitions that moved from one log directory of their broker to another while the broker was copied.

A copy made in passes, or disk by disk, holds such a partition twice: as it was, and as it is. Taken for two copies of
the broker, each would lack half of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pipeline.spark.found import Partition
from pipeline.spark.inventory import LogDir
from pipeline.spark.walk import Walk
from pipeline.wire import checkpoints
from pipeline.wire.log_dir import parse_file


def left_behind(
    walk: Walk, log_dirs: Mapping[str, LogDir], topic_ids: Mapping[str, str | None]
) -> list[Partition]:
    """What another log directory of the same broker holds in a later state.

    Log directories are told apart by `directory.id` (KIP-858, Kafka 3.7); one that is there twice makes copies of its
    broker. Without it nobody can tell the two cases apart, and each directory is a copy.

    Args:
        walk: What was found.
        log_dirs: By path.
        topic_ids: By path of the partition's directory.
    """
    found: dict[tuple[int, str, str | None, int], list[Partition]] = defaultdict(list)
    for one in walk.partitions:
        broker = log_dirs[one.log_dir].broker_id
        if broker is not None and not one.suffix and _is_one_disk(log_dirs, one.log_dir):
            found[broker, one.topic, topic_ids[one.path], one.partition].append(one)
    behind = []
    for same in found.values():
        if len(same) > 1:
            same.sort(key=lambda one: (*_state(walk, one), one.path))
            behind += same[:-1]
    return behind


def _is_one_disk(log_dirs: Mapping[str, LogDir], path: str) -> bool:
    """Every log directory of this one's broker has an id, and no two have the same."""
    broker = log_dirs[path].broker_id
    ids = [one.directory_id for one in log_dirs.values() if one.broker_id == broker]
    return None not in ids and len(set(ids)) == len(ids)


def _state(walk: Walk, one: Partition) -> tuple[int, int, int]:
    """How far a directory's log got: leader epoch, base offset and bytes of its last segment."""
    epochs = None
    if "leader-epoch-checkpoint" in one.files:
        file = one.files["leader-epoch-checkpoint"]
        epochs = walk.read(file, checkpoints.leader_epoch_checkpoint)
    segments = [
        (named.base_offset, file.size)
        for name, file in one.files.items()
        if (named := parse_file(name)) is not None and named.kind == "log" and not named.suffix
    ]
    return max((epoch for epoch, _ in epochs or ()), default=-1), *max(segments, default=(-1, 0))
