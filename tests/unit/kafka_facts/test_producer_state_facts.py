"""Facts of Kafka's own `ProducerStateManagerTest`: what a leader answers, what brokers hold, how far is read.

Not re-expressed, because the audit has no such thing: when snapshot files are taken, kept and deleted, and the state
of a transaction's verification.
"""

from __future__ import annotations

import pytest

from pipeline.replay.broker_entry import BrokerEntry, CompletedTxn, append
from pipeline.wire.batch import MAX_SEQUENCE, Batch
from pipeline.wire.producer_snapshot import SnapshotEntry
from tests.snapshots import snapshot_entry
from tests.unit.kafka_facts.partition_story import (
    DUPLICATE,
    EPOCH,
    FENCED,
    ORDER,
    STATE,
    Story,
    copied,
    ends,
    forgets,
    holds,
    knows,
    log_end,
    no,
    ok,
    prepares,
    reloads,
    stable,
    tell,
    truncated,
)
from tests.unit.replay.rows import ABORT, COMMIT, NOW_MS, data, marker

OF = "ProducerStateManagerTest"


def sent(offset: int, sequence: int, epoch: int = 0, records: int = 1, of: int = 1) -> Batch:
    """Data of an idempotent producer, outside transactions."""
    return data(offset, sequence, epoch=epoch, records=records, producer_id=of, transactional=False)


SEQUENCES = [
    # The state alone calls a repeated batch out of order; the log has looked for duplicates before it is asked.
    Story(OF, "testBasicIdMapping", [
        ok(sent(0, 0)), ok(sent(1, 1)), no(DUPLICATE, sent(2, 1)), no(ORDER, sent(2, 5)),
        ok(sent(3, 0, epoch=1)), no(EPOCH, sent(4, 0)),
    ]),
    Story(OF, "testAppendTxnMarkerWithNoProducerState", [
        ok(marker(27, epoch=2)), holds(epoch=2, last=-1), no(EPOCH, sent(28, 0)),
        no(ORDER, sent(28, 17, epoch=2)), ok(sent(39, 0, epoch=2)), holds(epoch=2, last=0),
    ]),
    Story(OF, "testProducerSequenceWrapAround", [
        copied(sent(735, MAX_SEQUENCE, epoch=15)), ok(sent(1235, 0, epoch=15)),
        holds(epoch=15, first=MAX_SEQUENCE, last=0),
    ]),
    Story(OF, "testProducerSequenceWithWrapAroundBatchRecord", [
        copied(sent(2000, MAX_SEQUENCE - 10, epoch=15, records=21)),
        holds(first=MAX_SEQUENCE - 10, last=9, first_offset=2000, last_offset=2020),
    ]),
    Story(OF, "testProducerSequenceInvalidWrapAround", [
        copied(sent(735, MAX_SEQUENCE, epoch=15)), no(ORDER, sent(1235, 1, epoch=15)),
    ]),
    Story(OF, "testNoValidationOnFirstEntryWhenLoadingLog", [
        copied(sent(735, 16, epoch=5)),
        holds(epoch=5, first=16, last=16, first_offset=735, last_offset=735),
    ]),
    Story(OF, "testControlRecordBumpsProducerEpoch", [
        ok(sent(0, 0)), ok(marker(1, ABORT, epoch=1)), holds(epoch=1, txn=-1, first=-1, last=-1),
        ok(sent(2, 0, epoch=1)), holds(first=0),
    ]),
    Story(OF, "testOutOfSequenceAfterControlRecordEpochBump", [
        ok(data(0, 0)), ok(data(1, 1)), ok(marker(2, ABORT, epoch=1)), no(ORDER, data(3, 2, epoch=1)),
        no(ORDER, data(3, 2, epoch=2)), ok(data(3, 0, epoch=1)), holds(epoch=1, last=0),
    ]),
    Story(OF, "testNonTransactionalAppendWithOngoingTransaction",
          [ok(data(0, 0)), no(STATE, sent(1, 1))]),
    Story(OF, "testPidExpirationTimeout", [
        ok(sent(1, 0, epoch=5)), forgets(), ok(sent(2, 1, epoch=5)), knows(1), holds(last=1), log_end(3),
    ]),
    Story(OF, "testRemoveExpiredPidsOnReload", [
        ok(sent(0, 0)), ok(sent(1, 1)), reloads(), forgets(), ok(sent(2, 2)), knows(1), holds(last=2),
        log_end(3),
    ]),
    Story(OF, "testAcceptAppendWithoutProducerStateOnReplica", [
        ok(sent(0, 0)), ok(sent(1, 1)), reloads(), forgets(), knows(), copied(sent(2, 2)), knows(1),
        holds(epoch=0, first=2, last=2),
    ]),
    Story(OF, "testAcceptAppendWithSequenceGapsOnReplica", [
        ok(sent(0, 0)), no(ORDER, sent(1, 3)), holds(last=0), copied(sent(1, 3)), holds(last=3),
    ]),
    Story(OF, "testSequenceNotValidatedForGroupMetadataTopic",
          [ok(data(99, -1)), ok(data(100, -1))], is_offsets=True),
    Story(OF, "testPrepareUpdateDoesNotMutate", [
        prepares(sent(15, 0, records=6), last=5), knows(), ok(sent(15, 0, records=6)), knows(1),
        prepares(sent(26, 6, records=5), last=10), holds(first=0, last=5, last_offset=20),
        ok(sent(26, 6, records=5)), holds(first=0, last=10, last_offset=30),
    ]),
]  # fmt: skip

