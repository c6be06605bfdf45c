"""Writes log directories as a broker lays them out: segments, sidecars, checkpoint files.

Used by the model of a cluster, by planted faults and by benchmarks. Sidecar layouts:
`ProducerSnapshot.json`, `AbortedTxn`, `OffsetIndex`, `TimeIndex`, `OffsetCheckpointFile`,
`LeaderEpochCheckpointFile`, `PartitionMetadataFile` of Apache Kafka.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import google_crc32c

SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


def snapshot(entries: Iterable[tuple[int, ...]], version: int = 1) -> bytes:
    """Return a `.snapshot`.

    Per producer: (id, epoch, last sequence, last offset, offset delta, timestamp ms,
    coordinator epoch, first offset of its open transaction or -1).
    """
    rows = [SNAPSHOT_ENTRY.pack(*entry) for entry in entries]
    body = struct.pack(">i", len(rows)) + b"".join(rows)
    return struct.pack(">hI", version, google_crc32c.value(body)) + body


def txn_index(entries: Iterable[tuple[int, ...]], version: int = 0) -> bytes:
    """Return a `.txnindex`: (producer id, first offset, last offset, last stable offset) each."""
    return b"".join(struct.pack(">hqqqq", version, *entry) for entry in entries)


def offset_index(
    entries: Iterable[tuple[int, int]], base_offset: int = 0, zero_bytes: int = 0
) -> bytes:
    """Return an `.index` of (offset, position in bytes), with a preallocated zero tail."""
    rows = [struct.pack(">ii", offset - base_offset, position) for offset, position in entries]
    return b"".join(rows) + bytes(zero_bytes)


def time_index(
    entries: Iterable[tuple[int, int]], base_offset: int = 0, zero_bytes: int = 0
) -> bytes:
    """Return a `.timeindex` of (timestamp ms, offset), with a preallocated zero tail."""
    rows = [struct.pack(">qi", time, offset - base_offset) for time, offset in entries]
    return b"".join(rows) + bytes(zero_bytes)


def offset_checkpoint(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """Return an offset checkpoint file: `<topic> <partition> <offset>` lines."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def leader_epoch_checkpoint(entries: Iterable[tuple[int, ...]]) -> bytes:
    """Return `leader-epoch-checkpoint`: `<epoch> <start offset>` lines."""
    lines = [f"{epoch} {start}" for epoch, start in entries]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def topic_id(topic: str, incarnation: int = 0) -> str:
    """Return a topic id made from the name, so that the same input gives the same files."""
    digest = hashlib.sha256(f"{topic}/{incarnation}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def partition_metadata(topic: str, incarnation: int = 0) -> bytes:
    """Return `partition.metadata` for the topic."""
    return f"version: 0\ntopic_id: {topic_id(topic, incarnation)}".encode()


def meta_properties(node_id: int, cluster: str = "model", disk: str = "") -> bytes:
    """Return `meta.properties` of a KRaft broker's log directory."""
    lines = ["#", "#Fri Nov 27 23:50:51 UTC 2026", f"node.id={node_id}"]
    lines += [f"directory.id={topic_id(f'{cluster}-dir-{node_id}{disk}')}", "version=1"]
    return "\n".join([*lines, f"cluster.id={topic_id(cluster)}", ""]).encode()


def segment_name(base_offset: int, suffix: str = "log") -> str:
    """Return `<base offset in 20 digits>.<suffix>`."""
    return f"{base_offset:020d}.{suffix}"


class LogDir:
    """One broker's log directory, written file by file.

    Args:
        root: where `broker-<node_id>` is made.
        node_id: the broker.
        cluster: text the cluster id is made from.
    """

    def __init__(self, root: Path, node_id: int = 1, cluster: str = "model") -> None:
        self.path = root / f"broker-{node_id}"
        self.path.mkdir(parents=True, exist_ok=True)
        self.log_ends: dict[tuple[str, int], int] = {}
        self.log_starts: dict[tuple[str, int], int] = {}
        self.cleaner_offsets: dict[tuple[str, int], int] = {}
        (self.path / "meta.properties").write_bytes(meta_properties(node_id, cluster))

    def partition(self, topic: str, partition: int) -> Path:
        """Return the partition's directory, made when missing with `partition.metadata`."""
        path = self.path / f"{topic}-{partition}"
        if not path.exists():
            path.mkdir()
            (path / "partition.metadata").write_bytes(partition_metadata(topic))
        return path

    def segment(
        self,
        topic: str,
        partition: int,
        batches: Iterable[bytes],
        *,
        base_offset: int | None = None,
    ) -> Path:
        """Write one segment from whole batches; its name is the first batch's base offset.

        The log end and `leader-epoch-checkpoint` are kept for `finish`.
        """
        rows = list(batches)
        first = struct.unpack_from(">q", rows[0])[0] if rows else 0
        path = self.partition(topic, partition)
        log = path / segment_name(first if base_offset is None else base_offset)
        log.write_bytes(b"".join(rows))
        end = self.log_ends.get((topic, partition), 0)
        for row in rows:
            end = max(
                end, struct.unpack_from(">q", row)[0] + struct.unpack_from(">i", row, 23)[0] + 1
            )
        self.log_ends[topic, partition] = end
        self._add_leader_epochs(path, rows)
        return log

    def _add_leader_epochs(self, path: Path, rows: list[bytes]) -> None:
        file = path / "leader-epoch-checkpoint"
        entries = []
        if file.exists():
            entries = [tuple(map(int, line.split())) for line in file.read_text().split("\n")[2:-1]]
        for row in rows:
            epoch = struct.unpack_from(">i", row, 12)[0]
            if epoch >= 0 and (not entries or epoch > entries[-1][0]):
                entries.append((epoch, struct.unpack_from(">q", row)[0]))
        file.write_bytes(leader_epoch_checkpoint(entries))

    def sidecar(
        self, topic: str, partition: int, base_offset: int, suffix: str, data: bytes
    ) -> Path:
        """Write one sidecar of a segment, e.g. suffix `snapshot`."""
        file = self.partition(topic, partition) / segment_name(base_offset, suffix)
        file.write_bytes(data)
        return file

    def finish(
        self, *, clean: bool = True, high_watermarks: Mapping[tuple[str, int], int] | None = None
    ) -> Path:
        """Write the checkpoint files and, for a clean stop, `.kafka_cleanshutdown`.

        Args:
            clean: whether the broker was stopped in an orderly way before the copy.
            high_watermarks: None takes the log ends.
        """
        files = {
            "recovery-point-offset-checkpoint": self.log_ends,
            "replication-offset-checkpoint": self.log_ends | dict(high_watermarks or {}),
            "log-start-offset-checkpoint": self.log_starts,
            "cleaner-offset-checkpoint": self.cleaner_offsets,
        }
        for name, offsets in files.items():
            (self.path / name).write_bytes(offset_checkpoint(offsets))
        if clean:
            text = json.dumps({"version": 0, "brokerEpoch": 6}, separators=(",", ":"))
            (self.path / ".kafka_cleanshutdown").write_text(text)
        return self.path
