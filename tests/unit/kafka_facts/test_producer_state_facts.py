"""Facts of Kafka's own `ProducerStateManagerTest`, as tables: what a broker holds and what a leader refuses."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pipeline.replay.broker_entry import (
    BrokerEntry,
    CompletedTxn,
    KeptBatch,
    append,
    decrement_sequence,
)
from pipeline.wire.batch import MAX_SEQUENCE, Batch
from pipeline.wire.producer_snapshot import SnapshotEntry
from tests.snapshots import snapshot_entry
from tests.unit.replay.rows import ABORT, COMMIT, NOW_MS, data, marker

EPOCH, ORDER, STATE = "InvalidProducerEpoch", "OutOfOrderSequence", "InvalidTxnState"
DUPLICATE, FENCED = "DuplicateBatch", "TransactionCoordinatorFenced"


class Case(NamedTuple):
    """One case of `ProducerStateManagerTest`: batches already appended, the next, and the answer."""

    name: str
    appended: list[Batch]
    next: Batch
    refused: str | None
    is_offsets: bool = False


def plain(offset: int, sequence: int, epoch: int = 0, records: int = 1) -> Batch:
    return data(offset, sequence, epoch=epoch, records=records, transactional=False)


REFUSALS = [
    Case("testBasicIdMapping", [plain(0, 0)], plain(0, 1), None),
    Case("testBasicIdMapping", [plain(0, 0), plain(0, 1)], plain(0, 1), DUPLICATE),
    Case("testBasicIdMapping", [plain(0, 0), plain(0, 1)], plain(0, 5), ORDER),
    Case("testBasicIdMapping", [plain(0, 0), plain(0, 1)], plain(0, 0, 1), None),
    Case("testBasicIdMapping", [plain(0, 0, 1)], plain(0, 0), EPOCH),
    Case("testAppendTxnMarkerWithNoProducerState", [marker(27, epoch=2)], plain(39, 0), EPOCH),
    Case("testAppendTxnMarkerWithNoProducerState", [marker(27, epoch=2)], plain(39, 17, 2), ORDER),
    Case("testAppendTxnMarkerWithNoProducerState", [marker(27, epoch=2)], plain(39, 0, 2), None),
    Case(
        "testProducerSequenceWrapAround", [plain(735, MAX_SEQUENCE, 15)], plain(1235, 0, 15), None
    ),
    Case(
        "testProducerSequenceInvalidWrapAround",
        [plain(735, MAX_SEQUENCE, 15)],
        plain(1235, 1, 15),
        ORDER,
    ),
    Case("testNoValidationOnFirstEntryWhenLoadingLog", [], plain(735, 16, 5), None),
    Case(
        "testControlRecordBumpsProducerEpoch",
        [plain(0, 0), marker(1, ABORT, epoch=1)],
        plain(2, 0, 1),
        None,
    ),
    Case(
        "testOutOfSequenceAfterControlRecordEpochBump",
        [data(0, 0), data(1, 1), marker(2, ABORT, epoch=1)],
        data(3, 2, epoch=1),
        ORDER,
    ),
    Case(
        "testOutOfSequenceAfterControlRecordEpochBump",
        [data(0, 0), data(1, 1), marker(2, ABORT, epoch=1)],
        data(3, 2, epoch=2),
        ORDER,
    ),
    Case(
        "testOutOfSequenceAfterControlRecordEpochBump",
        [data(0, 0), data(1, 1), marker(2, ABORT, epoch=1)],
        data(3, 0, epoch=1),
        None,
    ),
    Case("testNonTransactionalAppendWithOngoingTransaction", [data(0, 0)], plain(1, 1), STATE),
    Case("testPidExpirationTimeout", [], plain(2, 1, 5), None),
    Case("testAcceptAppendWithSequenceGapsOnReplica", [plain(0, 0)], plain(1, 3), ORDER),
    Case(
        "testSequenceNotValidatedForGroupMetadataTopic",
        [data(99, -1)],
        data(100, -1),
        None,
        is_offsets=True,
    ),
    Case("testOldEpochForControlRecord", [data(99, 0, epoch=5)], marker(100, epoch=3), EPOCH),
    Case(
        "testCoordinatorFencing",
        [data(99, 0), marker(100, coordinator_epoch=1)],
        marker(101, coordinator_epoch=1),
        None,
    ),
    Case(
        "testCoordinatorFencing",
        [data(99, 0), marker(100, coordinator_epoch=1)],
        marker(102, coordinator_epoch=2),
        None,
    ),
    Case(
        "testCoordinatorFencing",
        [data(99, 0), marker(100, coordinator_epoch=2)],
        marker(103, coordinator_epoch=1),
        FENCED,
    ),
    Case(
        "testCoordinatorFencedAfterReload",
        [data(99, 0), marker(100, coordinator_epoch=1)],
        marker(101, coordinator_epoch=0),
        FENCED,
    ),
    Case("testAppendEmptyControlBatch", [], marker(15, None), None),
]


def appended(batches: list[Batch], is_offsets: bool = False) -> BrokerEntry:
    entry = BrokerEntry()
    for batch in batches:
        entry = append(entry, batch, is_offsets=is_offsets)[0]
    return entry


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.name)
def test_what_a_leader_refuses(case: Case) -> None:
    before = appended(case.appended, case.is_offsets)
    assert append(before, case.next, is_offsets=case.is_offsets)[2] == case.refused


class Held(NamedTuple):
    """One case: batches appended as a follower does, and what is held then."""

    name: str
    appended: list[Batch]
    epoch: int
    first_sequence: int
    last_sequence: int
    last_offset: int
    current_txn_first_offset: int = -1
    coordinator_epoch: int = -1


HELD = [
    Held("testAppendTxnMarkerWithNoProducerState", [marker(27, epoch=2)], 2, -1, -1, -1, -1, 0),
    Held(
        "testProducerSequenceWrapAround",
        [plain(735, MAX_SEQUENCE, 15), plain(1235, 0, 15)],
        15,
        MAX_SEQUENCE,
        0,
        1235,
    ),
    Held(
        "testProducerSequenceWithWrapAroundBatchRecord",
        [plain(2000, MAX_SEQUENCE - 10, 15, records=21)],
        15,
        MAX_SEQUENCE - 10,
        9,
        2020,
    ),
    Held("testNoValidationOnFirstEntryWhenLoadingLog", [plain(735, 16, 5)], 5, 16, 16, 735),
    Held(
        "testControlRecordBumpsProducerEpoch",
        [plain(0, 0), marker(1, ABORT, epoch=1)],
        1,
        -1,
        -1,
        -1,
        -1,
        0,
    ),
    Held("testTxnFirstOffsetMetadataCached", [data(992342, 0)], 0, 0, 0, 992342, 992342),
    Held("updateProducerTransactionState", [plain(9, 0), data(16, 1, records=5)], 0, 0, 5, 20, 16),
    Held(
        "updateProducerTransactionState",
        [plain(9, 0), data(16, 1, records=5), data(26, 6, records=5)],
        0,
        0,
        10,
        30,
        16,
    ),
    Held(
        "updateProducerTransactionState",
        [data(16, 1, records=5), data(26, 6, records=5), marker(40, coordinator_epoch=15)],
        0,
        1,
        10,
        30,
        -1,
        15,
    ),
    Held(
        "testProducerStateAfterFencingAbortMarker",
        [data(0, 0), marker(1, ABORT, epoch=1)],
        1,
        -1,
        -1,
        -1,
        -1,
        0,
    ),
    Held("testAcceptAppendWithoutProducerStateOnReplica", [plain(2, 2)], 0, 2, 2, 2),
    Held("testAcceptAppendWithSequenceGapsOnReplica", [plain(0, 0), plain(1, 3)], 0, 0, 3, 1),
    Held("testAppendEmptyControlBatch", [data(0, 0), marker(15, None)], 0, 0, 0, 0, 0),
    Held("testPrepareUpdateDoesNotMutate", [plain(n, n) for n in range(9)], 0, 4, 8, 8),
    Held("testRecoverFromSnapshotUnfinishedTransaction", [data(0, 0), data(1, 1)], 0, 0, 1, 1, 0),
    Held(
        "testRecoverFromSnapshotFinishedTransaction",
        [data(0, 0), data(1, 1), marker(2, ABORT)],
        0,
        0,
        1,
        1,
        -1,
        0,
    ),
    Held("testRecoverFromSnapshotEmptyTransaction", [marker(0, ABORT)], 0, -1, -1, -1, -1, 0),
    Held("testFirstUnstableOffset", [data(99, 0, epoch=5)], 5, 0, 0, 99, 99),
    Held(
        "testLastStableOffsetCompletedTxn",
        [data(992342, 0), marker(992414)],
        0,
        0,
        0,
        992342,
        -1,
        0,
    ),
    Held(
        "testSkipEmptyTransactions",
        [data(16, 0, records=5), marker(21), marker(22), marker(23, ABORT)],
        0,
        0,
        4,
        20,
        -1,
        0,
    ),
]


@pytest.mark.parametrize("case", HELD, ids=lambda case: case.name)
def test_what_a_broker_holds(case: Held) -> None:
    entry = appended(case.appended)
    first = entry.batches[0].first_sequence if entry.batches else -1
    last_offset = entry.batches[-1].last_offset if entry.batches else -1
    assert case[2:] == (
        entry.producer_epoch,
        first,
        entry.last_sequence,
        last_offset,
        entry.current_txn_first_offset,
        entry.coordinator_epoch,
    )


def test_append_does_not_mutate() -> None:
    """`testPrepareUpdateDoesNotMutate`."""
    before = appended([plain(15, 0, records=6)])
    copy = BrokerEntry(*before)
    after = append(before, plain(26, 6, records=5))[0]
    assert before == copy
    assert (before.last_sequence, after.last_sequence) == (5, 10)


def test_a_plain_batch_inside_a_transaction_changes_nothing() -> None:
    before = appended([data(0, 0)])
    assert append(before, plain(1, 1)) == (before, None, STATE)
    assert append(before, plain(1, 1, 1))[0] == before


def test_a_follower_takes_what_a_leader_refuses() -> None:
    entry = appended([data(0, 0, epoch=3), marker(1, epoch=3, coordinator_epoch=7)])
    lower = append(entry, data(2, 9, epoch=1))[0]
    assert (lower.producer_epoch, lower.current_txn_first_offset, len(lower.batches)) == (1, 2, 1)
    older = append(lower, marker(3, epoch=0, coordinator_epoch=5))[0]
    assert (older.producer_epoch, older.coordinator_epoch, older.batches) == (0, 5, ())


def test_only_markers_behind_data_complete_transactions() -> None:
    """`testSkipEmptyTransactions`."""
    entry = appended([data(16, 0, records=5)])
    found = []
    for batch in (
        marker(21),
        marker(22),
        marker(23, ABORT),
        data(24, 5, records=4),
        marker(28, ABORT),
        marker(29, ABORT),
        data(30, 9, records=2),
    ):
        entry, completed, _ = append(entry, batch)
        found.append(completed)
    assert [one for one in found if one] == [
        CompletedTxn(1, 16, 21, False),
        CompletedTxn(1, 24, 28, True),
    ]
    assert entry.current_txn_first_offset == 30


def test_control_batches_that_are_no_markers_change_nothing() -> None:
    entry = appended([data(0, 0)])
    for control_type in (2, 6, 99):
        other = marker(1)._replace(control_type=control_type, coordinator_epoch=None)
        assert append(entry, other) == (entry, None, None)


def test_the_last_batch_and_the_last_time_go_into_a_snapshot() -> None:
    """`testRecoverFromSnapshotFinishedTransaction`, `testRecoverFromSnapshotEmptyTransaction`."""
    entry = appended([data(0, 0), data(1, 1, records=3), marker(4, ABORT, time_ms=NOW_MS + 5)])
    assert snapshot_entry(1, entry) == SnapshotEntry(1, 0, 3, 3, 2, NOW_MS + 5, 0, -1)
    only_marker = appended([marker(0, COMMIT, coordinator_epoch=4)])
    assert snapshot_entry(1, only_marker) == SnapshotEntry(1, 0, -1, -1, 0, NOW_MS, 4, -1)
    unfinished = appended([data(0, 0), data(1, 1)])
    assert snapshot_entry(1, unfinished) == SnapshotEntry(1, 0, 1, 1, 0, NOW_MS, -1, 0)


@pytest.mark.parametrize(
    ("sequence", "decrement", "wanted"),
    [(5, 0, 5), (5, 5, 0), (0, 1, MAX_SEQUENCE), (9, 20, MAX_SEQUENCE - 10), (3, MAX_SEQUENCE, 4)],
)
def test_sequences_count_down_across_the_wrap(sequence: int, decrement: int, wanted: int) -> None:
    """`DefaultRecordBatchTest.testDecrementSequence`."""
    assert decrement_sequence(sequence, decrement) == wanted
    assert KeptBatch(sequence, 0, decrement, 0).first_sequence == wanted
