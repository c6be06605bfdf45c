"""Finding folders and files below the inputs: nothing is written, only regular files are opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipeline.spark.inventory import Skipped
from pipeline.text import sanitise
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits
from pipeline.wire.log_dir import parse_file, parse_name

HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
CHECKPOINTS = (HIGH_WATERMARKS, LOG_STARTS, CLEANER_OFFSETS, RECOVERY_POINTS)
"""Offset checkpoints of a log directory."""

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_FOLDER_FILES = frozenset(
    {*CHECKPOINTS, META_PROPERTIES, CLEAN_SHUTDOWN, ".lock", "bootstrap.checkpoint"}
)
_PARTITION_FILES = frozenset({"partition.metadata", "leader-epoch-checkpoint", "quorum-state"})
MAX_DEPTH = 64
Decoded = TypeVar("Decoded")


@dataclass(frozen=True)
class File:
    """A regular file, listed but not opened."""

    path: str
    name: str
    size: int


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


class Walk:
    """Collects directories; each is entered once, whatever symbolic links lead to it.

    Attributes:
        folders: Path -> (name, files by name) of directories with files of a whole log directory.
        skipped: What is no file of a log.
        unread: What could not be read.
    """

    def __init__(self) -> None:
        self._partitions: dict[str, Partition] = {}
        self.folders: dict[str, tuple[str, dict[str, File]]] = {}
        self.skipped: list[Skipped] = []
        self.unread: list[Skipped] = []
        self._entered: set[tuple[int, int]] = set()
        self._base = ""
        self._root = 0
        self._label = ""

    @property
    def partitions(self) -> list[Partition]:
        """Directories with files of a segment, in the order in which they were found."""
        return list(self._partitions.values())

    def root(self, path: str, number: int, label: str = "") -> None:
        """Walks one input: a tree, a partition directory, or a single file.

        Args:
            path: Where it lies.
            number: Its place among the inputs.
            label: What its names begin with, where there are several inputs.
        """
        self._root = number
        self._label = label
        self._base = path if os.path.isdir(path) else os.path.dirname(path)
        if os.path.isdir(path):
            self._directory(path, 0)
            return
        with os.scandir(self._base) as entries:
            chosen = [entry for entry in entries if entry.name == os.path.basename(path)]
        if _identity(self._base) not in self._entered:
            self._add(self._base, [entry for entry in chosen if self._kind(entry) == "file"])

    def _directory(self, path: str, depth: int) -> None:
        try:
            identity = _identity(path)
            with os.scandir(path) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._unread(path, "io", error.strerror or "cannot be read")
            return
        if identity in self._entered:
            return
        self._entered.add(identity)
        kinds = [(entry, self._kind(entry)) for entry in entries]
        files = [entry for entry, kind in kinds if kind == "file"]
        self._add(path, files)
        if any(entry.name in _FOLDER_FILES for entry in files):
            listed = {
                entry.name: self._file(entry) for entry in files if entry.name in _FOLDER_FILES
            }
            self.folders[path] = (self._name(path), listed)
        for entry, kind in kinds:
            if kind == "dir" and depth == MAX_DEPTH:
                self._unread(entry.path, "too_deep", f"more than {MAX_DEPTH} folders deep")
            elif kind == "dir":
                self._directory(entry.path, depth + 1)

    def _kind(self, entry: os.DirEntry[str]) -> str | None:
        """Kind of a file, symbolic links followed; FIFOs, sockets and devices are never opened."""
        try:
            mode = entry.stat().st_mode
        except OSError as error:
            self._unread(entry.path, "io", error.strerror or "cannot be read")
            return None
        if stat.S_ISDIR(mode):
            return "dir"
        if stat.S_ISREG(mode):
            return "file"
        self.skipped.append(Skipped(self._name(entry.path), "foreign", "not a regular file"))
        return None

    def _add(self, path: str, entries: list[os.DirEntry[str]]) -> None:
        """Takes the files of a directory; it is a partition when one of them is of a segment."""
        wanted: dict[str, File] = {}
        for entry in entries:
            if parse_file(entry.name) is not None or entry.name in _PARTITION_FILES:
                wanted[entry.name] = self._file(entry)
            elif entry.name not in _FOLDER_FILES:
                file = self._file(entry)
                self.skipped.append(Skipped(file.name, "foreign", "not a file of a log", file.size))
        if not any(parse_file(name) for name in wanted):
            return
        parsed = parse_name(os.path.basename(path))
        log_dir = path if parsed is None else os.path.dirname(path)
        topic = parsed.topic if parsed else sanitise(os.path.basename(path)) or "unknown"
        partition, suffix = (parsed.partition, parsed.suffix) if parsed else (0, "")
        known = self._partitions.get(path)
        self._partitions[path] = Partition(
            path,
            self._place(path),
            self._root,
            log_dir,
            self._place(log_dir),
            topic,
            partition,
            suffix,
            wanted if known is None else known.files | wanted,
            self._label,
        )

    def _file(self, entry: os.DirEntry[str]) -> File:
        return File(entry.path, self._name(entry.path), entry.stat().st_size)

    def _name(self, path: str) -> str:
        return labelled(self._label, self._place(path))

    def _place(self, path: str) -> str:
        return sanitise(os.path.relpath(path, self._base))

    def _unread(self, path: str, reason: str, detail: str) -> None:
        self.unread.append(Skipped(self._name(path), reason, detail))

    def read(self, file: File, decode: Callable[[bytes], Decoded]) -> Decoded | None:
        """Decodes a small file; None, and a note, when that fails; None when it is still empty."""
        try:
            data = read_bounded(file.path)
            return decode(data) if data else None
        except WireError as error:
            self.unread.append(Skipped(file.name, error.reason, str(error)))
        except OSError as error:
            self.unread.append(Skipped(file.name, "io", error.strerror or "cannot be read"))
        return None


def read_bounded(path: str, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """All bytes of a small file.

    Raises:
        WireError: `too_large`, before memory is taken for it.
        OSError: it cannot be read.
    """
    limit = limits.max_sidecar_bytes
    with open(path, "rb") as stream:
        data = stream.read(min(limit, os.fstat(stream.fileno()).st_size) + 1)
    if len(data) > limit:
        raise WireError(f"more than {limit} bytes", "too_large")
    return data


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
