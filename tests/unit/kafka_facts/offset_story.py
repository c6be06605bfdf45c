"""A story of `__consumer_offsets`, batch by batch as bytes: what a group's offsets are behind each.

Steps that write: `writes` (records, plain or of a producer's transaction) and `marks`; all others are facts. An offset
is named `topic-partition`, one of another group than `GROUP` `group:topic-partition`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from pipeline.replay.offsets import CommitRecord, Committed, MarkerRecord, OffsetsReplay
from pipeline.wire import group_offsets
from pipeline.wire.batch import Batch
from pipeline.wire.group_offsets import GroupRecord, OffsetCommit, UnknownGroupRecord
from pipeline.wire.record import records
from pipeline.wire.segment import iterate
from tests import builders
from tests.builders import Rec

GROUP = "foo"
NO_GROUP: dict[str, tuple[int | None, str | None, int | None]] = {}


class Offsets:
    """One partition of `__consumer_offsets`, read so far."""

    def __init__(self) -> None:
        self.end = 0
        self.state = OffsetsReplay()
        self.decided: list[Committed] = []
        self.commits: dict[str, OffsetCommit] = {}
        self.groups: dict[str, GroupRecord] = {}
        self.unknown = 0

    def takes(self, raw: bytes) -> None:
        (batch,) = iterate(raw)
        assert isinstance(batch, Batch)
        self.end = batch.last_offset + 1
        if batch.is_control:
            self.decided += self.state.marker(MarkerRecord(
                batch.base_offset, batch.producer_id, batch.control_type, batch.max_timestamp_ms,
                batch.partition_leader_epoch,
            ))  # fmt: skip
            return
        for one in records(raw):
            entry = group_offsets.decode(one.key, one.value)
            if isinstance(entry, OffsetCommit):
                self._commit(batch, one.offset, entry)
            elif isinstance(entry, UnknownGroupRecord):
                self.unknown += 1
            elif entry.is_tombstone:
                self.groups.pop(entry.group_id, None)
            else:
                self.groups[entry.group_id] = entry

    def _commit(self, batch: Batch, offset: int, entry: OffsetCommit) -> None:
        is_gone = entry.value_version is None
        self.commits[_name((entry.group_id, entry.topic, entry.partition))] = entry
        self.decided += self.state.commit(CommitRecord(
            offset, entry.group_id, entry.topic, entry.partition, None if is_gone else entry.offset,
            None if is_gone else entry.commit_timestamp_ms, batch.max_timestamp_ms,
            batch.partition_leader_epoch, batch.is_transactional, batch.producer_id, batch.producer_epoch,
        ))  # fmt: skip


Step = Callable[[Offsets], None]


class Story(NamedTuple):
    """One case of a test class of Kafka's."""

    of: str
    name: str
    steps: list[Step]


def tell(story: Story) -> None:
    log = Offsets()
    for step in story.steps:
        step(log)


def _name(key: tuple[str, str, int]) -> str:
    name = f"{key[1]}-{key[2]}"
    return name if key[0] == GROUP else f"{key[0]}:{name}"


def _key(name: str) -> bytes:
    group, _, place = name.rpartition(":")
    topic, _, partition = place.rpartition("-")
    return builders.offset_key(group or GROUP, topic, int(partition))


def at(offsets: dict[str, int], expire_ms: int | None = None) -> list[Rec]:
    """Commits; those with an expiry of their own are written in version 1."""
    if expire_ms is None:
        return [Rec(_key(name), builders.offset_value(value)) for name, value in offsets.items()]
    return [
        Rec(_key(name), builders.offset_value(value, version=1, expire_ms=expire_ms))
        for name, value in offsets.items()
    ]


def gone(*names: str) -> list[Rec]:
    """Tombstones of offsets."""
    return [Rec(_key(name), None) for name in names]


