"""Facts of Kafka's own `UnifiedLogTest`, `LogLoaderTest` and `LogSegmentTest`: a whole log with its producers."""

from __future__ import annotations

import pytest

from pipeline.replay.broker_entry import KeptBatch, decrement_sequence
from pipeline.wire.batch import MAX_SEQUENCE, Batch, increment_sequence
from pipeline.wire.segment import iterate
from tests import builders
from tests.unit.kafka_facts.partition_story import (
    DUPLICATE,
    EPOCH,
    FENCED,
    ORDER,
    Step,
    Story,
    aborts,
    copied,
    deletes,
    events,
    forgets,
    holds,
    knows,
    log_end,
    no,
    ok,
    plain,
    recovers,
    reloads,
    stable,
    starts_at,
    tell,
    truncated,
)
from tests.unit.replay.rows import ABORT, NOW_MS, data, marker

LOG, LOADER, SEGMENT = "UnifiedLogTest", "LogLoaderTest", "LogSegmentTest"


def sent(offset: int, sequence: int, epoch: int = 0, records: int = 1, of: int = 1) -> Batch:
    """Data of an idempotent producer, outside transactions."""
    return data(offset, sequence, epoch=epoch, records=records, producer_id=of, transactional=False)


def compacted(offset: int, records: int, kept: int) -> Batch:
    return data(offset, 0, records=records, kept=kept, transactional=False)


def of(producer_id: int, offset: int, sequence: int, records: int) -> Batch:
    return data(offset, sequence, producer_id=producer_id, records=records)


OPEN_TXN = [
    plain(0, 3), ok(data(3, 0, producer_id=17, epoch=10, records=2)), stable(3), reloads(), stable(3),
]  # fmt: skip
MIXED: list[Batch | Step] = [
    of(1, 0, 0, 5), plain(5, 3), of(2, 8, 0, 2), of(1, 10, 5, 4), of(3, 14, 0, 3), plain(17, 2), of(1, 19, 9, 10),
    marker(29, ABORT), of(2, 30, 2, 6), of(4, 36, 0, 3), plain(39, 10), of(3, 49, 3, 9), marker(58, producer_id=3),
    of(4, 59, 3, 8), of(2, 67, 8, 7), marker(74, ABORT, producer_id=2), plain(75, 10), of(4, 85, 11, 4),
    marker(89, producer_id=4),
]  # fmt: skip
"""Four transactions that overlap, with plain data between them."""
MIXED_FACTS = [
    aborts((1, 0, 29, 8), (2, 8, 74, 36)), stable(8, 30), stable(36, 75), stable(90, 90),
]  # fmt: skip
ACROSS_SEGMENTS = [ok(data(0, 0, records=5)), plain(5, 3), ok(data(8, 5, records=5)), stable(0)]
FROM_75 = of(10, 75, 95, 5)
IN_SEGMENT = [
    ok(of(5, 100, 100, 2)), ok(of(10, 102, 100, 2)), plain(104, 2), ok(marker(106, ABORT, producer_id=10)),
    ok(marker(107, producer_id=5)), recovers(), log_end(108),
]  # fmt: skip


def written(by: object) -> list[Step]:
    """`MIXED`, each batch appended by `ok` or `copied`."""
    append = ok if by == "leader" else copied
    return [append(one) if isinstance(one, Batch) else one for one in MIXED]


