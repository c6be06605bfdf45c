"""A recording's log directory, copied and open to edits of single batches.

After an edit offsets are counted anew, CRCs put right, the partition written as one segment and
its sidecars and checkpoints made to agree, so that nothing but the planted fault is wrong.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass, replace
from pathlib import Path

from tests import builders, log_layout
from tests.property.model_output import producer_state
from tests.property.model_types import Entry

FIELDS = {
    "base_offset": (0, ">q"), "leader_epoch": (12, ">i"), "attributes": (21, ">h"),
    "delta": (23, ">i"), "base_ms": (27, ">q"), "time_ms": (35, ">q"), "producer_id": (43, ">q"),
    "epoch": (51, ">h"), "sequence": (53, ">i"), "records": (57, ">i"),
}  # fmt: skip
SIDECARS = ("index", "timeindex", "snapshot", "txnindex")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value >> 1 ^ -(value & 1), at


@dataclass(frozen=True)
class Row:
    """One batch; `gap` is how many offsets are missing before it."""

    data: bytes
    gap: int = 0

    def __getattr__(self, name: str) -> int:
        if name not in FIELDS:
            raise AttributeError(name)
        at, form = FIELDS[name]
        return int(struct.unpack_from(form, self.data, at)[0])

    @property
    def is_marker(self) -> bool:
        """Whether it is a control batch with its record still there."""
        return bool(self.attributes & 0x20) and self.records > 0

    @property
    def is_data(self) -> bool:
        """Whether it is a transactional batch of an application."""
        return self.attributes & 0x30 == 0x10

    @property
    def outcome(self) -> int:
        """0 ABORT, 1 COMMIT."""
        return struct.unpack(">h", self.record()[0][2:4])[0] if self.is_marker else -1

    @property
    def coordinator_epoch(self) -> int:
        """The marker's coordinator epoch."""
        return struct.unpack(">i", self.record()[1][2:6])[0] if self.is_marker else -1

    def record(self) -> tuple[bytes, bytes]:
        """Return key and value of the only record of an uncompressed batch (b"" when null)."""
        at = _varint(self.data, 61)[1] + 1
        at = _varint(self.data, _varint(self.data, at)[1])[1]
        size, at = _varint(self.data, at)
        key = self.data[at : at + max(size, 0)]
        size, at = _varint(self.data, at + max(size, 0))
        return key, self.data[at : at + max(size, 0)]

    def set(self, **fields: int) -> Row:
        """Return the batch with header fields changed, CRC right."""
        out = bytearray(self.data)
        for name, value in fields.items():
            struct.pack_into(FIELDS[name][1], out, FIELDS[name][0], value)
        return replace(self, data=builders.with_crc(out))

    def at(self, time_ms: int) -> Row:
        """Return the batch moved in time."""
        return self.set(base_ms=self.base_ms + time_ms - self.time_ms, time_ms=time_ms)

    def with_record(self, key: bytes, value: bytes | None) -> Row:
        """Return the batch with another only record."""
        data = builders.batch(
            self.base_offset, [builders.Rec(key, value)], producer_id=self.producer_id,
            producer_epoch=self.epoch, base_sequence=self.sequence,
            transactional=bool(self.attributes & 0x10), control=bool(self.attributes & 0x20),
            timestamp_ms=self.time_ms, partition_leader_epoch=self.leader_epoch,
        )  # fmt: skip
        return replace(self, data=data)

    def marked(
        self, outcome: int, *, epoch: int | None = None, coordinator_epoch: int | None = None
    ) -> Row:
        """Return a marker of this batch's producer at its place and time."""
        known = self.coordinator_epoch if coordinator_epoch is None else coordinator_epoch
        data = builders.marker(
            self.base_offset, outcome, producer_id=self.producer_id, timestamp_ms=self.time_ms,
            producer_epoch=self.epoch if epoch is None else epoch,
            coordinator_epoch=max(known, 0), partition_leader_epoch=self.leader_epoch,
        )  # fmt: skip
        return Row(data)

    def entry(self) -> Entry:
        """Return what the model's replay needs of the batch."""
        kind = "marker" if self.is_marker else "data" if self.producer_id >= 0 else "txn"
        return Entry(
            0, self.time_ms, self.leader_epoch, kind, self.producer_id, self.epoch, self.sequence,
            self.delta + 1, self.outcome, self.coordinator_epoch,
            transactional=bool(self.attributes & 0x10),
        )  # fmt: skip


