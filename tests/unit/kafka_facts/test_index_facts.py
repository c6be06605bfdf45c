"""Facts of Kafka's own `TransactionIndexTest`, and of the snapshot files of `ProducerStateManagerTest`: sidecars."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from pipeline.replay.history import replay
from pipeline.replay.stability import aborted
from pipeline.wire import producer_snapshot, txn_index
from pipeline.wire.errors import WireError
from pipeline.wire.producer_snapshot import SnapshotEntry
from pipeline.wire.txn_index import AbortedTxn
from tests import log_layout
from tests.snapshots import snapshot_entry
from tests.unit.kafka_facts.partition_story import Story, ok, tell
from tests.unit.replay.rows import ABORT, data, marker


class Entries(NamedTuple):
    """Entries of an index, one append each: (producer id, first, last, last stable offset)."""

    name: str
    entries: list[tuple[int, int, int, int]]


FOUR = [(0, 0, 10, 11), (1, 5, 15, 13), (2, 18, 35, 25), (3, 32, 50, 40)]
INDEXES = [
    Entries("testPositionSetCorrectlyWhenOpened", [*FOUR, (3, 50, 60, 55)]),
    Entries("testAbortedTxnSerde", [(983493, 137, 299, 200)]),
    Entries("testRenameIndex", [(0, 0, 10, 2), (1, 5, 15, 16)]),
    Entries("testFlush", [(0, 0, 10, 2)]),
    Entries("entries as written", FOUR),
]


@pytest.mark.parametrize("case", INDEXES, ids=lambda case: f"TransactionIndexTest.{case.name}")
def test_what_an_index_holds(case: Entries) -> None:
    raw = b"".join(log_layout.txn_index([entry]) for entry in case.entries)
    found, trailing = txn_index.read(raw)
    assert found == [AbortedTxn(0, *entry) for entry in case.entries]
    assert trailing == 0


class Interleaved(NamedTuple):
    """Transactions of several producers, cut at an offset, and the aborted ranges with their last stable offset."""

    name: str
    wanted: list[tuple[int, int, int, int]]
    cut: int


OVERLAPPING = [
    data(0, 0, producer_id=10), data(5, 0, producer_id=11), marker(10, ABORT, producer_id=10),
    marker(15, ABORT, producer_id=11), data(18, 0, producer_id=12), data(32, 0, producer_id=13),
    marker(35, ABORT, producer_id=12), marker(50, ABORT, producer_id=13),
]  # fmt: skip
ABORTED = [(10, 0, 10, 5), (11, 5, 15, 16), (12, 18, 35, 32), (13, 32, 50, 51)]
TRUNCATED = [
    Interleaved("testTruncate", ABORTED, 51),
    Interleaved("testTruncate", ABORTED[:3], 50),
    Interleaved("testTruncate", [], 0),
]


@pytest.mark.parametrize("case", TRUNCATED, ids=lambda case: f"{case.name} at {case.cut}")
def test_what_a_truncated_log_has_aborted(case: Interleaved) -> None:
    batches = [batch for batch in OVERLAPPING if batch.base_offset < case.cut]
    assert [tuple(txn)[1:] for txn in aborted(replay(batches).runs)] == case.wanted


def test_later_data_may_have_the_earlier_marker() -> None:
    batches = [
        data(0, 0), data(5, 0, producer_id=2), marker(15, ABORT, producer_id=2), marker(16, ABORT),
    ]  # fmt: skip
    found = [tuple(txn)[1:] for txn in aborted(replay(batches).runs)]
    assert found == [(2, 5, 15, 0), (1, 0, 16, 17)]


class Broken(NamedTuple):
    """What happened to the newer of two snapshots."""

    name: str
    damage: Callable[[bytes], bytes]


BROKEN = [
    Broken("testLoadFromEmptySnapshotFile", lambda raw: b""),
    Broken("testLoadFromTruncatedSnapshotFile", lambda raw: raw[: len(raw) // 2]),
    Broken("testLoadFromCorruptSnapshotFile", lambda raw: bytes(37) + raw[37:]),
    Broken("one bit of an entry", lambda raw: raw[:-1] + bytes([raw[-1] ^ 1])),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_broken_snapshot_is_not_believed_and_the_older_one_is(case: Broken) -> None:
    """`ProducerStateManagerTest`: the broker deletes it and begins at the one before."""
    older, newer = (
        log_layout.snapshot([snapshot_entry(1, tell(story).held[1])])
        for story in (Story("", "", [ok(*BATCHES[:1])]), Story("", "", [ok(*BATCHES)]))
    )
    assert last_offsets(newer) == [1]
    assert last_offsets(case.damage(newer)) is None
    assert last_offsets(older) == [0]


BATCHES = [data(0, 0, transactional=False), data(1, 1, transactional=False)]


def last_offsets(raw: bytes) -> list[int] | None:
    """Of each producer; None where the file is not to be believed."""
    try:
        found = producer_snapshot.read(raw)
    except WireError:
        return None
    return [entry.last_offset for entry in found.entries] if found.crc_ok else None


WRITTEN = [
    SnapshotEntry(1, 2, 1, 2, 3, -1, 3, 100),
    SnapshotEntry(11, 12, -1, -1, 0, 123456, 13, -1),
]


def test_a_snapshot_is_read_as_it_was_written() -> None:
    """`ProducerStateManagerTest.testReadWriteSnapshot`."""
    found = producer_snapshot.read(log_layout.snapshot(WRITTEN))
    assert found.crc_ok
    assert found.entries == tuple(WRITTEN)
