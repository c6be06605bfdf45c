"""What is in the input: log directories, replicas and files, before anything is decoded.

Runs on the driver. Nothing in the input is written, nothing but regular files is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.wire import checkpoints
from pipeline.wire.errors import WireError
from pipeline.wire.log_dir import parse_file, parse_name

UNKNOWN_CLUSTER = "unknown"
CHECKPOINTS = {
    "replication-offset-checkpoint": "high_watermarks",
    "log-start-offset-checkpoint": "log_starts",
    "cleaner-offset-checkpoint": "cleaner_offsets",
    "recovery-point-offset-checkpoint": "recovery_points",
}
_KNOWN_FILES = frozenset(
    {*CHECKPOINTS, "meta.properties", ".kafka_cleanshutdown", ".lock", "bootstrap.checkpoint"}
)
_PARTITION_FILES = frozenset({"partition.metadata", "leader-epoch-checkpoint", "quorum-state"})
MAX_DEPTH = 64
Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True)
class LogDir:
    """One `log.dirs` entry, or the folder that stands for it."""

    path: str
    broker_id: int | None = None
    cluster_id: str | None = None
    directory_id: str | None = None
    copy: int = 0
    is_clean_shutdown: bool = False
    has_checkpoints: bool = False
    high_watermarks: Offsets = field(default_factory=dict)
    log_starts: Offsets = field(default_factory=dict)
    cleaner_offsets: Offsets = field(default_factory=dict)
    recovery_points: Offsets = field(default_factory=dict)


@dataclass(frozen=True)
class Replica:
    """One partition directory; `suffix` is '', future, delete or stray."""

    replica_id: int
    copy: int
    cluster_id: str
    broker_id: int | None
    log_dir_path: str
    topic: str
    topic_id: str | None
    partition: int
    suffix: str
    leader_epochs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class SourceFile:
    """One file of a replica; kind is log, index, timeindex, snapshot or txnindex."""

    path: str
    name: str
    kind: str
    base_offset: int
    size: int
    replica_id: int
    segment_id: int
    topic: str


@dataclass(frozen=True)
class Skipped:
    """A file that is not read: why, and whether that is damage (rather than a foreign or unused file)."""

    name: str
    reason: str
    detail: str
    size: int = 0


@dataclass(frozen=True)
class Plan:
    """The whole input."""

    roots: tuple[str, ...]
    cluster_id: str
    log_dirs: tuple[LogDir, ...]
    replicas: tuple[Replica, ...]
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]
    unread: tuple[Skipped, ...]

    def fingerprint(self) -> str:
        """Hash of names and sizes of all files: the same input has the same."""
        items = sorted((one.name, one.size) for one in self.files)
        return hashlib.sha256(json.dumps(items).encode()).hexdigest()


def stable_id(*parts: object) -> int:
    """Signed 64-bit hash of the canonical JSON of the parts."""
    text = json.dumps(parts, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def plan(inputs: tuple[str, ...], *, cluster_id: str | None = None) -> Plan:
    """Finds everything below the inputs.

    Raises:
        UsageError: An input does not exist, or two clusters are mixed.
    """
    walk = _Walk()
    for given in inputs:
        root = given.removeprefix("file://")
        if not os.path.exists(root):
            raise UsageError(f"input {given} does not exist")
        walk.root(os.path.abspath(root))
    return walk.result(tuple(inputs), cluster_id)


@dataclass
class _Partition:
    """A directory that holds segment files."""

    path: str
    root: str
    log_dir: str
    topic: str
    partition: int
    suffix: str
    files: list[os.DirEntry[str]]


class _Walk:
    """Collects directories; symbolic links are followed once each."""

    def __init__(self) -> None:
        self.partitions: list[_Partition] = []
        self.log_dirs: dict[str, LogDir] = {}
        self.skipped: list[Skipped] = []
        self.unread: list[Skipped] = []
        self.seen: set[tuple[int, int]] = set()
        self.base = ""

    def root(self, path: str) -> None:
        """Walks one input: a tree, a partition directory, or a single file."""
        self.base = path if os.path.isdir(path) else os.path.dirname(path)
        if os.path.isdir(path):
            self._directory(path, 0)
            return
        with os.scandir(self.base) as entries:
            files = [entry for entry in entries if entry.path == path]
        self._add(self.base, files)

    def _directory(self, path: str, depth: int) -> None:
        try:
            status = os.stat(path)
            with os.scandir(path) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self.unread.append(Skipped(self._name(path), "io", error.strerror or "cannot be read"))
            return
        if (status.st_dev, status.st_ino) in self.seen or depth > MAX_DEPTH:
            return
        self.seen.add((status.st_dev, status.st_ino))
        files, folders = [], []
        for entry in entries:
            kind = self._kind(entry)
            if kind == "dir":
                folders.append(entry.path)
            elif kind == "file":
                files.append(entry)
        self._add(path, files)
        if any(entry.name in _KNOWN_FILES for entry in files):
            self.log_dirs[path] = self._log_dir(path, {entry.name: entry.path for entry in files})
        for folder in folders:
            self._directory(folder, depth + 1)

    def _kind(self, entry: os.DirEntry[str]) -> str | None:
        try:
            mode = entry.stat().st_mode
        except OSError as error:
            self.unread.append(Skipped(self._name(entry.path), "io", error.strerror or "cannot be read"))
            return None
        if stat.S_ISDIR(mode):
            return "dir"
        if stat.S_ISREG(mode):
            return "file"
        self.skipped.append(Skipped(self._name(entry.path), "foreign", "not a regular file"))
        return None

    def _add(self, path: str, files: list[os.DirEntry[str]]) -> None:
        parsed = parse_name(os.path.basename(path))
        wanted, has_segment = [], False
        for entry in files:
            segment = parse_file(entry.name)
            if segment is not None and segment.kind != "checkpoint":
                has_segment |= segment.kind == "log"
                wanted.append(entry)
            elif entry.name in _PARTITION_FILES:
                wanted.append(entry)
            elif entry.name not in _KNOWN_FILES:
                self.skipped.append(Skipped(self._name(entry.path), "foreign", "not a file of a log", _size(entry)))
        if not any(parse_file(entry.name) for entry in wanted):
            return
        if parsed is not None:
            place = (parsed.topic, parsed.partition, parsed.suffix)
        else:
            place = (os.path.basename(path) or "unknown", 0, "")
        self.partitions.append(
            _Partition(path, self.base, os.path.dirname(path) if parsed else path, *place, wanted)
        )

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self.base)

    def _log_dir(self, path: str, files: dict[str, str]) -> LogDir:
        known: dict[str, Offsets] = {}
        for name, attribute in CHECKPOINTS.items():
            if name in files:
                known[attribute] = self._offsets(files[name])
        properties: dict[str, str] = {}
        if "meta.properties" in files:
            properties = self._read(files["meta.properties"], checkpoints.meta_properties) or {}
        broker = properties.get("node.id", properties.get("broker.id", ""))
        return LogDir(
            path,
            int(broker) if broker.lstrip("-").isdigit() else None,
            properties.get("cluster.id"),
            properties.get("directory.id"),
            is_clean_shutdown=".kafka_cleanshutdown" in files,
            has_checkpoints="replication-offset-checkpoint" in files,
            **known,
        )

    def _offsets(self, path: str) -> Offsets:
        rows = self._read(path, checkpoints.offset_checkpoint) or []
        return {(topic, partition): offset for topic, partition, offset in rows}

    def _read(self, path: str, decode):  # type: ignore[no-untyped-def]  # one of several decoders
        try:
            data = Path(path).read_bytes()
            return decode(data) if data else None
        except WireError as error:
            self.unread.append(Skipped(self._name(path), error.reason, str(error)))
        except OSError as error:
            self.unread.append(Skipped(self._name(path), "io", error.strerror or "cannot be read"))
        return None

    def result(self, roots: tuple[str, ...], cluster_id: str | None) -> Plan:
        """The plan; log directories without any of their own files are made up from their partitions."""
        for one in self.partitions:
            self.log_dirs.setdefault(one.log_dir, LogDir(one.log_dir))
        clusters = sorted({one.cluster_id for one in self.log_dirs.values() if one.cluster_id})
        if len(clusters) > 1:
            raise UsageError(f"the input holds two clusters: {clusters[0]} and {clusters[1]}; audit one at a time")
        cluster = cluster_id or (clusters[0] if clusters else UNKNOWN_CLUSTER)
        log_dirs = _with_copies(self.log_dirs, self.partitions)
        replicas, files = [], []
        for one in self.partitions:
            replica = self._replica(one, log_dirs[one.log_dir], cluster)
            replicas.append(replica)
            files += self._files(one, replica)
        return Plan(
            roots, cluster, tuple(log_dirs[path] for path in sorted(log_dirs)), tuple(replicas), tuple(files),
            tuple(self.skipped), tuple(self.unread),
        )

    def _replica(self, one: _Partition, log_dir: LogDir, cluster: str) -> Replica:
        names = {entry.name: entry.path for entry in one.files}
        topic_id = None
        if "partition.metadata" in names:
            topic_id = self._read(names["partition.metadata"], checkpoints.partition_metadata)
        epochs = None
        if "leader-epoch-checkpoint" in names:
            epochs = self._read(names["leader-epoch-checkpoint"], checkpoints.leader_epoch_checkpoint)
        where = one.path if one.suffix else ""
        broker = log_dir.broker_id if log_dir.broker_id is not None else log_dir.path
        identity = (log_dir.copy, cluster, broker, one.topic, topic_id, one.partition, where)
        return Replica(
            stable_id(*identity), log_dir.copy, cluster, log_dir.broker_id, one.log_dir, one.topic,
            topic_id, one.partition, one.suffix, tuple(epochs or ()),
        )

    def _files(self, one: _Partition, replica: Replica) -> list[SourceFile]:
        files = []
        for entry in one.files:
            segment = parse_file(entry.name)
            if segment is None:
                continue
            name = os.path.relpath(entry.path, one.root)
            if replica.suffix or segment.suffix:
                why = replica.suffix or segment.suffix
                self.skipped.append(Skipped(name, "not_replayed", f"{why} file", _size(entry)))
                continue
            size = _size(entry)
            files.append(
                SourceFile(
                    entry.path, name, segment.kind, segment.base_offset, size, replica.replica_id,
                    stable_id(replica.replica_id, segment.kind, segment.base_offset), one.topic,
                )
            )
        return files


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except OSError:
        return 0


def _with_copies(log_dirs: dict[str, LogDir], partitions: list[_Partition]) -> dict[str, LogDir]:
    """Numbers copies where one broker's current partition occurs in several log directories."""
    holders: dict[tuple[int, str, int], set[str]] = {}
    for one in partitions:
        broker = log_dirs[one.log_dir].broker_id
        if broker is not None and not one.suffix:
            holders.setdefault((broker, one.topic, one.partition), set()).add(one.log_dir)
    conflicting = sorted({path for paths in holders.values() if len(paths) > 1 for path in paths})
    if not conflicting:
        return log_dirs
    depth = len(Path(os.path.commonpath(conflicting)).parts)
    subtrees = sorted({Path(path).parts[: depth + 1] for path in log_dirs if len(Path(path).parts) > depth})
    number = {parts: index for index, parts in enumerate(subtrees)}
    return {
        path: replace(one, copy=number.get(Path(path).parts[: depth + 1], 0))
        for path, one in log_dirs.items()
    }
