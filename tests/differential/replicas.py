"""Partition directories of the recordings, decoded for replay, with their sidecars."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.replay import history
from pipeline.replay.offsets import CommitRecord, Committed, MarkerRecord, OffsetsReplay
from pipeline.wire import checkpoints, group_offsets, log_dir, record, segment
from pipeline.wire.batch import Batch

OFFSETS_TOPIC = "__consumer_offsets"


class Bounds(NamedTuple):
    """Checkpoints of one log directory, by (topic, partition)."""

    log_start: dict[tuple[str, int], int]
    cleaner: dict[tuple[str, int], int]
    high_watermark: dict[tuple[str, int], int]


class Replica:
    """One partition directory that is not a `-future`, `-delete` or `-stray` one."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        name = log_dir.parse_name(folder.name)
        assert name is not None
        self.folder = folder
        self.place = (name.topic, name.partition)
        self.log_start = bounds.log_start.get(self.place, 0)
        self.high_watermark = bounds.high_watermark.get(self.place)
        self.cleaner_offset = bounds.cleaner.get(self.place, 0)

    @property
    def is_offsets(self) -> bool:
        return self.place[0] == OFFSETS_TOPIC

    @cached_property
    def read(self) -> list[tuple[Batch, bytes]]:
        """Batches of magic 2 in offset order with their bytes, each offset once."""
        found: list[tuple[Batch, bytes]] = []
        last = -1
        for path in sorted(self.folder.glob("*.log")):
            content = path.read_bytes()
            for item in segment.iterate(content):
                if isinstance(item, Batch) and item.base_offset > last:
                    last = item.last_offset
                    if item.magic == 2:
                        found.append((item, content[item.position :][: item.size_bytes]))
        return found

    @property
    def batches(self) -> list[Batch]:
        return [batch for batch, _ in self.read]

    @property
    def log_end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.log_start

    @cached_property
    def history_start(self) -> int:
        """Behind log start, cleaner offset, the last hole and the last shortened batch."""
        start, expected = max(self.log_start, self.cleaner_offset), 0
        for batch in self.batches:
            if batch.base_offset != expected:
                start = max(start, batch.base_offset)
            expected = batch.last_offset + 1
            is_short = batch.records_count < batch.last_offset - batch.base_offset + 1
            if is_short or batch.delete_horizon_ms is not None:
                start = max(start, expected)
        return start

    def replayed(self, until: int | None = None) -> history.History:
        """History of the batches below an offset."""
        kept = [one for one in self.batches if until is None or one.base_offset < until]
        return history.replay(
            kept, is_offsets=self.is_offsets, history_start_offset=self.history_start
        )

    def sidecars(self, kind: str) -> Iterator[tuple[int, bytes]]:
        """Number in the name and content of each file of a kind."""
        for path in sorted(self.folder.glob(f"*.{kind}")):
            yield int(path.stem), path.read_bytes()

    def committed(self) -> tuple[OffsetsReplay, list[Committed]]:
        """Offset commits of this partition of `__consumer_offsets`, replayed."""
        state, decided = OffsetsReplay(), []
        for batch, content in self.read:
            if batch.is_control:
                if batch.producer_id >= 0:
                    decided += state.marker(_marker(batch))
                continue
            for item in record.records(content):
                entry = group_offsets.decode(item.key, item.value)
                if isinstance(entry, group_offsets.OffsetCommit):
                    decided += state.commit(_commit(batch, item.offset, entry))
        return state, decided + state.end()


def _marker(batch: Batch) -> MarkerRecord:
    return MarkerRecord(
        batch.base_offset, batch.producer_id, batch.control_type, batch.max_timestamp_ms,
        batch.partition_leader_epoch,
    )  # fmt: skip


def _commit(batch: Batch, offset: int, entry: group_offsets.OffsetCommit) -> CommitRecord:
    is_tombstone = entry.value_version is None
    return CommitRecord(
        offset, entry.group_id, entry.topic, entry.partition,
        None if is_tombstone else entry.offset, None if is_tombstone else entry.commit_timestamp_ms,
        batch.max_timestamp_ms, batch.partition_leader_epoch, batch.is_transactional,
        batch.producer_id, batch.producer_epoch,
    )  # fmt: skip


def replicas(recording: Path) -> list[Replica]:
    """All replicas of a recording whose partition the broker still served."""
    found = []
    for log_root in sorted(path for path in (recording / "logs").iterdir() if path.is_dir()):
        bounds = Bounds(
            _checkpoint(log_root / "log-start-offset-checkpoint"),
            _checkpoint(log_root / "cleaner-offset-checkpoint"),
            _checkpoint(log_root / "replication-offset-checkpoint"),
        )
        for folder in sorted(log_root.iterdir()):
            name = log_dir.parse_name(folder.name) if folder.is_dir() else None
            if name is not None and not name.suffix:
                found.append(Replica(folder, bounds))
    return found


def _checkpoint(path: Path) -> dict[tuple[str, int], int]:
    if not path.is_file():
        return {}
    rows = checkpoints.offset_checkpoint(path.read_bytes())
    return {(topic, partition): offset for topic, partition, offset in rows}


def truth(recording: Path) -> dict[str, Any]:
    """What was recorded while the cluster lived; empty where nothing was."""
    path = recording / "truth.json"
    facts: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return facts


def best_replicas(recording: Path) -> dict[tuple[str, int], Replica]:
    """The replica of each partition that was led last: highest leader epoch, then longest."""
    found: dict[tuple[str, int], Replica] = {}

    def rank(replica: Replica) -> tuple[int, int]:
        epochs = [batch.partition_leader_epoch for batch in replica.batches]
        return max(epochs, default=-1), replica.log_end_offset

    for replica in replicas(recording):
        known = found.get(replica.place)
        if known is None or rank(replica) > rank(known):
            found[replica.place] = replica
    return found
