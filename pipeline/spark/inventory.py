"""What an input holds, as plain values that travel from the driver to the tasks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from pipeline.spark.files import digest_of, opened

UNKNOWN_CLUSTER = "unknown"
LOG, TEXT, EXPORT = "log", "text", "export"
"""What a replica was read from: the broker's own bytes, what a tool printed, or an export."""
LAST_BYTES = 128
"""What of each file tells two versions of equal size apart."""
Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True)
class LogDir:
    """One `log.dirs` entry of a broker, or the folder that stands for it.

    Attributes:
        path: Absolute path.
        broker_id: `node.id` or `broker.id`; None without a readable `meta.properties`.
        cluster_id: `cluster.id`.
        directory_id: `directory.id` (KIP-858).
        copy: Number of the copy it belongs to; 0 unless one broker was copied several times.
        is_clean_shutdown: `.kafka_cleanshutdown` is there.
        has_checkpoints: `replication-offset-checkpoint` is there and could be read.
        high_watermarks: `replication-offset-checkpoint`, by topic and partition.
        log_starts: `log-start-offset-checkpoint`.
        cleaner_offsets: `cleaner-offset-checkpoint`.
        recovery_points: `recovery-point-offset-checkpoint`.
        name: Path below the input root.
    """

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
    name: str = "."


@dataclass(frozen=True)
class Replica:
    """One partition directory.

    Attributes:
        replica_id: Hash of copy, cluster, broker, topic, topic id and partition.
        copy: Copy of its log directory.
        cluster_id: Cluster.
        broker_id: Broker, where known.
        log_dir_path: `LogDir.path`.
        topic: Topic.
        topic_id: Topic id of `partition.metadata`, where there is one.
        partition: Partition.
        suffix: '' for the current one; future, delete or stray are never replayed.
        leader_epochs: (leader epoch, start offset) of `leader-epoch-checkpoint`.
        name: Path below the input root.
        source: log, text or export.
    """

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
    name: str = ""
    source: str = LOG


@dataclass(frozen=True)
class SourceFile:
    """One file of a current replica.

    Attributes:
        path: Where to read.
        name: Path below the input root, fit to be shown.
        kind: log, index, timeindex, snapshot, txnindex or checkpoint.
        base_offset: Offset in the name.
        size: Bytes, when it was listed.
        replica_id: Replica.
        segment_id: Hash of replica, kind and base offset.
        topic: Topic; decides how records are read.
    """

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
    """A file or folder that is not read: why, and how large it is.

    Attributes:
        name: Path below the input root, fit to be shown.
        reason: foreign, not_replayed, io, too_deep, or why its bytes make no sense.
        detail: The same for a person.
        size: Bytes.
    """

    name: str
    reason: str
    detail: str
    size: int = 0


@dataclass(frozen=True)
class Plan:
    """The whole input.

    Attributes:
        roots: As given.
        cluster_id: Its cluster, `unknown` where nothing tells.
        log_dirs: By path.
        replicas: All partition directories, those that are not replayed included.
        files: Files of current replicas.
        skipped: Files that are no part of a current log.
        unread: What should have been read and could not be: the run says what it does not know.
        input_bytes: Bytes of `files` below each root.
    """

    roots: tuple[str, ...]
    cluster_id: str
    log_dirs: tuple[LogDir, ...]
    replicas: tuple[Replica, ...]
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]
    unread: tuple[Skipped, ...]
    input_bytes: tuple[int, ...] = ()

    def fingerprint(self) -> str:
        """Hash of names, sizes and last bytes of all files: the same input has the same."""
        items = sorted((one.name, one.size, _last_bytes(one.path)) for one in self.files)
        return hashlib.sha256(json.dumps(items).encode()).hexdigest()


def _last_bytes(path: str) -> str:
    """The end of a file in hex, or its checksum; empty when it cannot be read (the ingest says so)."""
    digest = digest_of(path)
    if digest is not None:
        return digest
    try:
        with opened(path) as file:
            return file.read_at(max(file.size - LAST_BYTES, 0), LAST_BYTES).hex()
    except OSError:
        return ""


def stable_id(*parts: object) -> int:
    """Signed 64-bit hash of the canonical JSON of the parts."""
    text = json.dumps(parts, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)