def split(data: bytes, end: int | None = None) -> list[Row]:
    """Return the whole batches of a segment; `end` is the offset before its first one."""
    rows, at = [], 0
    while at + 61 <= len(data):
        size = struct.unpack_from(">i", data, at + 8)[0] + 12
        if size < 61 or at + size > len(data):
            break
        row = Row(data[at : at + size])
        rows.append(replace(row, gap=0 if end is None else row.base_offset - end))
        end = row.base_offset + row.delta + 1
        at += size
    return rows


class CopiedLogs:
    """A copy of a recording's `logs` folder.

    Args:
        source: the folder with `broker-N` directories.
        target: where the copy is made; must not exist.
    """

    def __init__(self, source: Path, target: Path) -> None:
        self.path = Path(shutil.copytree(source, target))
        self.brokers = sorted(self.path.glob("broker-*"))

    def folder(self, topic: str, partition: int, broker: int = 0) -> Path:
        """Return a partition's directory in the n-th broker's."""
        return self.brokers[broker] / f"{topic}-{partition}"

    def names(self, broker: int = 0) -> list[tuple[str, int]]:
        """Return topics and partitions with any batch, `__cluster_metadata` left out."""
        out = []
        for folder in sorted(self.brokers[broker].iterdir()):
            topic, _, number = folder.name.rpartition("-")
            if number.isdigit() and topic != "__cluster_metadata" and any(
                log.stat().st_size for log in folder.glob("*.log")
            ):  # fmt: skip
                out.append((topic, int(number)))
        return out

    def rows(self, topic: str, partition: int, broker: int = 0) -> list[Row]:
        """Return every batch of a partition."""
        rows: list[Row] = []
        for log in sorted(self.folder(topic, partition, broker).glob("*.log")):
            end = rows[-1].base_offset + rows[-1].delta + 1 if rows else None
            rows += split(log.read_bytes(), end)
        return rows

    def save(self, topic: str, partition: int, rows: list[Row], broker: int = 0) -> list[Row]:
        """Write a partition anew and return its rows with their new offsets."""
        folder = self.folder(topic, partition, broker)
        old = self.rows(topic, partition, broker)
        old_end = old[-1].base_offset + old[-1].delta + 1
        first = end = old[0].base_offset
        out = []
        for row in rows:
            moved = row.set(base_offset=end + row.gap)
            end = moved.base_offset + moved.delta + 1
            out.append(moved)
        had_snapshot = any(folder.glob("*.snapshot"))
        for suffix in ("log", *SIDECARS):
            for file in folder.glob(f"*.{suffix}"):
                file.unlink()
        name = log_layout.segment_name
        (folder / name(first)).write_bytes(b"".join(row.data for row in out))
        producers, aborted = producer_state([(row.base_offset, row.entry()) for row in out])
        if had_snapshot:
            (folder / name(end, "snapshot")).write_bytes(log_layout.snapshot(producers))
        if aborted:
            (folder / name(first, "txnindex")).write_bytes(log_layout.txn_index(aborted))
        starts: list[tuple[int, int]] = []
        for row in out:
            if not starts or row.leader_epoch > starts[-1][0]:
                starts.append((row.leader_epoch, row.base_offset))
        (folder / "leader-epoch-checkpoint").write_bytes(log_layout.leader_epoch_checkpoint(starts))
        for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            self.set_checkpoint(checkpoint, topic, partition, old_end, end, broker)
        return out

    def set_checkpoint(
        self,
        checkpoint: str,
        topic: str,
        partition: int,
        old: int | None,
        new: int,
        broker: int = 0,
    ) -> None:
        """Change a partition's line in a checkpoint file where it says `old` (None: add it)."""
        file = self.brokers[broker] / checkpoint
        lines = file.read_text().splitlines()[2:]
        if old is None:
            lines = [line for line in lines if not line.startswith(f"{topic} {partition} ")]
            lines.append(f"{topic} {partition} {new}")
        else:
            wanted = f"{topic} {partition} {old}"
            lines = [f"{topic} {partition} {new}" if line == wanted else line for line in lines]
        file.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
