"""Materialisation of committed offsets, replayed from one partition of `__consumer_offsets`.

The log's truth: a plain commit counts at once; a transactional one waits for its producer's marker, and then counts
only when no more recent record has been materialised for the same key. A tombstone deletes what is materialised and
what is pending of its key, as both coordinators do while they run (the old one, loading again, keeps the latter).
The broker's memory may differ otherwise (KAFKA-17507); a reload makes it equal to this.

Source: `OffsetMetadataManager.replay` and `replayEndTransactionMarker`, `GroupMetadataManager.doLoadGroupsAndOffsets`,
`GroupMetadata.removeOffsets`.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.wire.batch import CONTROL_ABORT as ABORT
from pipeline.wire.batch import CONTROL_COMMIT as COMMIT

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
    """What became of a commit record.

    Attributes:
        record: the record.
        outcome: `materialised`; `deleted` (a tombstone, or pending when a tombstone of its key came); `superseded` (a
            later commit of the same transaction, or a more recent materialised record, took its place); `aborted`;
            `undecided` (the marker is unreadable); `pending` (no marker).
        marker_offset: offset of the marker that decided it.
        previous: what was materialised for its key when it was decided, or when the log ended.
        race_ms: for the first transactional batch of a producer behind its marker, if one leader stamped both:
            time of the batch minus time of the last marker before it. May be negative when that clock went back.
        is_before_marker: of the same batches: it was requested before the *first* marker behind the producer's
            previous transactional batch (a coordinator that takes over sends markers again). Not where the clock
            went back: the batch itself bears an earlier time than the marker before it.
    """

    record: CommitRecord
    outcome: str
    marker_offset: int | None
    previous: CommitRecord | None
    race_ms: int | None
    is_before_marker: bool


class _Gap(NamedTuple):
    """The markers since a producer's last transactional commit, and the first batch behind them."""

    first: MarkerRecord
    last: MarkerRecord
    batch_ms: int | None


_Pending = tuple[CommitRecord, int | None, bool]
_NO_RACE = (None, False)


class OffsetsReplay:
    """Replay of one partition in offset order.

    State: what is materialised by key, what is pending by producer id (the epoch is ignored, as in Kafka), and each
    producer's markers since its last transactional commit.
    """

    def __init__(self) -> None:
        self.materialised: dict[Key, CommitRecord] = {}
        self.pending: dict[int, dict[Key, _Pending]] = {}
        self._gaps: dict[int, _Gap] = {}

    def commit(self, record: CommitRecord) -> list[Committed]:
        """Takes a commit or tombstone; returns what is decided by it."""
        key = (record.group_id, record.topic, record.partition)
        if record.committed_offset is None:
            return self._delete(key, record)
        if record.is_transactional:
            held = self.pending.setdefault(record.producer_id, {})
            before = held.get(key)
            held[key] = (record, *self._race(record))
            if before is None:
                return []
            return [Committed(before[0], "superseded", None, None, before[1], before[2])]
        previous = self.materialised.get(key)
        self.materialised[key] = record
        return [Committed(record, "materialised", None, previous, None, False)]

    def _delete(self, key: Key, tombstone: CommitRecord) -> list[Committed]:
        decided = [
            Committed(tombstone, "deleted", None, self.materialised.pop(key, None), None, False)
        ]
        for held in self.pending.values():
            dropped = held.pop(key, None)
            if dropped is not None:
                decided.append(Committed(dropped[0], "deleted", None, None, dropped[1], dropped[2]))
        return decided

    def _race(self, record: CommitRecord) -> tuple[int | None, bool]:
        """`race_ms` and `is_before_marker` of a transactional commit."""
        gap = self._gaps.get(record.producer_id)
        if gap is None:
            return _NO_RACE
        append_ms = record.append_ms
        if gap.batch_ms is None and append_ms is not None:
            gap = self._gaps[record.producer_id] = gap._replace(batch_ms=append_ms)
        first, last = gap.first, gap.last
        if append_ms is None or append_ms != gap.batch_ms or last.ms is None:
            return _NO_RACE
        if last.leader_epoch != record.leader_epoch:
            return _NO_RACE
        is_comparable = first.leader_epoch == record.leader_epoch and first.ms is not None
        commit_ms = record.commit_timestamp_ms
        is_before = (
            is_comparable
            and commit_ms is not None
            and first.ms is not None
            and commit_ms < first.ms <= append_ms
        )
        return append_ms - last.ms, is_before

    def marker(self, marker: MarkerRecord) -> list[Committed]:
        """Takes a marker; returns what it decides. One that cannot be read leaves the outcome open."""
        gap = self._gaps.get(marker.producer_id)
        is_new = gap is None or gap.batch_ms is not None
        self._gaps[marker.producer_id] = _Gap(
            marker if is_new or gap is None else gap.first, marker, None
        )
        held = self.pending.pop(marker.producer_id, None)
        if not held:
            return []
        if marker.type != COMMIT:
            outcome = "aborted" if marker.type == ABORT else "undecided"
            return [
                Committed(kept[0], outcome, marker.offset, None, kept[1], kept[2])
                for kept in held.values()
            ]
        decided = []
        for key, (record, race_ms, is_before) in held.items():
            previous = self.materialised.get(key)
            outcome = "materialised"
            if previous is not None and previous.record_offset > record.record_offset:
                outcome = "superseded"
            else:
                self.materialised[key] = record
            decided.append(Committed(record, outcome, marker.offset, previous, race_ms, is_before))
        return decided

    def end(self) -> list[Committed]:
        """What is still pending."""
        return [
            Committed(record, "pending", None, self.materialised.get(key), race_ms, is_before)
            for held in self.pending.values()
            for key, (record, race_ms, is_before) in held.items()
        ]