MARKERS = [
    Story(OF, "testOldEpochForControlRecord",
          [ok(data(99, 0, epoch=5)), no(EPOCH, marker(100, epoch=3))]),
    Story(OF, "testCoordinatorFencing", [
        ok(data(99, 0, epoch=5)), ok(marker(100, epoch=5, coordinator_epoch=1)), holds(coordinator=1),
        ok(marker(101, epoch=5, coordinator_epoch=1)), ok(marker(102, epoch=5, coordinator_epoch=2)),
        no(FENCED, marker(103, epoch=5, coordinator_epoch=1)),
    ]),
    Story(OF, "testCoordinatorFencedAfterReload", [
        ok(data(99, 0)), ok(marker(100, coordinator_epoch=1)), reloads(),
        no(FENCED, marker(101, coordinator_epoch=0)),
    ]),
    Story(OF, "testAppendEmptyControlBatch", [ok(marker(15, None, producer_id=23423)), holds(23423, txn=-1)]),
    Story(OF, "testProducerStateAfterFencingAbortMarker", [
        ok(data(0, 0)), ok(marker(1, ABORT, epoch=1)),
        holds(epoch=1, txn=-1, first_offset=-1, last_offset=-1),
    ]),
    Story(OF, "updateProducerTransactionState", [
        ok(sent(9, 0)), ok(data(16, 1, records=5)), holds(epoch=0, last=5, last_offset=20, txn=16),
        ok(data(26, 6, records=5)), holds(last=10, last_offset=30, txn=16),
        ok(marker(40, coordinator_epoch=15)), ends(CompletedTxn(1, 16, 40, False)),
        holds(epoch=0, last=10, last_offset=30, txn=-1, coordinator=15),
    ]),
]  # fmt: skip

SNAPSHOTS = [
    Story(OF, "testRecoverFromSnapshotUnfinishedTransaction", [
        ok(data(0, 0)), ok(data(1, 1)), reloads(),
        holds(first=1, last=1, first_offset=1, last_offset=1, txn=0), ok(data(2, 2)),
    ]),
    Story(OF, "testRecoverFromSnapshotFinishedTransaction", [
        ok(data(0, 0)), ok(data(1, 1)), ok(marker(2, ABORT)), reloads(),
        holds(first=1, last=1, first_offset=1, last_offset=1, txn=-1),
    ]),
    Story(OF, "testRecoverFromSnapshotEmptyTransaction", [
        ok(marker(0, ABORT, time_ms=NOW_MS + 7)), reloads(), holds(time_ms=NOW_MS + 7, txn=-1),
    ]),
    Story(OF, "testLoadFromSnapshotRetainsNonExpiredProducers", [
        ok(sent(0, 0)), ok(sent(1, 0, of=2)), reloads(), knows(1, 2), holds(1, last=0, last_offset=0),
        holds(2, last=0, last_offset=1),
    ]),
]  # fmt: skip

