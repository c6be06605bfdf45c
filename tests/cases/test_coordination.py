"""Published incidents that need a coordinator, a group or contents: the history in, the verdict out."""

from __future__ import annotations

import pytest

from pipeline.replay.coverage import CoordinatorCoverage
from pipeline.replay.offsets import MarkerRecord, OffsetsReplay
from pipeline.replay.promises import promise_status
from pipeline.replay.repeats import Written, repeats, statements
from tests.unit.replay.facts import (
    CLOSED,
    COMPLETE,
    COORDINATOR,
    LATE_MS,
    NOW,
    PATIENCE_MS,
    PREPARED,
    READ,
    RUN,
    STOPPED,
    STOPPED_COORDINATOR,
    TOLERANCES,
    alive,
    judged,
    owner,
)
from tests.unit.replay.histories import EMPTY, ONGOING, PREPARE_COMMIT
from tests.unit.replay.test_offsets import COMMIT, commit, replay

SECOND = COMPLETE._replace(added_ms=NOW)


def test_a_delayed_produce_request_joins_the_next_transaction() -> None:
    """KIP-890, KAFKA-14561, KAFKA-14884: sequence 1 arrives behind the ABORT and the next transaction commits it.

    The case's own verdict rests on CreateTime, which the client sets; the broker's own time tells, and only there.
    """
    early = CLOSED._replace(marker_type=1, first_append_ms=NOW - 5_000)
    assert judged(early, alignment="aligned", aligned=SECOND) == (None, "swallowed", None)
    by_client = early._replace(first_append_ms=None)
    assert judged(by_client, alignment="aligned", aligned=SECOND) == (None, None, None)


def test_a_record_comes_twice_after_an_unneeded_epoch_bump() -> None:
    """Librdkafka 4953: value 77 at 15167 under epoch e and again at 15168 as sequence 0 of e + 1, one CreateTime."""
    first, again = Written(15167, 15167, 7, 3, 0, 5_000), Written(15168, 15168, 7, 4, 0, 5_000)
    (said,) = statements(0, "my-topic-0011", 12, repeats([first, again]))
    assert (said.label, said.severity, said.certainty) == ("resent", "major", "consistent_with")
    assert (said.first_offset, said.producer_id, said.producer_epoch) == (15168, 7, 4)
    same_epoch = again._replace(producer_epoch=3)
    assert list(repeats([first, same_epoch])) == []


@pytest.mark.parametrize("regular_first", [False, True])
def test_a_regular_commit_overtakes_a_pending_one(regular_first: bool) -> None:
    """KAFKA-14505, pull request 15183: the higher record wins, not the later marker; 110 stands behind 100."""
    state = OffsetsReplay()
    offsets = (102, 101) if regular_first else (101, 102)
    pending = commit(offsets[0], 100, producer=10)
    plain = commit(offsets[1], 110)
    found = []
    for record in sorted((pending, plain), key=lambda one: one.record_offset):
        found += state.commit(record)
    found += state.marker(MarkerRecord(103, 10, COMMIT, NOW, 0)) + state.end()
    outcome = {one.record.record_offset: one for one in found}
    assert outcome[plain.record_offset].outcome == "materialised"
    if regular_first:
        last = outcome[pending.record_offset]
        assert last.outcome == "materialised"
        assert last.previous is not None
        assert last.previous.committed_offset == 110
    else:
        assert outcome[pending.record_offset].outcome == "superseded"
    assert outcome[plain.record_offset].previous is None


def test_a_turn_between_plain_and_transactional_commits_is_seen() -> None:
    """The same case: two writers of one group and partition, one of them transactional."""
    found = replay(("txn", 10, 100), ("mark", 10, COMMIT), ("plain", 0, 110))
    last = found[-1]
    assert last.previous is not None
    assert (last.previous.is_transactional, last.record.is_transactional) == (True, False)


def test_a_coordinator_that_is_stuck_in_prepare_commit() -> None:
    """KAFKA-16352, KAFKA-9777: one marker was never sent, and the coordinator goes on without Complete*.

    The decision is COMMIT: the data must be committed, never aborted by hand.
    """
    assert _stuck(COORDINATOR) == ("prepare_stuck", None, None)
    just_prepared = alive(NOW + PATIENCE_MS - 1)
    assert _stuck(just_prepared) == ("in_flight", None, None)


def _stuck(coordinator: CoordinatorCoverage) -> tuple[str | None, str | None, str | None]:
    status, _ = promise_status(
        PREPARED, partition=READ, coordinator=coordinator, history_from_ms=NOW - 60_000,
        has_open_run=True, tolerances=TOLERANCES, marked_until_ms=NOW + LATE_MS,
    )  # fmt: skip
    return judged(RUN, owner=owner(state=PREPARE_COMMIT), promises=[PREPARED],
                  coordinator=coordinator, statuses={0: status})  # fmt: skip


def test_data_of_an_id_that_never_became_ongoing() -> None:
    """KAFKA-8803: the clock stepped back, Empty is the id's last state and data stand open in the partition."""
    one_instant = {"partition": STOPPED, "everything": STOPPED_COORDINATOR,
                   "coordinator": STOPPED_COORDINATOR}  # fmt: skip
    empty = owner(state=EMPTY, append_ms=NOW - LATE_MS)
    assert judged(RUN, owner=empty, **one_instant)[0] == "not_in_transaction"
    ongoing = owner(state=ONGOING)
    assert judged(RUN, owner=ongoing, promises=[COMPLETE._replace(state=ONGOING, prepare_ms=None,
                  complete_ms=None, outcome=None)], **one_instant)[0] != "not_in_transaction"  # fmt: skip
