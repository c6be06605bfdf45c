"""Materialisation of committed offsets, replayed from one partition of `__consumer_offsets`.

The log's truth: a plain commit counts at once; a transactional one waits for its producer's marker, and then counts only
when no more recent record has been materialised for the same key. The broker's memory may differ (KAFKA-17507); a
reload makes it equal to this.

Source: `OffsetMetadataManager.replay`, `GroupMetadataManager.doLoadGroupsAndOffsets`.
"""

from __future__ import annotations

from typing import NamedTuple

Key = tuple[str, str, int]


class CommitRecord(NamedTuple):
    """One offset commit record; `committed_offset` is None in a tombstone."""

    record_offset: int
    group_id: str
    topic: str
    partition: int
    committed_offset: int | None
    commit_timestamp_ms: int | None
    append_ms: int | None
    leader_epoch: int | None
    is_transactional: bool
    producer_id: int
    producer_epoch: int


class MarkerRecord(NamedTuple):
    """One transaction marker of the partition; type 0 ABORT, 1 COMMIT, None unreadable."""

    offset: int
    producer_id: int
    type: int | None
    ms: int | None
    leader_epoch: int | None


class Committed(NamedTuple):
    """What became of a commit record; `schemas.silver.COMMITTED_OFFSET` says what each field means."""

    record: CommitRecord
    outcome: str
    marker_offset: int | None
    previous: CommitRecord | None
    race_ms: int | None
    is_before_marker: bool


class OffsetsReplay:
    """Replay of one partition in offset order.

    State: what is materialised by key, what is pending by producer id (the epoch is ignored, as in Kafka), and each
    producer's last marker.
    """

    def __init__(self) -> None:
        self.materialised: dict[Key, CommitRecord] = {}
        self.pending: dict[int, dict[Key, tuple[CommitRecord, int | None, bool]]] = {}
        self.markers: dict[int, MarkerRecord] = {}
        self.first_behind: dict[int, int] = {}

    def commit(self, record: CommitRecord) -> list[Committed]:
        """Takes a commit or tombstone; returns what is decided by it."""
        key = (record.group_id, record.topic, record.partition)
        if record.is_transactional:
            race = self._race(record)
            held = self.pending.setdefault(record.producer_id, {})
            before = held.get(key)
            held[key] = (record, *race)
            return [Committed(before[0], "superseded", None, None, *before[1:])] if before else []
        previous = self.materialised.get(key)
        if record.committed_offset is None:
            self.materialised.pop(key, None)
            return [Committed(record, "deleted", None, previous, None, False)]
        self.materialised[key] = record
        return [Committed(record, "materialised", None, previous, None, False)]

    def _race(self, record: CommitRecord) -> tuple[int | None, bool]:
        """Time since the producer's last marker, for the first batch behind it under the same leader epoch."""
        marker = self.markers.get(record.producer_id)
        if marker is None or marker.ms is None or marker.leader_epoch != record.leader_epoch:
            return None, False
        if record.append_ms is None:
            return None, False
        first_ms = self.first_behind.setdefault(record.producer_id, record.append_ms)
        if record.append_ms != first_ms:
            return None, False
        is_before = record.commit_timestamp_ms is not None and record.commit_timestamp_ms < marker.ms
        return record.append_ms - marker.ms, is_before

    def marker(self, marker: MarkerRecord) -> list[Committed]:
        """Takes a marker; returns what it decides. One that cannot be read decides nothing."""
        self.markers[marker.producer_id] = marker
        self.first_behind.pop(marker.producer_id, None)
        held = self.pending.pop(marker.producer_id, None)
        if not held:
            return []
        decided = []
        for key, (record, race_ms, is_before) in held.items():
            if marker.type != 1:
                outcome = "aborted" if marker.type == 0 else "undecided"
                decided.append(Committed(record, outcome, marker.offset, None, race_ms, is_before))
                continue
            previous = self.materialised.get(key)
            if previous is not None and previous.record_offset > record.record_offset:
                decided.append(Committed(record, "superseded", marker.offset, previous, race_ms, is_before))
                continue
            if record.committed_offset is None:
                self.materialised.pop(key, None)
                decided.append(Committed(record, "deleted", marker.offset, previous, race_ms, is_before))
                continue
            self.materialised[key] = record
            decided.append(Committed(record, "materialised", marker.offset, previous, race_ms, is_before))
        return decided

    def end(self) -> list[Committed]:
        """What is still pending."""
        return [
            Committed(record, "pending", None, self.materialised.get(key), race_ms, is_before)
            for held in self.pending.values()
            for key, (record, race_ms, is_before) in held.items()
        ]
