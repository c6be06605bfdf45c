"""Facts of Kafka's own `LogCleanerTest` and `TransactionIndexTest`: what cleaning leaves is no fault.

Each row is the log as the case leaves it. The replay finds no open transaction, no repeat and no gap in it, and gives
the aborted ranges of the case. `start` is where complete history begins: behind the last hole and the last shortened
batch.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pipeline.replay.history import replay
from pipeline.replay.stability import aborted
from pipeline.wire.batch import Batch
from pipeline.wire.txn_index import AbortedTxn, read
from tests import log_layout
from tests.unit.replay.rows import ABORT, COMMIT, data, marker

ONE, TWO, THREE = 1, 2, 3


class Cleaned(NamedTuple):
    """What is left, open producers, aborted (producer, first, last) and events behind the frontier."""

    name: str
    batches: list[Batch]
    start: int
    is_open: set[int] = set()  # noqa: RUF012 - never changed, and a tuple has no class attributes
    aborted: list[tuple[int, int, int]] = []  # noqa: RUF012 - likewise


def idempotent(
    offset: int, sequence: int, producer: int, records: int = 1, kept: int | None = None
) -> Batch:
    return data(
        offset, sequence, producer_id=producer, records=records, kept=kept, transactional=False
    )


CLEANED = [
    Cleaned(
        "testDuplicateCheckAfterCleaning",
        [idempotent(0, 0, ONE, 3, kept=1), idempotent(3, 0, TWO, 3, kept=1),
         idempotent(6, 0, THREE, 2)], 6,
    ),
    Cleaned(
        "testDuplicateCheckAfterCleaning",
        [idempotent(0, 0, ONE, 3, kept=0), idempotent(3, 0, TWO, 3, kept=1),
         idempotent(6, 0, THREE, 2), idempotent(8, 0, 4)], 6,
    ),
    Cleaned(
        "testMultiPassSegmentCleaningWithAbortedTransactions",
        [data(0, 0, records=2, kept=1), data(2, 0, producer_id=TWO, records=2), data(4, 2, records=2),
         marker(6), marker(7, producer_id=TWO), marker(10, ABORT), data(13, 6, records=2), marker(15),
         marker(16, ABORT, producer_id=TWO), data(17, 4, producer_id=TWO, records=2),
         marker(19, producer_id=TWO)], 13,
    ),
    Cleaned(
        "testMultiPassSegmentCleaningWithAbortedTransactions",
        [data(0, 0, records=2, kept=1), data(2, 0, producer_id=TWO, records=2, kept=0),
         data(4, 2, records=2), marker(6), marker(7, producer_id=TWO), data(13, 6, records=2, kept=1),
         marker(15), data(17, 4, producer_id=TWO, records=2), marker(19, producer_id=TWO)], 17,
    ),
    Cleaned(
        "testBasicTransactionAwareCleaning",
        [data(2, 0, producer_id=TWO, records=2, kept=1), marker(6, ABORT), marker(7, producer_id=TWO),
         data(8, 4), marker(9)], 6,
    ),
    Cleaned(
        "testCleanWithTransactionsSpanningSegments",
        [data(2, 0, producer_id=THREE, records=2), data(8, 2, producer_id=THREE, records=2),
         marker(12, ABORT, producer_id=TWO), data(13, 4, producer_id=THREE, records=2),
         marker(15, producer_id=THREE), marker(18, ABORT), data(19, 4, producer_id=TWO), data(20, 6)], 18,
        {ONE, TWO},
    ),
    Cleaned(
        "testCommitMarkerRemoval",
        [data(0, 0), data(1, 1, records=2, kept=1), marker(3), data(4, 3), marker(5)], 3,
    ),
    Cleaned(
        "testCommitMarkerRemoval",
        [marker(3), data(4, 3), marker(5), data(6, 4, records=2), marker(8)], 3,
    ),
    Cleaned(
        "testCommitMarkerRemoval", [data(4, 3), marker(5), data(6, 4, records=2), marker(8)], 4,
    ),
    Cleaned("testDeletedBatchesWithNoMessagesRead", [marker(1, ABORT), data(3, 2), marker(4)], 3),
    Cleaned("testDeletedBatchesWithNoMessagesRead", [data(3, 2), marker(4)], 3),
    Cleaned(
        "testCommitMarkerRetentionWithEmptyBatch",
        [data(0, 0, records=2, kept=0), data(2, 0, producer_id=TWO, records=2, kept=0),
         marker(4, producer_id=TWO), marker(7)], 4,
    ),
    Cleaned(
        "testCommitMarkerRetentionWithEmptyBatch",
        [data(0, 0, records=2, kept=0), marker(4, producer_id=TWO), marker(7),
         data(8, 2, producer_id=TWO), marker(9, producer_id=TWO)], 4,
    ),
    Cleaned("testCleanEmptyControlBatch", [marker(0, None)], 1),
    Cleaned("testCommittedTransactionSpanningSegments", [data(0, 0), marker(1)], 0),
    Cleaned("testAbortedTransactionSpanningSegments", [data(0, 0, kept=0), marker(1, ABORT)], 1),
    Cleaned("testAbortMarkerRemoval", [marker(3, ABORT), data(4, 3), marker(5)], 3),
    Cleaned("testAbortMarkerRemoval", [data(4, 3), marker(5)], 4),
    Cleaned("testEmptyBatchRemovalWithSequenceReuse", [marker(1), data(2, 0, kept=0), marker(3)], 3),
    Cleaned("testEmptyBatchRemovalWithSequenceReuse", [data(2, 0, kept=0), marker(3)], 3),
    Cleaned("testAbortMarkerRetentionWithEmptyBatch", [data(0, 0, records=2), marker(2, ABORT)], 0,
            aborted=[(ONE, 0, 2)]),
    Cleaned("testAbortMarkerRetentionWithEmptyBatch",
            [data(0, 0, records=2, kept=0), marker(2, ABORT)], 2),
    Cleaned("testAbortMarkerRetentionWithEmptyBatch", [marker(2, ABORT), data(3, 2)], 2, {ONE}),
    Cleaned("testLogCleanerRetainsProducerLastSequence",
            [idempotent(1, 0, ONE, kept=0), idempotent(3, 0, THREE), idempotent(4, 1, TWO)], 3),
    Cleaned("testLogCleanerRetainsLastSequenceEvenIfTransactionAborted",
            [data(1, 1, records=2, kept=0), marker(3, ABORT)], 3),
    Cleaned("testLogCleanerRetainsLastSequenceEvenIfTransactionAborted",
            [marker(3, ABORT), data(4, 3, records=2)], 3, {ONE}),
    Cleaned("testCleaningWithKeysConflictingWithTxnMarkerKeys",
            [data(0, 0), marker(1), data(2, 0, producer_id=TWO), marker(3, producer_id=TWO)], 0),
    Cleaned("testCleanSegmentsRetainingLastEmptyBatch", [data(9, -1, producer_id=-1, kept=0)], 10),
]  # fmt: skip


@pytest.mark.parametrize("case", CLEANED, ids=lambda case: f"LogCleanerTest.{case.name}")
def test_what_the_cleaner_leaves(case: Cleaned) -> None:
    history = replay(case.batches, history_start_offset=case.start)
    kinds = [event.kind for event in history.events]
    assert set(kinds) <= {"first"}
    assert {run.producer_id for run in history.runs if run.is_open} == case.is_open
    found = [(one.producer_id, one.first_offset, one.last_offset) for one in aborted(history.runs)]
    assert found == case.aborted


class Entries(NamedTuple):
    """Entries of an index: (producer id, first, last, last stable offset), and how many bytes of it are left."""

    name: str
    entries: list[tuple[int, int, int, int]]
    kept_bytes: int | None = None


FOUR = [(0, 0, 10, 11), (1, 5, 15, 13), (2, 18, 35, 25), (3, 32, 50, 40)]
INDEXES = [
    Entries("testPositionSetCorrectlyWhenOpened", [*FOUR, (3, 50, 60, 55)]),
    Entries("entries as written", FOUR),
    Entries("testCollectAbortedTransactions", FOUR),
    Entries("testTruncate", FOUR),
    Entries("testTruncate", FOUR, 3 * 34),
    Entries("testTruncate", FOUR, 0),
    Entries("testAbortedTxnSerde", [(983493, 137, 299, 200)]),
    Entries("testRenameIndex", [(0, 0, 10, 2), (1, 5, 15, 16)]),
    Entries("testFlush", [(0, 0, 10, 2)]),
]


@pytest.mark.parametrize("case", INDEXES, ids=lambda case: f"TransactionIndexTest.{case.name}")
def test_what_an_index_holds(case: Entries) -> None:
    data_bytes = log_layout.txn_index(case.entries)[: case.kept_bytes]
    found, trailing = read(data_bytes)
    wanted = case.entries if case.kept_bytes is None else case.entries[: case.kept_bytes // 34]
    assert found == [AbortedTxn(0, *entry) for entry in wanted]
    assert trailing == 0


class Interleaved(NamedTuple):
    """Transactions of several producers, and the aborted ranges with their last stable offset."""

    name: str
    batches: list[Batch]
    wanted: list[tuple[int, int, int, int]]


INTERLEAVED = [
    Interleaved(
        "LogCleanerTest.testMultiPassSegmentCleaningWithAbortedTransactions",
        [data(0, 0, records=2), data(2, 0, producer_id=TWO, records=2), data(4, 2, records=2), marker(6),
         marker(7, producer_id=TWO), data(8, 4, records=2), marker(10, ABORT),
         data(11, 2, producer_id=TWO, records=2), data(13, 6, records=2), marker(15),
         marker(16, ABORT, producer_id=TWO), data(17, 4, producer_id=TWO, records=2),
         marker(19, COMMIT, producer_id=TWO)],
        [(ONE, 8, 10, 11), (TWO, 11, 16, 17)],
    ),
    Interleaved(
        "TransactionIndexTest.later data, earlier marker",
        [data(0, 0), data(5, 0, producer_id=TWO), marker(15, ABORT, producer_id=TWO), marker(16, ABORT)],
        [(TWO, 5, 15, 0), (ONE, 0, 16, 17)],
    ),
    Interleaved(
        "TransactionIndexTest.markers in the order of the data",
        [data(0, 0), data(5, 0, producer_id=TWO), marker(10, ABORT), marker(15, ABORT, producer_id=TWO)],
        [(ONE, 0, 10, 5), (TWO, 5, 15, 16)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", INTERLEAVED, ids=lambda case: case.name)
def test_aborted_ranges_in_marker_order(case: Interleaved) -> None:
    found = aborted(replay(case.batches).runs)
    assert [tuple(one)[1:] for one in found] == case.wanted
