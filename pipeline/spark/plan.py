"""What is in the input: log directories, replicas and files, before anything is decoded.

Runs on the driver, without Spark. Nothing in the input is written, only regular files are opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from pipeline.errors import UsageError
from pipeline.spark import copies, moved, remote
from pipeline.spark.found import (
    CHECKPOINTS,
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    File,
    Partition,
    labelled,
    labels,
)
from pipeline.spark.inventory import (
    LOG,
    UNKNOWN_CLUSTER,
    LogDir,
    Offsets,
    Plan,
    Replica,
    Skipped,
    SourceFile,
    stable_id,
)
from pipeline.spark.walk import Walk
from pipeline.text import redact, sanitise
from pipeline.wire import checkpoints
from pipeline.wire.log_dir import MAX_INT32, parse_file

__all__ = [
    "UNKNOWN_CLUSTER",
    "LogDir",
    "Plan",
    "Replica",
    "Skipped",
    "SourceFile",
    "plan",
    "stable_id",
]

_BROKER_ID = re.compile(r"[0-9]{1,10}")


def plan(inputs: Sequence[str], *, cluster_id: str | None = None) -> Plan:
    """Finds everything below the inputs.

    Args:
        inputs: Trees with log directories at any depth, partition directories, or single files;
            local paths, `file:`, or addresses of remote storage; archives
            and dump texts count as trees.
        cluster_id: Cluster of an input that does not tell.

    Raises:
        UsageError: An input does not exist or cannot be listed, or two clusters are mixed.
    """
    walk = Walk()
    roots = [
        remote.shown(given) if remote.is_remote(given) else os.path.abspath(_local(given))
        for given in inputs
    ]
    for number, (given, root, label) in enumerate(zip(inputs, roots, labels(roots), strict=True)):
        if remote.is_remote(given):
            walk.remote(given, number, label)
            continue
        if not os.path.exists(root):
            raise UsageError(f"input {sanitise(given)} does not exist")
        try:
            walk.root(root, number, label)
        except OSError as error:
            raise UsageError(f"input {sanitise(given)} cannot be read: {error.strerror}") from None
    _logs_alone(walk, inputs)
    topic_ids = {one.path: _topic_id(walk, one) for one in walk.partitions}
    log_dirs = _log_dirs(walk, topic_ids)
    cluster = _cluster(log_dirs, cluster_id)
    replicas: list[Replica] = []
    files: list[SourceFile] = []
    sizes = [0] * len(inputs)
    for one in walk.partitions:
        replica = _replica(walk, one, log_dirs[one.log_dir], cluster, topic_ids[one.path])
        replicas.append(replica)
        held = _files(walk, one, replica)
        sizes[one.root] += sum(file.size for file in held)
        files += held
    return Plan(
        tuple(map(redact, inputs)),
        cluster,
        tuple(log_dirs[path] for path in sorted(log_dirs)),
        tuple(replicas),
        tuple(files),
        tuple(walk.aside.skipped),
        tuple(walk.aside.unread),
        tuple(sizes),
    )


def _logs_alone(walk: Walk, inputs: Sequence[str]) -> None:
    """Texts and exports beside log directories are listed and not read: they would be taken for further replicas.

    Raises:
        UsageError: An input of its own is nothing but texts or exports, and another one holds logs.
    """
    with_logs = {one.root for one in walk.partitions if one.source == LOG}
    if not with_logs:
        return
    others = [one for one in walk.partitions if one.source != LOG]
    for one in others:
        if one.root not in with_logs:
            given = sanitise(redact(inputs[one.root]))
            raise UsageError(
                f"input {given} is a dump text or an export, another holds log directories: audit one at a time"
            )
    walk.leave_out(others, "beside log directories, which tell more: give it alone to audit it")


def _local(given: str) -> str:
    for scheme in ("file://", "file:"):
        if given.startswith(scheme):
            return given[len(scheme) :]
    return given


def _cluster(log_dirs: dict[str, LogDir], given: str | None) -> str:
    found = sorted({sanitise(one.cluster_id) for one in log_dirs.values() if one.cluster_id})
    if len(found) > 1:
        raise UsageError(
            f"the input holds two clusters: {found[0]} and {found[1]}; audit one at a time"
        )
    return given or (found[0] if found else UNKNOWN_CLUSTER)


def _topic_id(walk: Walk, one: Partition) -> str | None:
    file = one.files.get("partition.metadata")
    return walk.read(file, checkpoints.partition_metadata) if file else None


def _log_dirs(walk: Walk, topic_ids: dict[str, str | None]) -> dict[str, LogDir]:
    """All log directories by path; their partitions stand for those without files of their own."""
    log_dirs = {
        path: _log_dir(walk, path, name, files) for path, (name, files) in walk.folders.items()
    }
    for one in walk.partitions:
        name = labelled(one.label, one.log_dir_name)
        log_dirs.setdefault(one.log_dir, LogDir(one.log_dir, name=name))
    behind = moved.left_behind(walk, log_dirs, topic_ids)
    walk.leave_out(
        behind, "that another log directory of its broker holds in a later state", "not_replayed"
    )
    holdings = []
    for one in walk.partitions:
        broker = log_dirs[one.log_dir].broker_id
        if broker is not None and not one.suffix:
            holdings.append(
                copies.Holding(broker, one.topic, topic_ids[one.path], one.partition, one.log_dir)
            )
    number = copies.numbers(log_dirs, holdings)
    return {path: replace(one, copy=number[path]) for path, one in log_dirs.items()}


def _log_dir(walk: Walk, path: str, name: str, files: dict[str, File]) -> LogDir:
    known: dict[str, Offsets] = {}
    for file_name in CHECKPOINTS:
        if file_name in files:
            rows = walk.read(files[file_name], checkpoints.offset_checkpoint)
            if rows is not None:
                known[file_name] = {(topic, number): offset for topic, number, offset in rows}
    properties: dict[str, str] = {}
    if META_PROPERTIES in files:
        properties = walk.read(files[META_PROPERTIES], checkpoints.meta_properties) or {}
    broker = properties.get("node.id", properties.get("broker.id", ""))
    is_number = _BROKER_ID.fullmatch(broker) is not None and int(broker) <= MAX_INT32
    return LogDir(
        path,
        int(broker) if is_number else None,
        properties.get("cluster.id"),
        properties.get("directory.id"),
        is_clean_shutdown=CLEAN_SHUTDOWN in files,
        has_checkpoints=HIGH_WATERMARKS in known,
        high_watermarks=known.get(HIGH_WATERMARKS, {}),
        log_starts=known.get(LOG_STARTS, {}),
        cleaner_offsets=known.get(CLEANER_OFFSETS, {}),
        recovery_points=known.get(RECOVERY_POINTS, {}),
        name=name,
    )


def _replica(
    walk: Walk, one: Partition, log_dir: LogDir, cluster: str, topic_id: str | None
) -> Replica:
    epochs = None
    if "leader-epoch-checkpoint" in one.files:
        epochs = walk.read(
            one.files["leader-epoch-checkpoint"], checkpoints.leader_epoch_checkpoint
        )
    # Without a broker id the place below its root tells, so that a moved copy keeps its ids.
    broker = log_dir.broker_id if log_dir.broker_id is not None else [one.root, one.log_dir_name]
    where = [one.root, one.name] if one.suffix else []
    if one.source != LOG:
        where = [one.root, one.name, one.log_dir.rpartition("!")[2]]
    identity = (log_dir.copy, cluster, broker, one.topic, topic_id, one.partition, where)
    return Replica(
        stable_id(*identity),
        log_dir.copy,
        cluster,
        log_dir.broker_id,
        one.log_dir,
        one.topic,
        topic_id,
        one.partition,
        one.suffix,
        tuple(epochs or ()),
        labelled(one.label, one.name),
        one.source,
    )


def _files(walk: Walk, one: Partition, replica: Replica) -> list[SourceFile]:
    """Files to be read; those of other directories and states are noted."""
    files = []
    for base_name, file in one.files.items():
        segment = parse_file(base_name)
        if segment is None:
            continue
        if replica.suffix or segment.suffix:
            why = replica.suffix or segment.suffix
            walk.aside.skipped.append(Skipped(file.name, "not_replayed", f"{why} file", file.size))
            continue
        segment_id = stable_id(replica.replica_id, segment.kind, segment.base_offset)
        files.append(
            SourceFile(
                file.path,
                file.name,
                segment.kind,
                segment.base_offset,
                file.size,
                replica.replica_id,
                segment_id,
                one.topic,
            )
        )
    return files