FIRST, SECOND, THIRD = 992342, 992367, 992399
STABLE = [
    Story(OF, "testFirstUnstableOffset", [
        stable(0), ok(data(99, 0, epoch=5)), stable(99), stable(99, 100),
        ok(data(105, 0, epoch=5, producer_id=2)), stable(99), stable(99, 106),
        ok(marker(109, epoch=5)), stable(105), stable(99, 109), stable(99, 100), stable(105, 110),
        ok(marker(112, ABORT, epoch=5, producer_id=2)), stable(113), stable(105, 112), stable(113, 113),
    ]),
    Story(OF, "testFirstUnstableOffsetAfterTruncation", [
        ok(data(99, 0)), stable(99), ok(marker(105)), stable(106, 106), ok(sent(106, 1)),
        truncated(106), stable(106), truncated(100), stable(99), holds(txn=99),
    ]),
    Story(OF, "testLastStableOffsetCompletedTxn", [
        ok(data(FIRST, 0)), ok(data(SECOND, 0, producer_id=2)), ok(data(THIRD, 0, producer_id=3)),
        ok(marker(THIRD + 15)), stable(SECOND), stable(SECOND, THIRD + 16),
        ok(marker(THIRD + 35, producer_id=3)), stable(SECOND), stable(SECOND, THIRD + 36),
        ok(marker(THIRD + 113, producer_id=2)), stable(THIRD + 114), stable(THIRD + 114, THIRD + 114),
    ]),
    Story(OF, "testSkipEmptyTransactions", [
        ok(data(16, 0, records=5)), stable(16, 21),
        ok(marker(21), marker(22), marker(23, ABORT), data(24, 5, records=4), marker(28, ABORT)),
        ok(marker(29, ABORT), data(30, 9, records=2)),
        ends(CompletedTxn(1, 16, 21, False), CompletedTxn(1, 24, 28, True)), holds(txn=30), stable(30, 32),
    ]),
    Story(OF, "the first offset of an open transaction", [ok(data(FIRST, 0)), stable(FIRST)]),
]  # fmt: skip
STORIES = [*SEQUENCES, *MARKERS, *SNAPSHOTS, *STABLE]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_producer_state(story: Story) -> None:
    tell(story)


def test_append_does_not_mutate() -> None:
    before = tell(Story(OF, "one batch", [ok(sent(15, 0, records=6))])).held[1]
    copy = BrokerEntry(*before)
    after = append(before, sent(26, 6, records=5))[0]
    assert before == copy
    assert (before.last_sequence, after.last_sequence) == (5, 10)


def test_only_the_last_five_batches_are_kept() -> None:
    story = Story(OF, "nine batches", [ok(sent(n, n)) for n in range(9)])
    holds(first=4, last=8, first_offset=4, last_offset=8)(tell(story))


def test_a_plain_batch_inside_a_transaction_changes_nothing() -> None:
    before = tell(Story(OF, "an open one", [ok(data(0, 0))])).held[1]
    assert append(before, sent(1, 1)) == (before, None, STATE)
    assert append(before, sent(1, 1, epoch=1))[0] == before


def test_a_follower_takes_what_a_leader_refuses() -> None:
    entry = BrokerEntry()
    for batch in (data(0, 0, epoch=3), marker(1, epoch=3, coordinator_epoch=7)):
        entry = append(entry, batch)[0]
    lower = append(entry, data(2, 9, epoch=1))[0]
    assert (lower.producer_epoch, lower.current_txn_first_offset, len(lower.batches)) == (1, 2, 1)
    older = append(lower, marker(3, epoch=0, coordinator_epoch=5))[0]
    assert (older.producer_epoch, older.coordinator_epoch, older.batches) == (0, 5, ())


def test_control_batches_that_are_no_markers_change_nothing() -> None:
    entry = append(BrokerEntry(), data(0, 0))[0]
    for control_type in (2, 6, 99):
        other = marker(1)._replace(control_type=control_type, coordinator_epoch=None)
        assert append(entry, other) == (entry, None, None)


def test_the_last_batch_and_the_last_time_go_into_a_snapshot() -> None:
    entry = BrokerEntry()
    for batch in (data(0, 0), data(1, 1, records=3), marker(4, ABORT, time_ms=NOW_MS + 5)):
        entry = append(entry, batch)[0]
    assert snapshot_entry(1, entry) == SnapshotEntry(1, 0, 3, 3, 2, NOW_MS + 5, 0, -1)
    only_marker = append(BrokerEntry(), marker(0, COMMIT, coordinator_epoch=4))[0]
    assert snapshot_entry(1, only_marker) == SnapshotEntry(1, 0, -1, -1, 0, NOW_MS, 4, -1)