PRODUCERS = [
    Story(LOG, "testActiveProducers", [
        ok(data(0, 0, epoch=5, records=5)), holds(epoch=5, last=4, txn=0, coordinator=-1),
        ok(marker(5, epoch=5, coordinator_epoch=15)), holds(epoch=5, last=4, txn=-1, coordinator=15),
        ok(sent(6, 0, epoch=5, records=3, of=2)), holds(2, epoch=5, last=2, txn=-1, coordinator=-1),
    ]),
    Story(LOG, "testUpdateProducerIdMapWithCompactedData",
          [copied(compacted(23, 4, 2)), knows(1), holds(last=3)]),
    Story(LOG, "testRebuildProducerIdMapWithCompactedData",
          [copied(compacted(23, 4, 2)), plain(27, 2), truncated(27), knows(1), holds(last=3)]),
    Story(LOG, "testRebuildProducerStateWithEmptyCompactedBatch",
          [copied(compacted(23, 2, 0)), plain(25, 2), truncated(25), knows(1), holds(last=1)]),
    Story(LOG, "testProducerIdMapTruncateToWithNoSnapshots",
          [ok(sent(0, 0)), ok(sent(1, 1)), truncated(1), knows(1), holds(last=0)]),
    Story(LOG, "testDuplicateAppends", [
        *(ok(sent(n, n)) for n in range(6)), ok(sent(6, 6, records=3)), no(DUPLICATE, sent(9, 6, records=3)),
        no(ORDER, sent(9, 7, records=2)), no(DUPLICATE, sent(9, 2)), no(ORDER, sent(9, 1)), ok(sent(9, 9)),
        no(DUPLICATE, sent(10, 9)),
    ]),
    # A follower takes them; that a leader did is what the audit says of such a log.
    Story(LOG, "testDuplicateAppendToFollower", [
        copied(sent(0, 0, records=2)), copied(sent(2, 0, records=2)), log_end(4), events(("exact", 2)),
    ]),
    Story(LOG, "testMultipleProducersWithDuplicatesInSingleAppend", [
        copied(sent(0, 0), sent(1, 0, of=2), sent(2, 1), sent(3, 1, of=2), sent(4, 1)), log_end(5),
        events(("exact", 4)),
    ]),
    Story(LOG, "testOldProducerEpoch", [ok(sent(0, 0, epoch=1)), no(EPOCH, sent(1, 0))]),
    Story(LOG, "testAllowNonZeroSequenceOnFirstAppendNonZeroEpoch", [ok(data(0, 3, epoch=1, records=2))]),
    Story(LOADER, "testLoadProducersAfterDeleteRecordsMidSegment", [
        ok(sent(0, 0)), ok(sent(1, 0, of=2)), knows(1, 2), holds(2, last=0), recovers(), knows(1, 2),
        holds(2, last=0),
    ]),
    Story(LOADER, "testLoadProducersAfterDeleteRecordsOnSegment", [
        ok(sent(0, 0)), ok(sent(1, 0, of=2)), deletes(1), knows(1, 2), holds(2, last=0), recovers(), knows(2),
        holds(2, last=0),
    ]),
]  # fmt: skip

COORDINATORS = [
    Story(LOG, "testZombieCoordinatorFenced", [
        ok(data(0, 0, records=10)), ok(marker(10, ABORT, coordinator_epoch=1)), ok(data(11, 10, records=5)),
        ok(marker(16, coordinator_epoch=2)), no(FENCED, marker(17, ABORT, coordinator_epoch=1)),
    ]),
    Story(LOG, "testZombieCoordinatorFencedEmptyTransaction", [
        copied(data(0, 0, records=10), marker(10)), ok(marker(11, ABORT, coordinator_epoch=2)),
        ok(marker(12, ABORT, coordinator_epoch=2)), no(FENCED, marker(13, ABORT, coordinator_epoch=1)),
    ]),
    Story(LOG, "testEndTxnWithFencedProducerEpoch", [
        ok(marker(0, ABORT, epoch=5, coordinator_epoch=1)),
        no(EPOCH, marker(1, ABORT, epoch=4, coordinator_epoch=1)),
    ]),
    Story(LOADER, "testRecoverAfterNonMonotonicCoordinatorEpochWrite", [
        ok(marker(0, ABORT, coordinator_epoch=5)), holds(time_ms=NOW_MS), forgets(), knows(),
        ok(marker(1, ABORT, coordinator_epoch=4, time_ms=NOW_MS + 86_400_000)), recovers(),
        holds(time_ms=NOW_MS + 86_400_000),
    ]),
]  # fmt: skip

