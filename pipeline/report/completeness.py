"""What a copy lacks, told from its checkpoints and names alone: nothing is replayed.

The input is listed as a run lists it, so archives and remote storage are looked into too.
"""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.spark import remote
from pipeline.spark.inventory import EXPORT, LOG, LogDir, Plan
from pipeline.spark.plan import plan
from schemas.codes import TXN_TOPIC

CHECKPOINT = "replication-offset-checkpoint"
PROPERTIES = "meta.properties"


class Gap(NamedTuple):
    """Something that is missing.

    Attributes:
        folder: the log directory concerned.
        what: what is missing, and what cannot be judged without it.
        fix: what to copy.
    """

    folder: str
    what: str
    fix: str


class Untold(NamedTuple):
    """An input of which nothing tells whether it is whole.

    Attributes:
        why: why not, for a person.
    """

    why: str


def gaps(path: str) -> list[Gap] | Untold:
    """What the log directories of an input name but do not hold.

    Args:
        path: an input as a run takes it.

    Returns:
        Gaps by log directory, or why they cannot be told before a run.

    Raises:
        UsageError: a run could not list the input either.
    """
    found = plan([path])
    sources = {one.source for one in found.replicas}
    if sources and LOG not in sources:
        kind = "an export" if EXPORT in sources else "a dump text"
        return Untold(f"{kind} has no checkpoints that name what belongs to it")
    return list(_gaps(path, found))


def _gaps(path: str, found: Plan) -> Iterator[Gap]:
    with_log = {one.replica_id for one in found.files if one.kind == "log"}
    held: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for one in found.replicas:
        if one.replica_id in with_log and not one.suffix:
            held[one.log_dir_path].add((one.topic, one.partition))
    unread = {one.name for one in found.unread}
    for log_dir in found.log_dirs:
        if held[log_dir.path] or log_dir.high_watermarks:
            yield from _of_directory(
                _shown(path, log_dir.name), log_dir, held[log_dir.path], unread
            )
    for file in found.unread:
        yield Gap(_shown(path, file.name), f"it cannot be read ({file.detail})", "copy it again")
    if not any(topic == TXN_TOPIC for names in held.values() for topic, _ in names):
        what = f"no partition of {TXN_TOPIC}: nobody can tell who owns an open transaction"
        yield Gap(path, what, f"copy every {TXN_TOPIC}-* directory of every broker")


def _shown(path: str, name: str) -> str:
    """Where something lies that has this name below the input."""
    if remote.is_remote(path):
        return posixpath.join(remote.shown(path), name)
    base = path if os.path.isdir(path) else os.path.dirname(path)
    return os.path.normpath(os.path.join(base, name))


def _of_directory(
    folder: str, log_dir: LogDir, held: set[tuple[str, int]], unread: set[str]
) -> Iterator[Gap]:
    is_known = log_dir.broker_id is not None or log_dir.cluster_id is not None
    if not is_known and posixpath.join(log_dir.name, PROPERTIES).removeprefix("./") not in unread:
        what = f"no {PROPERTIES} with an id: broker and cluster are unknown"
        yield Gap(folder, what, f"copy {PROPERTIES}")
    if not log_dir.has_checkpoints:
        if posixpath.join(log_dir.name, CHECKPOINT).removeprefix("./") not in unread:
            what = f"no {CHECKPOINT}: what else is missing cannot be told"
            yield Gap(folder, what, f"copy {CHECKPOINT}")
        return
    for (topic, partition), high_watermark in sorted(log_dir.high_watermarks.items()):
        if (topic, partition) not in held and high_watermark > 0:
            name = f"{topic}-{partition}"
            what = f"{name} is absent, its high watermark is {high_watermark}"
            yield Gap(folder, what, f"copy the directory {name}")
