"""What a copy lacks, told from its checkpoints and names alone: nothing is replayed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.wire.checkpoints import offset_checkpoint
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS
from pipeline.wire.log_dir import parse_file, parse_name
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


def gaps(path: str) -> Iterator[Gap]:
    """Yield what the log directories under a path name but do not hold.

    Args:
        path: a log directory, or a folder of any depth that holds some.
    """
    has_coordinator = False
    for folder, directories, files in os.walk(path):
        directories.sort()
        partitions = {name for name in directories if _is_partition(folder, name)}
        if not partitions:
            continue
        directories[:] = [name for name in directories if name not in partitions]
        has_coordinator |= any(name.startswith(f"{TXN_TOPIC}-") for name in partitions)
        yield from _of_directory(Path(folder), partitions, set(files))
    if not has_coordinator:
        what = f"no partition of {TXN_TOPIC}: nobody can tell who owns an open transaction"
        yield Gap(path, what, f"copy every {TXN_TOPIC}-* directory of every broker")


def _is_partition(folder: str, name: str) -> bool:
    """By name and by a log in it: `broker-1` is named like a partition too."""
    if parse_name(name) is None:
        return False
    files = (parse_file(file) for file in os.listdir(os.path.join(folder, name)))
    return any(file is not None and file.kind == "log" for file in files)


def _of_directory(folder: Path, partitions: set[str], files: set[str]) -> Iterator[Gap]:
    if PROPERTIES not in files:
        yield Gap(
            str(folder), f"no {PROPERTIES}: broker and cluster are unknown", f"copy {PROPERTIES}"
        )
    if CHECKPOINT not in files:
        yield Gap(
            str(folder),
            f"no {CHECKPOINT}: what else is missing cannot be told",
            f"copy {CHECKPOINT}",
        )
        return
    try:
        with (folder / CHECKPOINT).open("rb") as file:
            data = file.read(DEFAULT_LIMITS.max_sidecar_bytes)
        named = offset_checkpoint(data)
    except (OSError, WireError) as error:
        yield Gap(str(folder), f"{CHECKPOINT} cannot be read ({error})", "copy it again")
        return
    for topic, partition, high_watermark in sorted(named):
        name = f"{topic}-{partition}"
        if name not in partitions and high_watermark > 0:
            what = f"{name} is absent, its high watermark is {high_watermark}"
            yield Gap(str(folder), what, f"copy the directory {name}")
