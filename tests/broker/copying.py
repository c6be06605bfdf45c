"""Copies of log directories, made as `docs/copying.md` tells."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from tests.broker.broker import Cluster


def copy(cluster: Cluster, target: Path) -> int:
    """Copies the log directories of all brokers, running or not: the coordinator's logs last.

    Args:
        cluster: The brokers.
        target: A new folder; each broker gets one in it.

    Returns:
        The time just before the first file, in ms, for `--copy-started`.
    """
    started_ms = time.time_ns() // 1_000_000
    steps = (
        lambda path: path.is_file() and path.name != ".lock",
        lambda path: path.is_dir() and not path.name.startswith("__transaction_state-"),
        lambda path: path.is_dir() and path.name.startswith("__transaction_state-"),
    )
    for wanted in steps:
        for each in cluster.brokers:
            for name, disk in each.disks.items():
                for path in sorted(disk.iterdir()):
                    if wanted(path):
                        _copy(path, target / f"broker-{each.node}" / name / path.name)
    return started_ms


def _copy(source: Path, target: Path) -> None:
    """One file, or one partition's folder; what the broker removes meanwhile is left out."""
    if source.is_dir():
        try:
            names = sorted(os.listdir(source))
        except FileNotFoundError:
            return
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            _copy(source / name, target / name)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        target.unlink(missing_ok=True)
