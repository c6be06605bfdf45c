"""Facts of Kafka's own `LogCleanerTest`: what cleaning leaves is no fault.

A case is the log before cleaning, where the case says something of it, and the log that each pass leaves: its batches,
some shortened, some empty, are what the case asserts. The facts are the audit's: no repeat and no gap, no open
transaction but those of the case, last sequences and aborted transactions of the case, and no complaint about its
transaction index, which may list transactions whose data are gone.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest

from pipeline.replay import visibility
from pipeline.replay.broker_entry import append
from pipeline.replay.history import History, replay
from pipeline.replay.sidecar_check import LogPlace
from pipeline.replay.stability import aborted
from pipeline.replay.visibility import Ended, Listed
from pipeline.wire.batch import Batch
from pipeline.wire.segment import iterate
from tests import builders
from tests.unit.kafka_facts.partition_story import DUPLICATE
from tests.unit.replay.rows import ABORT, data, marker

ONE, TWO, THREE, FOUR = 1, 2, 3, 4
Txn = tuple[int, int, int, int]


class Left(NamedTuple):
    """A log, and what is said of it.

    Attributes:
        batches: The log.
        open: Producers with an open transaction.
        aborted: Of the transactions that still have data: producer, first and last offset, last stable offset.
        index: Entries of the transaction index, where the case or a segment that was not cleaned names them: producer,
            first and last offset.
        last: Producer -> last sequence, where the case names them.
        repeated: Batches that the leader knows again.
    """

    batches: list[Batch]
    open: tuple[int, ...] = ()
    aborted: tuple[Txn, ...] = ()
    index: tuple[tuple[int, int, int], ...] | None = None
    last: dict[int, int] | None = None
    repeated: tuple[Batch, ...] = ()


class Cleaned(NamedTuple):
    """One case; `is_offsets`: written as the group coordinator does, every batch from sequence 0."""

    name: str
    passes: list[Left]
    is_offsets: bool = False


def idempotent(
    offset: int, sequence: int, of: int, records: int = 1, kept: int | None = None
) -> Batch:
    return data(offset, sequence, producer_id=of, records=records, kept=kept, transactional=False)


def txn(offset: int, sequence: int, of: int, records: int = 2, kept: int | None = None) -> Batch:
    return data(offset, sequence, producer_id=of, records=records, kept=kept)


def plain(offset: int) -> Batch:
    return data(offset, -1, producer_id=-1, transactional=False)


COMMIT_2, ABORT_2 = marker(7, producer_id=TWO), marker(16, ABORT, producer_id=TWO)
BEFORE_10 = [txn(4, 2, ONE), marker(6), COMMIT_2]
FROM_17 = [txn(17, 4, TWO), marker(19, producer_id=TWO)]
TWO_ABORTED = ((ONE, 8, 10, 11), (TWO, 11, 16, 17))
BOTH = ((ONE, 8, 10), (TWO, 11, 16))
SPANNING = [
    txn(8, 2, THREE), marker(12, ABORT, producer_id=TWO), txn(13, 4, THREE), marker(15, producer_id=THREE),
]  # fmt: skip
FIRST_IS_EMPTY = txn(0, 0, ONE, kept=0)
BETWEEN = [plain(5), plain(6), marker(7)]

CLEANED = [
    Cleaned("testDuplicateCheckAfterCleaning", [
        Left([idempotent(0, 0, ONE, 3, kept=1), idempotent(3, 0, TWO, 3, kept=1), idempotent(6, 0, THREE, 2)],
             last={ONE: 2, TWO: 2, THREE: 1},
             repeated=(idempotent(8, 0, ONE, 3), idempotent(8, 0, THREE, 2), idempotent(8, 0, TWO, 3))),
        Left([idempotent(0, 0, ONE, 3, kept=0), idempotent(3, 0, TWO, 3, kept=1), idempotent(6, 0, THREE, 2),
              idempotent(8, 0, FOUR)],
             last={ONE: 2, TWO: 2, THREE: 1, FOUR: 0}, repeated=(idempotent(9, 0, ONE, 3),)),
    ]),
    Cleaned("testMultiPassSegmentCleaningWithAbortedTransactions", [
        Left([txn(0, 0, ONE), txn(2, 0, TWO), *BEFORE_10, txn(8, 4, ONE), marker(10, ABORT), txn(11, 2, TWO),
              txn(13, 6, ONE), marker(15), ABORT_2, *FROM_17], aborted=TWO_ABORTED, index=BOTH),
        Left([txn(0, 0, ONE, kept=1), txn(2, 0, TWO), *BEFORE_10, marker(10, ABORT), txn(13, 6, ONE), marker(15),
              ABORT_2, *FROM_17], index=BOTH),
        Left([txn(0, 0, ONE, kept=1), txn(2, 0, TWO, kept=1), *BEFORE_10, marker(10, ABORT), txn(13, 6, ONE),
              marker(15), ABORT_2, *FROM_17], index=()),
        Left([txn(0, 0, ONE, kept=1), txn(2, 0, TWO, kept=1), *BEFORE_10, txn(13, 6, ONE, kept=1), marker(15),
              *FROM_17], index=()),
    ]),
    Cleaned("testBasicTransactionAwareCleaning", [
        Left([txn(0, 0, ONE), txn(2, 0, TWO), txn(4, 2, ONE), marker(6, ABORT), COMMIT_2, data(8, 4), marker(9)],
             aborted=((ONE, 0, 6, 2),), index=((ONE, 0, 6),)),
        Left([txn(2, 0, TWO, kept=1), marker(6, ABORT), COMMIT_2, data(8, 4), marker(9)], index=((ONE, 0, 6),)),
    ]),
    Cleaned("testCleanWithTransactionsSpanningSegments", [
        Left([txn(2, 0, THREE), txn(6, 2, TWO), *SPANNING[:1], txn(10, 2, ONE), *SPANNING[1:], txn(16, 4, ONE),
              marker(18, ABORT)], aborted=((TWO, 6, 12, 2), (ONE, 10, 18, 19)), index=((TWO, 4, 12), (ONE, 0, 18))),
        Left([txn(2, 0, THREE), *SPANNING, marker(18, ABORT), data(19, 4, producer_id=TWO), data(20, 6)],
             open=(ONE, TWO)),
    ]),
    Cleaned("testCommitMarkerRemoval", [
        Left([data(0, 0), txn(1, 1, ONE, kept=1), marker(3), data(4, 3), marker(5)]),
        Left([marker(3), data(4, 3), marker(5), txn(6, 4, ONE), marker(8)]),
        Left([data(4, 3), marker(5), txn(6, 4, ONE), marker(8)]),
    ]),
    Cleaned("testDeletedBatchesWithNoMessagesRead", [
        Left([marker(1, ABORT), data(3, 2), marker(4)]),
        Left([data(3, 2), marker(4)]),
    ]),
    Cleaned("testCommitMarkerRetentionWithEmptyBatch", [
        Left([FIRST_IS_EMPTY, txn(2, 0, TWO, kept=0), marker(4, producer_id=TWO), *BETWEEN]),
        Left([FIRST_IS_EMPTY, marker(4, producer_id=TWO), *BETWEEN, data(8, 2, producer_id=TWO),
              marker(9, producer_id=TWO)]),
        Left([FIRST_IS_EMPTY, *BETWEEN, data(8, 2, producer_id=TWO), marker(9, producer_id=TWO)]),
    ]),
    Cleaned("testCleanEmptyControlBatch", [Left([marker(0, None), plain(1), plain(2)])]),
    Cleaned("testCommittedTransactionSpanningSegments", [Left([data(0, 0), marker(1)])]),
    Cleaned("testAbortedTransactionSpanningSegments", [Left([data(0, 0, kept=0), marker(1, ABORT)])]),
    Cleaned("testAbortMarkerRemoval", [
        Left([marker(3, ABORT), data(4, 3), marker(5)]),
        Left([data(4, 3), marker(5)]),
    ]),
    Cleaned("testEmptyBatchRemovalWithSequenceReuse", [
        Left([data(0, 0), marker(1), data(2, 0), marker(3), plain(4), plain(5)]),
        Left([marker(1), data(2, 0, kept=0), marker(3), plain(4), plain(5)]),
        Left([data(2, 0, kept=0), marker(3), plain(4), plain(5)]),
    ], is_offsets=True),
    Cleaned("testAbortMarkerRetentionWithEmptyBatch", [
        Left([txn(0, 0, ONE), marker(2, ABORT)], aborted=((ONE, 0, 2, 3),), index=((ONE, 0, 2),)),
        Left([FIRST_IS_EMPTY, marker(2, ABORT)], index=((ONE, 0, 2),)),
        Left([marker(2, ABORT), data(3, 2)], open=(ONE,), index=((ONE, 0, 2),)),
        Left([data(3, 2)], open=(ONE,), index=()),
    ]),
    Cleaned("testLogCleanerRetainsProducerLastSequence", [
        Left([idempotent(1, 0, ONE, kept=0), idempotent(3, 0, THREE), idempotent(4, 1, TWO)],
             last={ONE: 0, TWO: 1, THREE: 0}),
    ]),
    Cleaned("testLogCleanerRetainsLastSequenceEvenIfTransactionAborted", [
        Left([txn(1, 1, ONE, kept=0), marker(3, ABORT)], last={ONE: 2}),
        Left([marker(3, ABORT), txn(4, 3, ONE)], open=(ONE,), last={ONE: 4}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("case", CLEANED, ids=lambda case: f"LogCleanerTest.{case.name}")
def test_what_the_cleaner_leaves(case: Cleaned) -> None:
    for left in case.passes:
        start = complete_from(left.batches)
        found = replay(left.batches, is_offsets=case.is_offsets, history_start_offset=start)
        assert {event.kind for event in found.events} <= {"first"}
        assert {run.producer_id for run in found.runs if run.is_open} == set(left.open)
        assert tuple(tuple(one)[1:] for one in aborted(found.runs)) == left.aborted
        held = {pid: producer.broker for pid, producer in found.producers.items()}
        if left.last is not None:
            assert {pid: entry.last_sequence for pid, entry in held.items()} == left.last
        for batch in left.repeated:
            assert append(held[batch.producer_id], batch)[2] == DUPLICATE
        assert complaints(left, found, start) == []


def complete_from(batches: list[Batch]) -> int:
    """Offset behind the last hole and the last shortened batch."""
    start = end = 0
    for batch in batches:
        start = batch.base_offset if batch.base_offset != end else start
        end = batch.last_offset + 1
        if batch.records_count < end - batch.base_offset:
            start = end
    return start


def complaints(left: Left, found: History, start: int) -> list[str]:
    """What the audit says against the index of the case."""
    if left.index is None:
        return []
    end = left.batches[-1].last_offset + 1
    place = LogPlace(0, "test", 0, None, start, 0, end, True, None, True)
    runs = [
        Ended(run.producer_id, run.first_offset, run.marker_offset, run.marker_type)
        for run in found.runs
        if run.marker_offset is not None
    ]
    aborts = [run for run in runs if run.marker_type == ABORT]
    others = {
        pid: [run for run in runs if run.producer_id == pid and run not in aborts]
        for pid in found.producers
    }
    listed = [Listed(*entry) for entry in left.index]
    return [one.title for one in visibility.judge(place, aborts, listed, others, has_index=True)]


@pytest.mark.parametrize("number", range(4))
def test_a_wrong_index_of_the_same_log_is_seen(number: int) -> None:
    """The twin of an innocent one: before cleaning the index lists both, behind it it may list what is gone."""
    left = CLEANED[1].passes[number]
    start = complete_from(left.batches)
    found = replay(left.batches, history_start_offset=start)
    wrong = left._replace(index=((TWO, 17, 19),))
    hidden = ["committed records of test-0 from offset 17 are hidden"]
    shown = [
        f"aborted records of test-0 from offset {first} are shown to read_committed consumers"
        for _, first, _, _ in left.aborted
    ]
    assert complaints(wrong, found, start) == shown + hidden


def test_a_record_with_the_key_of_a_marker_is_no_marker() -> None:
    """`LogCleanerTest.testCleaningWithKeysConflictingWithTxnMarkerKeys`."""
    key = struct.pack(">hh", 0, builders.COMMIT)
    epoch = {"partition_leader_epoch": 5}
    raw = b"".join([
        builders.batch(0, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True, **epoch),
        builders.marker(1, producer_id=1, **epoch),
        builders.batch(2, [builders.Rec(key, b"foo")], producer_id=2, producer_epoch=0, base_sequence=0,
                       transactional=True, **epoch),
        builders.marker(3, producer_id=2, **epoch),
    ])  # fmt: skip
    batches = [one for one in iterate(raw) if isinstance(one, Batch)]
    assert [one.last_offset for one in batches] == [0, 1, 2, 3]
    assert [one.control_type for one in batches] == [None, 1, None, 1]
    found = [(run.producer_id, run.first_offset, run.marker_offset) for run in replay(batches).runs]
    assert found == [(1, 0, 1), (2, 2, 3)]


def test_an_empty_batch_keeps_the_last_offset() -> None:
    """`LogCleanerTest.testCleanSegmentsRetainingLastEmptyBatch`."""
    (left,) = iterate(builders.batch(9, 0))
    (active,) = iterate(builders.batch(10))
    assert isinstance(left, Batch)
    assert isinstance(active, Batch)
    assert (left.last_offset, left.records_count) == (active.base_offset - 1, 0)
