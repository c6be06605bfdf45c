"""Facts of Kafka's own tests of both group coordinators, as a table, and what the replay never does."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.replay.offsets import CommitRecord, Committed, MarkerRecord, OffsetsReplay
from tests.unit.replay.rows import ABORT, COMMIT, NOW_MS, commit, end

Event = CommitRecord | MarkerRecord
PRODUCER, OTHER = 1000, 1001


class Case(NamedTuple):
    """Events in offset order; partition -> committed offset, and producer -> pending partitions, behind them."""

    name: str
    events: list[Event]
    committed: dict[int, int]
    pending: dict[int, set[int]] = {}  # noqa: RUF012 - never changed, and a tuple has no class attributes


def txn(offset: int, value: int, partition: int = 0, producer_id: int = PRODUCER) -> CommitRecord:
    return commit(offset, value, partition=partition, producer_id=producer_id)


OLD_COORDINATOR = [
    Case(
        "testLoadOffsetsWithoutGroup",
        [commit(15, 23), commit(16, 455, partition=1)],
        {0: 23, 1: 455},
    ),
    Case(
        "testLoadTransactionalOffsetsWithoutGroup",
        [txn(0, 23), txn(1, 455, 1), end(2, producer_id=PRODUCER)],
        {0: 23, 1: 455},
    ),
    Case(
        "testDoNotLoadAbortedTransactionalOffsetCommits",
        [txn(0, 23), txn(1, 455, 1), end(2, ABORT, producer_id=PRODUCER)],
        {},
    ),
    Case(
        "testGroupLoadedWithPendingCommits",
        [txn(0, 23), txn(1, 455, 1)],
        {},
        {PRODUCER: {0, 1}},
    ),
    Case(
        "testLoadWithCommittedAndAbortedTransactionalOffsetCommits",
        [
            txn(0, 231, 2),
            end(1, ABORT, producer_id=PRODUCER),
            txn(2, 23),
            end(3, COMMIT, producer_id=PRODUCER),
        ],
        {0: 23},
    ),
    Case(
        "testLoadWithCommittedAndAbortedAndPendingTransactionalOffsetCommits",
        [
            txn(0, 23),
            end(1, producer_id=PRODUCER),
            txn(2, 4551, 3),
            end(3, ABORT, producer_id=PRODUCER),
            txn(4, 2312, 3),
            txn(5, 45512, 4),
        ],
        {0: 23},
        {PRODUCER: {3, 4}},
    ),
    Case(
        "testLoadTransactionalOffsetCommitsFromMultipleProducers",
        [
            txn(0, 23),
            end(1, producer_id=PRODUCER),
            txn(2, 231, 2, OTHER),
            end(3, producer_id=OTHER),
        ],
        {0: 23, 2: 231},
    ),
    Case(
        "testGroupLoadWithConsumerAndTransactionalOffsetCommitsConsumerWins",
        [txn(0, 23), commit(1, 24), end(2, producer_id=PRODUCER)],
        {0: 24},
    ),
    Case(
        "testGroupLoadWithConsumerAndTransactionalOffsetCommitsTransactionWins",
        [commit(0, 24), txn(1, 23), end(2, producer_id=PRODUCER)],
        {0: 23},
    ),
    Case(
        "testLoadOffsetsWithEmptyControlBatch",
        [end(15, None, producer_id=PRODUCER), commit(16, 23), commit(17, 455, partition=1)],
        {0: 23, 1: 455},
    ),
    Case(
        "testLoadEmptyGroupWithOffsets",
        [commit(15, 23), commit(16, 455, partition=1), commit(17, 8992, partition=2)],
        {0: 23, 1: 455, 2: 8992},
    ),
    Case(
        "testLoadGroupAndOffsetsFromDifferentSegments",
        [commit(15, 23), commit(16, 455, partition=1), commit(17, 24)],
        {0: 24, 1: 455},
    ),
    Case("testCommitOffset", [commit(0, 37)], {0: 37}),
    Case(
        "testLoadOffsetsWithTombstones",
        [commit(15, 23), commit(16, 455, partition=1), commit(17, None)],
        {1: 455},
    ),
    Case(
        "testTransactionalCommitOffsetCommitted",
        [txn(0, 37), end(1, producer_id=PRODUCER)],
        {0: 37},
    ),
    Case(
        "testTransactionalCommitOffsetAborted",
        [txn(0, 37), end(1, ABORT, producer_id=PRODUCER)],
        {},
    ),
]
NEW_COORDINATOR = [
    Case("testReplay", [commit(0, 100), commit(1, 200), commit(2, 300)], {0: 300}),
    Case(
        "testTransactionalReplay",
        [txn(0, 100, 0, 5), txn(1, 101, 1, 5), txn(2, 200, 0, 6), commit(3, 300, partition=2)],
        {2: 300},
        {5: {0, 1}, 6: {0}},
    ),
    Case(
        "testReplayWithTombstoneAndPendingTransactionalOffsets",
        [txn(0, 100, 0, 10), txn(1, 100, 1, 10), commit(2, None), commit(3, None, partition=1)],
        {},
        {10: set()},
    ),
    Case(
        "testFetchOffsetsWithPendingTransactionalOffsets",
        [
            commit(0, 100),
            commit(1, 110, partition=1),
            commit(2, 200, partition=2),
            txn(3, 111, 1, 10),
            txn(4, 201, 2, 10),
            txn(5, 211, 3, 10),
        ],
        {0: 100, 1: 110, 2: 200},
        {10: {1, 2, 3}},
    ),
    Case(
        "testCleanupExpiredOffsetsWithPendingTransactionalOffsets",
        [commit(0, 100), txn(1, 101, 0, 10)],
        {0: 100},
        {10: {0}},
    ),
    Case(
        "testConsumerGroupOffsetDeleteWithPendingTransactionalOffsets",
        [txn(0, 100, 0, 10), commit(1, None), end(2, producer_id=10)],
        {},
    ),
    Case(
        "testReplayTransactionEndMarkerWithCommit",
        [
            commit(0, 99),
            txn(1, 100, 0, 5),
            end(2, COMMIT, producer_id=6),
            end(3, COMMIT, producer_id=5),
            txn(4, 101, 0, 5),
            end(5, ABORT, producer_id=5),
        ],
        {0: 100},
    ),
    Case(
        "testReplayTransactionEndMarkerKeepsTheMostRecentCommittedOffset",
        [
            txn(0, 100, 0, 5),
            commit(1, 101),
            end(2, COMMIT, producer_id=5),
        ],
        {0: 101},
    ),
]


def play(events: list[Event]) -> tuple[OffsetsReplay, list[Committed]]:
    state, decided = OffsetsReplay(), []
    for event in events:
        is_commit = isinstance(event, CommitRecord)
        decided += state.commit(event) if is_commit else state.marker(event)
    return state, decided


@pytest.mark.parametrize("case", OLD_COORDINATOR + NEW_COORDINATOR, ids=lambda case: case.name)
def test_what_is_committed_and_what_waits(case: Case) -> None:
    state, _ = play(case.events)
    found = {key[2]: record.committed_offset for key, record in state.materialised.items()}
    waiting = {pid: {key[2] for key in held} for pid, held in state.pending.items()}
    assert (found, waiting) == (case.committed, case.pending)


def races(events: list[Event]) -> list[tuple[int | None, bool]]:
    state, decided = play(events)
    return [(one.race_ms, one.is_before_marker) for one in decided + state.end()]


def test_a_marker_sent_again_is_no_bypass() -> None:
    """A coordinator that takes over sends markers again, while the next transaction is under way."""
    first = end(1, producer_id=PRODUCER, time_ms=NOW_MS)
    again = end(2, producer_id=PRODUCER, time_ms=NOW_MS + 50)
    behind_first = commit(
        3, 8, producer_id=PRODUCER, requested_ms=NOW_MS + 10, append_ms=NOW_MS + 60
    )
    before_first = behind_first._replace(commit_timestamp_ms=NOW_MS - 1)
    assert races([txn(0, 7), first, again, behind_first])[-1] == (10, False)
    assert races([txn(0, 7), first, again, before_first])[-1] == (10, True)


def test_each_transaction_has_a_first_marker_of_its_own() -> None:
    events = [
        txn(0, 7),
        end(1, producer_id=PRODUCER, time_ms=NOW_MS),
        commit(2, 8, producer_id=PRODUCER, requested_ms=NOW_MS + 1, append_ms=NOW_MS + 2),
        end(3, producer_id=PRODUCER, time_ms=NOW_MS + 9),
        commit(4, 9, producer_id=PRODUCER, requested_ms=NOW_MS + 8, append_ms=NOW_MS + 12),
    ]
    assert races(events) == [(None, False), (2, False), (3, True)]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["plain", "transactional", "marker"]),
        st.sampled_from([0, 1]),
        st.sampled_from([5, 6]),
        st.none() | st.integers(0, 3),
    ),
    max_size=30,
)


@given(EVENTS)
def test_each_record_is_decided_once_and_the_last_decision_holds(
    drawn: list[tuple[str, int, int, int | None]],
) -> None:
    events: list[Event] = []
    for offset, (what, partition, producer_id, value) in enumerate(drawn):
        if what == "marker":
            events.append(end(offset, value, producer_id=producer_id))
        else:
            owner = producer_id if what == "transactional" else None
            events.append(commit(offset, value, partition=partition, producer_id=owner))
    state, decided = play(events)
    decided += state.end()
    records = [event for event in events if isinstance(event, CommitRecord)]
    assert sorted(one.record for one in decided) == records
    held: dict[int, CommitRecord] = {}
    for one in decided:
        if one.outcome == "materialised":
            held[one.record.partition] = one.record
        elif one.outcome == "deleted" and one.record.committed_offset is None:
            held.pop(one.record.partition, None)
    assert held == {key[2]: record for key, record in state.materialised.items()}
