"""Judgements of runs: each accusation beside a twin that differs in one fact."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.replay.coverage import (
    NO_COORDINATOR,
    Tolerances,
)
from schemas.codes import TWO_PHASE_TIMEOUT_MS
from tests.unit.replay.facts import (
    CLOSED,
    COMPLETE,
    COORDINATOR,
    LATE_MS,
    NOW,
    PATIENCE_MS,
    PREPARED,
    PROMISE,
    READ,
    RUN,
    STOPPED,
    STOPPED_COORDINATOR,
    TICK_MS,
    alive,
    judged,
    owner,
    until,
)
from tests.unit.replay.histories import (
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
)

OPEN_RUNS = {
    # Nobody owns the producer id.
    "orphan": (RUN, {"owner": None}, ("orphan_producer", None, None)),
    "orphan, files of one instant": (
        RUN._replace(after_ms=None),
        {"owner": None, "partition": STOPPED, "everything": STOPPED_COORDINATOR},
        ("orphan_producer", None, None),
    ),
    "orphan, a coordinator partition is missing": (
        RUN._replace(last_ms=NOW + 5_000), {"owner": None, "everything": NO_COORDINATOR},
        ("owner_not_copied", None, None),
    ),
    "orphan, missing, and open beyond every timeout": (
        RUN._replace(last_ms=NOW + 1_200_001), {"owner": None, "everything": NO_COORDINATOR},
        ("owner_not_copied_late", None, None),
    ),
    "orphan, missing, open for just that long": (
        RUN._replace(last_ms=NOW + 1_200_000), {"owner": None, "everything": NO_COORDINATOR},
        ("owner_not_copied", None, None),
    ),
    "orphan, coordinators read not far enough": (
        RUN, {"owner": None, **until(NOW + PATIENCE_MS - 1)}, ("in_flight", None, None),
    ),
    "orphan, coordinators read just far enough": (
        RUN, {"owner": None, **until(NOW + PATIENCE_MS)}, ("orphan_producer", None, None),
    ),
    "orphan, partition read not far enough": (
        RUN, {"owner": None, "partition": READ._replace(read_until_ms=NOW + PATIENCE_MS - 1)},
        ("in_flight", None, None),
    ),
    "orphan at the very end, its partition of one instant, the coordinator not": (
        RUN._replace(after_ms=None),
        {"owner": None, "partition": STOPPED},
        ("in_flight", None, None),
    ),
    "orphan at the very end": (
        RUN._replace(after_ms=None), {"owner": None}, ("in_flight", None, None),
    ),
    "orphan, and the copy began long after": (
        RUN, {"owner": None, **until(NOW), "tolerances": Tolerances(copy_started_ms=NOW + PATIENCE_MS)},
        ("orphan_producer", None, None),
    ),
    "orphan, and the copy began at once": (
        RUN, {"owner": None, **until(NOW), "tolerances": Tolerances(copy_started_ms=NOW + 1)},
        ("in_flight", None, None),
    ),
    # Its owner knows nothing of the partition.
    "not in transaction": (RUN, {}, ("not_in_transaction", "partition_not_added", None)),
    "not in the transaction that runs": (
        RUN, {"owner": owner(state=ONGOING)}, ("not_in_transaction", "partition_not_added", None),
    ),
    "late data behind its marker": (
        RUN._replace(previous_epoch=0), {}, ("not_in_transaction", "after_completion", None),
    ),
    "in the transaction that runs": (
        RUN, {"owner": owner(state=ONGOING), "promises": [PROMISE], "coordinator": alive(NOW + 1)},
        ("open", None, None),
    ),
    "owner's partition is missing": (
        RUN._replace(last_ms=NOW), {"coordinator": NO_COORDINATOR}, ("owner_not_copied", None, None),
    ),
    "coordinator read not far enough": (RUN, until(NOW + 9), ("in_flight", None, None)),
    "coordinator's history was cut since": (
        RUN, {"coordinator": COORDINATOR._replace(frontier_ms=NOW), "owner": owner(append_ms=None)},
        ("in_flight", None, None),
    ),
    "cut, but the owner had its last word long before": (
        RUN, {"coordinator": COORDINATOR._replace(frontier_ms=NOW)},
        ("not_in_transaction", None, None),
    ),
    "cut before the run began": (
        RUN, {"coordinator": COORDINATOR._replace(frontier_ms=NOW - 1_600)},
        ("not_in_transaction", "partition_not_added", None),
    ),
    "file of the coordinator older than the data": (
        RUN._replace(min_epoch=1, max_epoch=1), {}, ("in_flight", None, None),
    ),
    # Its owner moved on.
    "epoch mismatch": (
        RUN, {"owner": owner(producer_epoch=1)}, ("epoch_mismatch", None, "after_fence"),
    ),
    "moved on, version 2, by more than the end of its own transaction": (
        RUN, {"owner": owner(producer_epoch=2, version=2)}, ("epoch_mismatch", None, "after_fence"),
    ),
    "version 2 bumps at the end of its own transaction": (
        RUN, {"owner": owner(producer_epoch=1, version=2)},
        ("not_in_transaction", "partition_not_added", None),
    ),
    "moved on to another producer id": (
        RUN, {"owner": owner(is_current=False, state=EMPTY)}, ("epoch_mismatch", None, "after_fence"),
    ),
    "moved on, files not read far enough, yet from the start": (
        RUN, {"owner": owner(producer_epoch=1), **until(NOW + 9)},
        ("epoch_mismatch", None, "after_fence"),
    ),
    "moved on, files not read far enough, history cut": (
        RUN, {"owner": owner(producer_epoch=1),
              "coordinator": COORDINATOR._replace(
                  frontier_ms=NOW - 1_600, read_until_ms=NOW + 9, settled_until_ms=NOW + 9)},
        ("in_flight", None, None),
    ),
    "expired, files not read far enough": (
        RUN, {"owner": owner(is_current=False, state=None, producer_epoch=None), **until(NOW + 9)},
        ("in_flight", None, None),
    ),
    # Decided, and no marker.
    "prepare stuck": (
        RUN, {"promises": [PREPARED], "statuses": {0: "prepare_stuck"}}, ("prepare_stuck", None, None),
    ),
    "prepared just now": (
        RUN, {"promises": [PREPARED], "statuses": {0: "in_flight"}}, ("in_flight", None, None),
    ),
    "complete, and the marker is missing": (
        RUN, {"promises": [COMPLETE], "statuses": {0: "missing"}}, ("not_in_transaction", None, None),
    ),
    "complete, the marker is missing, and its owner moved on": (
        RUN, {"promises": [COMPLETE], "statuses": {0: "missing"}, "owner": owner(producer_epoch=1)},
        ("epoch_mismatch", None, None),
    ),
    "complete, the marker is missing, and its owner expired": (
        RUN, {"promises": [COMPLETE], "statuses": {0: "missing"},
              "owner": owner(is_current=False, state=None, producer_epoch=None)},
        ("not_in_transaction", None, None),
    ),
    "complete, and the partition was read too early, its owner moved on": (
        RUN, {"promises": [COMPLETE], "statuses": {0: "in_flight"}, "owner": owner(producer_epoch=1)},
        ("in_flight", None, None),
    ),
    "complete, and the partition was read too early": (
        RUN, {"promises": [COMPLETE], "statuses": {0: "in_flight"}}, ("in_flight", None, None),
    ),
    "a transaction that has its marker owns nothing more": (
        RUN, {"promises": [COMPLETE._replace(has_marker=True)], "statuses": {0: "present"}},
        ("not_in_transaction", "partition_not_added", None),
    ),
    "the transaction of another epoch owns nothing": (
        RUN, {"promises": [PROMISE._replace(epoch=1)], "owner": owner(producer_epoch=1, state=ONGOING)},
        ("epoch_mismatch", None, "after_fence"),
    ),
    "prepared one epoch above, its beginning gone": (
        RUN, {"promises": [PREPARED._replace(epoch=1, prepare_epoch=1, added_ms=None)],
              "statuses": {0: "in_flight"}, "owner": owner(producer_epoch=1, state=PREPARE_COMMIT)},
        ("in_flight", None, None),
    ),
    "prepared one epoch above, its beginning known": (
        RUN, {"promises": [PREPARED._replace(epoch=1, prepare_epoch=1)],
              "statuses": {0: "in_flight"}, "owner": owner(producer_epoch=1, state=PREPARE_COMMIT)},
        ("epoch_mismatch", None, "after_fence"),
    ),
    # Past its deadline: 60 s timeout, 10 s abort scan, 31 s patience.
    "past deadline": (
        RUN, {"promises": [PROMISE], "coordinator": alive(NOW + 101_001 + TICK_MS)}, ("past_deadline", None, None),
    ),
    "deadline not reached": (
        RUN, {"promises": [PROMISE], "coordinator": alive(NOW + 101_000 + TICK_MS)}, ("open", None, None),
    ),
    "another coordinator epoch was alive": (
        RUN, {"promises": [PROMISE], "coordinator": alive(NOW + LATE_MS, 4)}, ("open", None, None),
    ),
    "two-phase commit has no deadline": (
        RUN, {"promises": [PROMISE._replace(timeout_ms=TWO_PHASE_TIMEOUT_MS)],
              "coordinator": alive(NOW + 10**10)}, ("open", None, None),
    ),
    "past deadline, as of before it": (
        RUN, {"promises": [PROMISE], "tolerances": Tolerances(as_of_ms=NOW + 50_000)},
        ("open", None, None),
    ),
    # History was cut, or there is nothing to judge.
    "below the partition's history": (
        RUN, {"owner": None, "partition": READ._replace(history_start_offset=11)},
        ("context", None, None),
    ),
    "at the start of the partition's history": (
        RUN, {"owner": None, "partition": READ._replace(history_start_offset=10)},
        ("orphan_producer", None, None),
    ),
    "not transactional": (
        RUN._replace(is_transactional=False, is_open=False), {"owner": None}, (None, None, None),
    ),
    "without data": (RUN._replace(first_offset=None, is_open=False), {}, (None, None, None)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN_RUNS)
def test_open_runs(name: str) -> None:
    run, facts, wanted = OPEN_RUNS[name]
    assert judged(run, **facts) == wanted


NEXT_EPOCH = COMPLETE._replace(epoch=1, prepare_epoch=1)
LOST: dict[str, Any] = {"promises": [COMPLETE, NEXT_EPOCH], "statuses": {0: "missing"}}
"""The first of two transactions never got its marker."""
CLOSED_RUNS = {
    "plain": (CLOSED, {"alignment": "aligned", "aligned": COMPLETE}, (None, None, None)),
    "two epochs in one run": (
        CLOSED._replace(max_epoch=1), {"alignment": "aligned", "aligned": NEXT_EPOCH},
        (None, None, "after_fence"),
    ),
    "closed by a transaction of a later epoch": (
        CLOSED, {"alignment": "aligned", "aligned": NEXT_EPOCH}, (None, None, "after_fence"),
    ),
    "two epochs, the first one's transaction never got its marker": (
        CLOSED._replace(max_epoch=1),
        {"alignment": "aligned", "aligned": NEXT_EPOCH, **LOST},
        (None, None, None),
    ),
    "two epochs, the first one's transaction has its marker": (
        CLOSED._replace(max_epoch=1),
        {"alignment": "aligned", "aligned": NEXT_EPOCH, **LOST, "statuses": {0: "present"}},
        (None, None, "after_fence"),
    ),
    "closed by a later epoch, the marker of its own transaction never came": (
        CLOSED, {"alignment": "aligned", "aligned": NEXT_EPOCH, **LOST},
        (None, None, None),
    ),
    "closed by a transaction whose beginning is gone": (
        CLOSED, {"alignment": "aligned", "aligned": NEXT_EPOCH._replace(added_ms=None)},
        (None, None, None),
    ),
    "closed by its own transaction's fence": (
        CLOSED._replace(marker_epoch=1),
        {"alignment": "aligned", "aligned": COMPLETE._replace(prepare_epoch=1)}, (None, None, None),
    ),
    "two epochs, below history": (
        CLOSED._replace(max_epoch=1), {"partition": READ._replace(history_start_offset=11)},
        (None, None, None),
    ),
    "aborted by hand, never added": (
        CLOSED, {"alignment": "manual_abort"}, (None, "partition_not_added", None),
    ),
    "aborted by hand, late": (
        CLOSED._replace(previous_epoch=0), {"alignment": "manual_abort"},
        (None, "after_completion", None),
    ),
    "aborted by hand in its transaction": (
        CLOSED, {"alignment": "manual_abort", "promises": [PROMISE]}, (None, None, None),
    ),
    "aborted by hand before its transaction was added": (
        CLOSED, {"alignment": "manual_abort", "promises": [PROMISE._replace(added_ms=NOW + 1_001)]},
        (None, "partition_not_added", None),
    ),
    "aborted by hand, added within the clock skew": (
        CLOSED, {"alignment": "manual_abort", "promises": [PROMISE._replace(added_ms=NOW + 1_000)]},
        (None, None, None),
    ),
    "aborted by hand, the coordinator's history was cut": (
        CLOSED, {"alignment": "manual_abort", "coordinator": COORDINATOR._replace(frontier_ms=NOW)},
        (None, None, None),
    ),
    "aborted by hand, owner unknown": (
        CLOSED, {"alignment": "manual_abort", "owner": None}, (None, None, None),
    ),
    "committed without a transaction, never added": (
        CLOSED._replace(marker_type=1), {"alignment": "unexpected"},
        (None, "partition_not_added", None),
    ),
    "committed without a transaction, between two of its producer, clocks known to 2 ms": (
        CLOSED._replace(marker_type=1, clock_low_ms=-2, clock_high_ms=2),
        {"alignment": "unexpected", "promises": [COMPLETE._replace(added_ms=NOW - 20, prepare_ms=NOW - 3),
                                                 COMPLETE._replace(added_ms=NOW + 3)]},
        (None, "partition_not_added", None),
    ),
    "committed without a transaction, between two of its producer, clocks not known": (
        CLOSED._replace(marker_type=1),
        {"alignment": "unexpected", "promises": [COMPLETE._replace(added_ms=NOW - 20, prepare_ms=NOW - 3),
                                                 COMPLETE._replace(added_ms=NOW + 3)]},
        (None, None, None),
    ),
    "committed without a transaction, inside one": (
        CLOSED._replace(marker_type=1), {"alignment": "unexpected", "promises": [PROMISE]},
        (None, None, None),
    ),
    "appended before its transaction added it": (
        CLOSED._replace(first_append_ms=NOW - 1_001, marker_ms=NOW + 100),
        {"alignment": "aligned", "aligned": COMPLETE}, (None, "swallowed", None),
    ),
    "appended by a clock that its marker shows to be behind": (
        CLOSED._replace(first_append_ms=NOW - 3_000, marker_ms=NOW - 2_900),
        {"alignment": "aligned", "aligned": COMPLETE}, (None, None, None),
    ),
    "appended within the clock skew": (
        CLOSED._replace(first_append_ms=NOW - 1_000, marker_ms=NOW + 100),
        {"alignment": "aligned", "aligned": COMPLETE}, (None, None, None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED_RUNS)
def test_closed_runs(name: str) -> None:
    run, facts, wanted = CLOSED_RUNS[name]
    assert judged(run, **facts) == wanted


def test_an_id_that_expired_was_not_fenced() -> None:
    """A tombstone says that nothing happened for a week, not that another instance began."""
    expired = owner(is_current=False, state=None, producer_epoch=None)
    assert judged(owner=expired)[2] is None
