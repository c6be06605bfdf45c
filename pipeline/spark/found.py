"""What a walk finds: files, partitions, and how they are named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.spark.inventory import LOG
from pipeline.text import sanitise

HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
CHECKPOINTS = (HIGH_WATERMARKS, LOG_STARTS, CLEANER_OFFSETS, RECOVERY_POINTS)
"""Offset checkpoints of a log directory."""

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


@dataclass(frozen=True)
class File:
    """A regular file, listed but not opened; `data` where it was read in passing."""

    path: str
    name: str
    size: int
    data: bytes | None = None


@dataclass(frozen=True)
class Partition:
    """A directory that holds files of a log.

    `name` and `log_dir_name` are paths below the root of that number, `label` tells that root from others
    where people read names.
    """

    path: str
    name: str
    root: int
    log_dir: str
    log_dir_name: str
    topic: str
    partition: int
    suffix: str
    files: dict[str, File]
    label: str = ""
    source: str = LOG


def labelled(label: str, name: str) -> str:
    """A path below an input, with what tells that input from others."""
    return os.path.normpath(os.path.join(label, name))


def labels(roots: Sequence[str]) -> list[str]:
    """For each input as many last parts of its folder's path as tell all folders apart; nothing for one folder.

    Args:
        roots: Absolute paths of folders and files.
    """
    folders = [root if os.path.isdir(root) else os.path.dirname(root) for root in roots]
    parts = [folder.strip(os.sep).split(os.sep) for folder in folders]
    wanted = len(set(folders))
    count, found = 0, [""] * len(roots)
    while len(set(found)) < wanted and count < max(map(len, parts)):
        count += 1
        found = [sanitise(os.path.join(*one[-count:])) for one in parts]
    return found