def group(
    generation: int, protocol_type: str = "consumer", members: int = 0, *, version: int = 3,
    assignment: bytes = b"",
) -> list[Rec]:  # fmt: skip
    """The state of the group: with members it is stable, without empty."""
    value = group_value(generation, protocol_type, members, version=version, assignment=assignment)
    return [Rec(builders.group_key(GROUP), value)]


def group_gone() -> list[Rec]:
    """Its tombstone."""
    return [Rec(builders.group_key(GROUP), None)]


def group_value(
    generation: int,
    protocol_type: str,
    members: int,
    *,
    version: int,
    assignment: bytes = b"",
    tags: dict[int, bytes] | None = None,
) -> bytes:
    """A `GroupMetadataValue`; `tags` are of the member and of the group, in version 4."""
    is_flexible = version >= 4
    text = builders.compact_string if is_flexible else builders.string

    def blob(data: bytes) -> bytes:
        size = builders.uvarint(len(data) + 1) if is_flexible else struct.pack(">i", len(data))
        return size + data

    end = builders.tags(tags or {}) if is_flexible else b""
    member = (
        text("member") + (text("instance") if version >= 3 else b"") + text("client") + text("host")
    )
    member += (
        struct.pack(">i", 30_000) * (2 if version >= 1 else 1) + blob(b"") + blob(assignment) + end
    )
    out = struct.pack(">h", version) + text(protocol_type) + struct.pack(">i", generation)
    out += text("range") + text("member")
    if version >= 2:
        out += struct.pack(">q", builders.NOW_MS)
    out += builders.uvarint(members + 1) if is_flexible else struct.pack(">i", members)
    return out + member * members + end


def writes(*recs: list[Rec], by: int | None = None) -> Step:
    """One batch: plain, or of a producer's transaction."""

    def step(log: Offsets) -> None:
        flat = [rec for some in recs for rec in some]
        is_plain = by is None
        log.takes(builders.batch(
            log.end, flat, producer_id=-1 if by is None else by, producer_epoch=-1 if is_plain else 2,
            base_sequence=-1 if is_plain else 0, transactional=not is_plain,
        ))  # fmt: skip

    return step


def marks(producer_id: int, outcome: int | None = builders.COMMIT) -> Step:
    """A marker; outcome None is a control batch whose record the cleaner took."""

    def step(log: Offsets) -> None:
        if outcome is None:
            log.takes(builders.batch(
                log.end, 0, producer_id=producer_id, producer_epoch=2, transactional=True, control=True,
            ))  # fmt: skip
        else:
            log.takes(builders.marker(log.end, outcome, producer_id=producer_id, producer_epoch=2))

    return step


def has(offsets: dict[str, int]) -> Step:
    """All offsets that count, of all groups."""

    def step(log: Offsets) -> None:
        found = {_name(key): one.committed_offset for key, one in log.state.materialised.items()}
        assert found == offsets

    return step


def waits(offsets: dict[int, set[str]]) -> Step:
    """All offsets that wait for a marker, by producer."""

    def step(log: Offsets) -> None:
        found = {
            pid: {_name(key) for key in held} for pid, held in log.state.pending.items() if held
        }
        assert found == offsets

    return step


def groups(wanted: dict[str, tuple[int | None, str | None, int | None]]) -> Step:
    """All groups: generation, protocol type, number of members."""

    def step(log: Offsets) -> None:
        found = {
            name: (one.generation_or_epoch, one.protocol_type, one.member_count)
            for name, one in log.groups.items()
        }
        assert found == wanted

    return step


def expires(wanted: int) -> Step:
    """The expiry that each commit names for itself; -1 is none."""

    def step(log: Offsets) -> None:
        assert {one.expire_timestamp_ms for one in log.commits.values()} == {wanted}

    return step


def decided(outcome: str, count: int, *, is_new: bool | None = None) -> Step:
    """How many records became so; `is_new`: of those, the ones that replaced nothing, or something."""

    def step(log: Offsets) -> None:
        found = [one for one in log.decided if one.outcome == outcome]
        assert sum(is_new in (None, one.previous is None) for one in found) == count

    return step
