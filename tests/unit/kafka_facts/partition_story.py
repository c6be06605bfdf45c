"""A partition's story, step by step: what is offered to its leader, and what the project then says of it.

A case of Kafka's tests is one `Story`. Steps that write: `ok`, `no`, `copied`, `plain`; of a broker: `forgets`,
`reloads`, `recovers`, `truncated`, `starts_at`, `deletes`; all others are the facts that the case asserts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pipeline.replay.broker_entry import BrokerEntry, CompletedTxn, KeptBatch, append
from pipeline.replay.history import replay
from pipeline.replay.stability import aborted, last_stable_offset
from pipeline.wire.batch import Batch
from pipeline.wire.producer_snapshot import SnapshotEntry, read
from tests import log_layout
from tests.snapshots import snapshot_entry
from tests.unit.replay.rows import data

EPOCH, ORDER, STATE = "InvalidProducerEpoch", "OutOfOrderSequence", "InvalidTxnState"
DUPLICATE, FENCED = "DuplicateBatch", "TransactionCoordinatorFenced"
"""What a leader answers; a duplicate is acknowledged with the offsets of the first one, not refused."""


class Partition:
    """One replica: its batches, what its broker holds of each producer, and the transactions that ended."""

    def __init__(self, *, is_offsets: bool = False) -> None:
        self.is_offsets = is_offsets
        self.batches: list[Batch] = []
        self.held: dict[int, BrokerEntry] = {}
        self.ended: list[CompletedTxn] = []
        self.start = 0

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def offered(self, batch: Batch) -> tuple[BrokerEntry, CompletedTxn | None, str | None]:
        before = self.held.get(batch.producer_id, BrokerEntry())
        return append(before, batch, is_offsets=self.is_offsets)

    def takes(self, batch: Batch) -> None:
        self.batches.append(batch)
        if batch.producer_id < 0:
            return
        self.held[batch.producer_id], completed, _ = self.offered(batch)
        if completed is not None:
            self.ended.append(completed)


Step = Callable[[Partition], None]


class Story(NamedTuple):
    """One case, told once.

    Attributes:
        of: Kafka's test class.
        name: Its case; a text with blanks where the story is not a case of Kafka's.
        steps: Writes and facts, in order.
        is_offsets: It plays in `__consumer_offsets`.
    """

    of: str
    name: str
    steps: list[Step]
    is_offsets: bool = False


def tell(story: Story) -> Partition:
    """Plays it; each fact is asserted where it stands."""
    partition = Partition(is_offsets=story.is_offsets)
    for step in story.steps:
        step(partition)
    return partition


def ok(*batches: Batch) -> Step:
    """The leader appends them."""

    def step(one: Partition) -> None:
        for batch in batches:
            assert one.offered(batch)[2] is None
            one.takes(batch)

    return step


def no(answer: str, batch: Batch) -> Step:
    """The leader answers so, and appends nothing."""

    def step(one: Partition) -> None:
        assert one.offered(batch)[2] == answer

    return step


def copied(*batches: Batch) -> Step:
    """A follower appends them, whatever they are."""

    def step(one: Partition) -> None:
        for batch in batches:
            one.takes(batch)

    return step


def plain(offset: int, records: int = 1) -> Step:
    """Data without a producer id."""
    return copied(data(offset, -1, producer_id=-1, records=records, transactional=False))


def forgets(producer_id: int = 1) -> Step:
    """The producer expires."""

    def step(one: Partition) -> None:
        one.held.pop(producer_id)

    return step


def reloads() -> Step:
    """The broker starts again from a snapshot of this moment, written and read as bytes."""

    def step(one: Partition) -> None:
        rows = [snapshot_entry(producer_id, entry) for producer_id, entry in one.held.items()]
        found = read(log_layout.snapshot(rows))
        assert found.crc_ok
        one.held = {entry.producer_id: _loaded(entry) for entry in found.entries}

    return step


def _loaded(entry: SnapshotEntry) -> BrokerEntry:
    kept: tuple[KeptBatch, ...] = ()
    if entry.last_offset >= 0:
        last = (entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp_ms)
        kept = (KeptBatch(*last),)
    return BrokerEntry(
        entry.producer_epoch,
        entry.coordinator_epoch,
        entry.timestamp_ms,
        entry.current_txn_first_offset,
        kept,
    )


def recovers() -> Step:
    """The broker starts again without a snapshot and reads the whole log."""

    def step(one: Partition) -> None:
        truncated(one.end)(one)

    return step


def starts_at(offset: int) -> Step:
    """DeleteRecords: the log starts there, and the files are as they were."""

    def step(one: Partition) -> None:
        one.start = offset

    return step


def deletes(offset: int) -> Step:
    """Retention takes the batches in front of the offset; what the broker holds stays."""

    def step(one: Partition) -> None:
        one.batches = [batch for batch in one.batches if batch.last_offset >= offset]

    return step


def truncated(offset: int) -> Step:
    """What lies at or behind the offset goes, and the producers are built anew from the rest."""

    def step(one: Partition) -> None:
        kept = [batch for batch in one.batches if batch.base_offset < offset]
        one.batches, one.held, one.ended = [], {}, []
        copied(*kept)(one)

    return step


def prepares(batch: Batch, last: int) -> Step:
    """The state that the batch would lead to, while what is held stays as it is."""

    def step(one: Partition) -> None:
        before = dict(one.held)
        assert one.offered(batch)[0].last_sequence == last
        assert one.held == before

    return step


def log_end(wanted: int) -> Step:
    """Offset behind the last batch."""

    def step(one: Partition) -> None:
        assert one.end == wanted

    return step


def holds(producer_id: int = 1, **wanted: Any) -> Step:
    """What the broker holds of a producer; -1 is none.

    Args:
        producer_id: Whose.
        wanted: `epoch`; `first` and `last` sequence, `first_offset` and `last_offset` of the kept batches; `txn`, the
            first offset of the open one; `coordinator`, its epoch; `time_ms`.
    """

    def step(one: Partition) -> None:
        entry = one.held[producer_id]
        kept = entry.batches
        found = {
            "epoch": entry.producer_epoch,
            "first": kept[0].first_sequence if kept else -1,
            "last": entry.last_sequence,
            "first_offset": kept[0].last_offset - kept[0].offset_delta if kept else -1,
            "last_offset": kept[-1].last_offset if kept else -1,
            "txn": entry.current_txn_first_offset,
            "coordinator": entry.coordinator_epoch,
            "time_ms": entry.last_timestamp_ms,
        }
        assert {name: found[name] for name in wanted} == wanted

    return step


def knows(*producer_ids: int) -> Step:
    """The producers of whom the broker holds anything."""

    def step(one: Partition) -> None:
        assert sorted(one.held) == sorted(producer_ids)

    return step


def stable(wanted: int, high_watermark: int | None = None) -> Step:
    """How far committed data are read; without a high watermark, as if all were replicated."""

    def step(one: Partition) -> None:
        runs = replay(one.batches, is_offsets=one.is_offsets).runs
        assert last_stable_offset(runs, high_watermark, one.end, one.start) == wanted

    return step


def ends(*wanted: CompletedTxn) -> Step:
    """The transactions with data that markers have ended so far."""

    def step(one: Partition) -> None:
        assert one.ended == list(wanted)

    return step


def aborts(*wanted: tuple[int, int, int, int]) -> Step:
    """The aborted transactions: producer, first and last offset, last stable offset at the marker."""

    def step(one: Partition) -> None:
        runs = replay(one.batches, is_offsets=one.is_offsets).runs
        assert [tuple(txn)[1:] for txn in aborted(runs)] == list(wanted)

    return step


def events(*wanted: tuple[str, int]) -> Step:
    """What the audit calls irregular: kind and offset."""

    def step(one: Partition) -> None:
        found = replay(one.batches, is_offsets=one.is_offsets).events
        assert [(event.kind, event.batch.base_offset) for event in found] == list(wanted)

    return step