STABLE = [
    Story(LOG, "testTruncateBelowFirstUnstableOffset", [*OPEN_TXN, truncated(0), stable(0), knows()]),
    Story(LOG, "testLastStableOffsetDoesNotExceedLogStartOffsetMidSegment",
          [*ACROSS_SEGMENTS, starts_at(5), stable(5, 13)]),
    Story(LOG, "testLastStableOffsetDoesNotExceedLogStartOffsetAfterSegmentDeletion",
          [*ACROSS_SEGMENTS, starts_at(8), stable(8, 13), deletes(8), stable(8, 13)]),
    Story(LOG, "testFetchUpToLastStableOffset", [
        ok(of(1, 0, 0, 5)), plain(5, 3), ok(of(2, 8, 0, 2)), ok(of(1, 10, 5, 4)), plain(14, 2),
        ok(of(1, 16, 9, 10)), stable(0, 0), stable(0, 26), ok(marker(26)), stable(0, 26), stable(8, 27),
        ok(marker(27, ABORT, producer_id=2)), stable(8, 27), stable(28, 28),
    ]),
    Story(LOG, "testFirstUnstableOffsetNoTransactionalData", [plain(0, 3), stable(3)]),
    Story(LOG, "testFirstUnstableOffsetWithTransactionalData", [
        ok(data(0, 0, epoch=5, records=3)), stable(0, 3), ok(data(3, 3, epoch=5)), stable(0, 4),
        ok(marker(4, epoch=5)), stable(0, 4), stable(5, 5),
    ]),
    Story(LOG, "testLastStableOffsetWithMixedProducerData", [
        ok(of(137, 0, 0, 3)), stable(0), plain(3, 3), ok(of(983, 6, 0, 3)), stable(0, 9),
        ok(marker(9, ABORT, producer_id=137)), stable(6, 10), ok(marker(10, producer_id=983)), stable(11, 11),
    ]),
    Story(LOG, "testRebuildTransactionalState", [
        ok(data(0, 0, epoch=5, records=3)), ok(marker(3, ABORT, epoch=5)), stable(4, 4), recovers(), stable(4, 4),
    ]),
]  # fmt: skip

INDEXES = [
    Story(LOG, "testTransactionIndexUpdated", [*written("leader"), *MIXED_FACTS]),
    Story(LOG, "testTransactionIndexUpdatedThroughReplication", [*written("follower"), *MIXED_FACTS]),
    Story(LOG, "testAbortedTransactionSpanningMultipleSegments", [
        ok(of(137, 0, 0, 3)), stable(0, 3), ok(of(137, 3, 3, 3)), stable(0, 6),
        ok(marker(6, ABORT, producer_id=137)), stable(7, 7), aborts((137, 0, 6, 7)),
    ]),
    Story(LOADER, "testFullTransactionIndexRecovery", [*written("leader"), recovers(), MIXED_FACTS[0]]),
    Story(SEGMENT, "testRecoverTransactionIndex", [*IN_SEGMENT, aborts((10, 102, 106, 100))]),
    Story(SEGMENT, "testRecoverTransactionIndex", [ok(FROM_75), *IN_SEGMENT, aborts((10, 75, 106, 100))]),
]  # fmt: skip
STORIES = [*PRODUCERS, *COORDINATORS, *STABLE, *INDEXES]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: f"{story.of}.{story.name}")
def test_log(story: Story) -> None:
    tell(story)


def test_producer_ids_of_one_append() -> None:
    """`UnifiedLogTest.testMultipleProducerIdsPerMemoryRecord`."""
    wanted = [(1, 0, 0), (2, 1, 0), (3, 2, 0), (4, 3, 0)]
    raw = b"".join(
        builders.batch(offset, producer_id=pid, producer_epoch=0, base_sequence=sequence)
        for pid, offset, sequence in wanted
    )
    found = [one for one in iterate(raw) if isinstance(one, Batch)]
    assert [(one.producer_id, one.base_offset, one.base_sequence) for one in found] == wanted


@pytest.mark.parametrize(
    ("sequence", "decrement", "wanted"),
    [(5, 0, 5), (5, 5, 0), (0, 1, MAX_SEQUENCE), (9, 20, MAX_SEQUENCE - 10), (3, MAX_SEQUENCE, 4)],
)
def test_sequences_count_down_across_the_wrap(sequence: int, decrement: int, wanted: int) -> None:
    """`DefaultRecordBatchTest.testDecrementSequence`."""
    assert decrement_sequence(sequence, decrement) == wanted
    assert KeptBatch(sequence, 0, decrement, 0).first_sequence == wanted


@pytest.mark.parametrize(
    ("sequence", "increment", "wanted"),
    [(5, 5, 10), (MAX_SEQUENCE, 1, 0), (MAX_SEQUENCE - 5, 10, 4)],
)
def test_sequences_count_up_across_the_wrap(sequence: int, increment: int, wanted: int) -> None:
    """`DefaultRecordBatchTest.testIncrementSequence`."""
    assert increment_sequence(sequence, increment) == wanted
