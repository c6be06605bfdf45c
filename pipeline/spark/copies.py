"""Several copies of one broker in one input: each is a history of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Holding(NamedTuple):
    """A current partition and where it lies; directories with a suffix take no part."""

    broker_id: int
    topic: str
    topic_id: str | None
    partition: int
    log_dir: str


def numbers(log_dirs: Iterable[str], holdings: Iterable[Holding]) -> dict[str, int]:
    """Path of a log directory -> number of its copy.

    A broker holds a partition once, whatever its disks. Where a broker's partition lies in several
    log directories, these are several copies; a copy is the subtree (below the deepest folder that
    all of them have in common) that such a directory lies in, and all log directories of that
    subtree belong to it.

    Args:
        log_dirs: Paths of all log directories.
        holdings: Current partitions of brokers that are known by id.
    """
    places: dict[tuple[int, str, str | None, int], set[str]] = {}
    for one in holdings:
        places.setdefault(one[:4], set()).add(one.log_dir)
    conflicting = sorted({path for paths in places.values() if len(paths) > 1 for path in paths})
    paths = sorted(log_dirs)
    if not conflicting:
        return dict.fromkeys(paths, 0)
    common = Path(os.path.commonpath(conflicting))
    subtree = {path: _subtree(Path(path), common) for path in paths}
    order = {part: number for number, part in enumerate(sorted(set(subtree.values())))}
    return {path: order[part] for path, part in subtree.items()}


def _subtree(path: Path, common: Path) -> tuple[str, ...]:
    """The child of the common folder that a path lies in; a path elsewhere stands for itself."""
    if common != path and common in path.parents:
        return path.parts[: len(common.parts) + 1]
    return path.parts
