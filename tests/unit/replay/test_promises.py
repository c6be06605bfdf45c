"""Judgements of promises and of markers without one: accusations beside innocent twins."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.replay.coverage import (
    ALWAYS,
    NEVER,
    NO_COORDINATOR,
    NOT_COPIED,
    Tolerances,
)
from pipeline.replay.ownership import ALIGNMENTS, is_evidence, judge_unaligned
from pipeline.replay.promises import Marked, promise_status
from tests.unit.replay.facts import (
    ABORT,
    COMMIT,
    COMPLETE,
    COORDINATOR,
    LATE_MS,
    NOW,
    PATIENCE_MS,
    PREPARED,
    PROMISE,
    READ,
    STOPPED,
    TICK_MS,
    TOLERANCES,
    alive,
    living,
)
from tests.unit.replay.histories import (
    COMPLETE_ABORT,
    PREPARE_ABORT,
)

BEFORE = NOW - 60_000
ENDED = COMPLETE._replace(complete_offset=12, complete_leader_epoch=0)
LIVED = living(NOW + LATE_MS)
STATUSES = {
    "present": (COMPLETE._replace(has_marker=True), {}, "present"),
    "ongoing": (PROMISE, {}, "ongoing"),
    "not copied": (COMPLETE, {"partition": NOT_COPIED}, "not_copied"),
    "missing": (COMPLETE, {}, "missing"),
    "missing in files of one instant": (COMPLETE, {"partition": STOPPED}, "missing"),
    "partition read not far enough": (
        COMPLETE, {"partition": READ._replace(read_until_ms=NOW + 100 + PATIENCE_MS - 1)},
        "in_flight",
    ),
    "partition read just far enough": (
        COMPLETE, {"partition": READ._replace(read_until_ms=NOW + 100 + PATIENCE_MS)}, "missing",
    ),
    "only its leader's clock says so": (ENDED, {"marked_until_ms": NOW + 100}, "in_flight"),
    "its coordinator's clock was put back": (
        ENDED, {"coordinator": COORDINATOR._replace(alive={0: LIVED._replace(is_put_back=True)})},
        "in_flight",
    ),
    "the marker of a later decision came": (
        ENDED, {"partition": READ._replace(read_until_ms=NOW), "marked": Marked(13, NOW)}, "missing",
    ),
    "the marker of one decided before it was complete came": (
        ENDED, {"partition": READ._replace(read_until_ms=NOW), "marked": Marked(11, NOW)}, "in_flight",
    ),
    "copy began long after": (
        COMPLETE, {"partition": READ._replace(read_until_ms=NOW),
                   "tolerances": Tolerances(copy_started_ms=NOW + 100 + PATIENCE_MS)}, "missing",
    ),
    "nothing shows that the partition was there": (
        COMPLETE, {"history_from_ms": NOW - 1_000}, "context",
    ),
    "something shows that it was there": (COMPLETE, {"history_from_ms": NOW - 1_001}, "missing"),
    "an earlier one that was kept shows that it was there": (
        COMPLETE, {"history_from_ms": NOW - 1_000, "kept_ms": NOW - 1}, "missing",
    ),
    "one that ended when it began shows nothing": (
        COMPLETE, {"history_from_ms": NOW - 1_000, "kept_ms": NOW}, "context",
    ),
    "open data show nothing of a complete one": (
        COMPLETE, {"history_from_ms": ALWAYS, "has_open_run": True}, "context",
    ),
    "no time of its start": (COMPLETE._replace(added_ms=None, prepare_ms=None), {}, "context"),
    "a marker fits it and another": (COMPLETE._replace(has_ambiguous=True), {}, "ambiguous"),
    "a marker fits it and another, prepared": (
        PREPARED._replace(has_ambiguous=True), {"coordinator": alive(NOW + LATE_MS)}, "ambiguous",
    ),
    "prepare stuck": (
        PREPARED, {"coordinator": alive(NOW + 50 + PATIENCE_MS + TICK_MS + 1)}, "prepare_stuck",
    ),
    "prepared, and the partition was copied before its marker could come": (
        PREPARED, {"coordinator": alive(NOW + LATE_MS),
                   "partition": READ._replace(read_until_ms=NOW + 50 + PATIENCE_MS - 1)}, "in_flight",
    ),
    "prepared, and the partition was read just far enough": (
        PREPARED, {"coordinator": alive(NOW + LATE_MS),
                   "partition": READ._replace(read_until_ms=NOW + 50 + PATIENCE_MS)}, "prepare_stuck",
    ),
    "prepared, and the marker of a decision came that its coordinator made much later": (
        PREPARED, {"coordinator": alive(NOW + LATE_MS), "partition": READ._replace(read_until_ms=NOW),
                   "marked": Marked(90, NOW + LATE_MS)}, "prepare_stuck",
    ),
    "prepared, and the copy began long after": (
        PREPARED, {"coordinator": alive(NOW + LATE_MS), "partition": READ._replace(read_until_ms=NOW),
                   "tolerances": Tolerances(copy_started_ms=NOW + 50 + PATIENCE_MS)}, "prepare_stuck",
    ),
    "prepared, and its broker died": (
        PREPARED, {"coordinator": alive(NOW + LATE_MS),
                   "partition": READ._replace(read_until_ms=NOW, is_crash_image=True)}, "prepare_stuck",
    ),
    "prepared just now": (PREPARED, {"coordinator": alive(NOW + 50 + PATIENCE_MS + TICK_MS)}, "in_flight"),
    "abort prepared, stuck": (
        PREPARED._replace(state=PREPARE_ABORT, outcome=ABORT), {"coordinator": alive(NOW + LATE_MS)},
        "prepare_stuck",
    ),
    "prepared, and no time of the coordinator": (
        PREPARED, {"coordinator": COORDINATOR._replace(alive={})}, "in_flight",
    ),
    "abort complete, missing": (
        COMPLETE._replace(state=COMPLETE_ABORT, outcome=ABORT), {}, "missing",
    ),
    "complete, at a time that nobody wrote": (COMPLETE._replace(complete_ms=None), {}, "in_flight"),
}  # fmt: skip


@pytest.mark.parametrize("name", STATUSES)
def test_promises(name: str) -> None:
    promise, facts, wanted = STATUSES[name]
    plain: dict[str, Any] = {
        "partition": READ, "coordinator": COORDINATOR, "history_from_ms": BEFORE,
        "has_open_run": False, "tolerances": TOLERANCES, "marked_until_ms": NOW + LATE_MS,
    }  # fmt: skip
    assert promise_status(promise, **(plain | facts))[0] == wanted


def test_a_stopped_cluster_waits_for_nobody() -> None:
    """Prepare*, a stop of an hour, and a coordinator that has just come back."""
    back = COORDINATOR._replace(alive={0: living(NOW + 60), 2: living(NOW + 3_600_000)})
    status, _ = promise_status(
        PREPARED, partition=READ, coordinator=back, history_from_ms=BEFORE, has_open_run=False,
        tolerances=TOLERANCES,
    )  # fmt: skip
    assert status == "in_flight"


TAKEN = COMPLETE._replace(has_marker=True)
LATER = COMPLETE._replace(added_ms=NOW - 500, prepare_ms=NOW + 2_000, complete_ms=NOW + 2_010)
UNALIGNED = {
    "aborted by hand": ((NOW, ABORT, 0), {}, "manual_abort"),
    "commit of nothing": ((NOW, COMMIT, 0), {}, "unexpected"),
    "not readable": ((NOW, None, 0), {}, "unreadable"),
    "of a type that does not exist": ((NOW, 7, 0), {}, "unreadable"),
    "without a time": ((None, COMMIT, 0), {}, "unreadable"),
    "below history": ((NOW, COMMIT, 0), {"is_below_history": True}, "context"),
    "coordinator not copied": ((NOW, COMMIT, 0), {"coordinator": NO_COORDINATOR}, "not_copied"),
    "later than the coordinator's file": (
        (NOW, COMMIT, 0), {"coordinator": COORDINATOR._replace(read_until_ms=NOW + 1_000)}, "in_flight",
    ),
    "just inside the coordinator's file": (
        (NOW, COMMIT, 0), {"coordinator": COORDINATOR._replace(read_until_ms=NOW + 1_001)}, "unexpected",
    ),
    "earlier than the coordinator's history": (
        (NOW, COMMIT, 0), {"coordinator": COORDINATOR._replace(frontier_ms=NOW - 999)}, "context",
    ),
    "just inside the coordinator's history": (
        (NOW, COMMIT, 0), {"coordinator": COORDINATOR._replace(frontier_ms=NOW - 1_001)}, "unexpected",
    ),
    "its Prepare* may be older than the coordinator's history": (
        (NOW, COMMIT, 0),
        {"coordinator": COORDINATOR._replace(frontier_ms=NOW - 5_000), "before_ms": NOW - 4_000}, "context",
    ),
    "its data are younger than the coordinator's history": (
        (NOW, COMMIT, 0),
        {"coordinator": COORDINATOR._replace(frontier_ms=NOW - 5_000), "before_ms": NOW - 3_999}, "unexpected",
    ),
    "its producer's transaction is younger than the coordinator's history": (
        (NOW + 5_000, COMMIT, 0),
        {"coordinator": COORDINATOR._replace(frontier_ms=NOW - 5_000), "before_ms": None, "promises": [TAKEN]},
        "unexpected",
    ),
    "abort inside a transaction that was committed": ((NOW, ABORT, 0), {"promises": [LATER]}, "torn"),
    "commit inside a transaction that was aborted": (
        (NOW, COMMIT, 0), {"promises": [LATER._replace(outcome=ABORT)]}, "torn",
    ),
    "abort inside a transaction that was aborted": (
        (NOW, ABORT, 0), {"promises": [LATER._replace(outcome=ABORT)]}, "manual_abort",
    ),
    "commit long before it was decided": ((NOW, COMMIT, 0), {"promises": [LATER]}, "unexpected"),
    "abort inside one that is still running": (
        (NOW, ABORT, 0), {"promises": [PROMISE]}, "manual_abort",
    ),
    "abort at the moment it was added": (
        (NOW - 500, ABORT, 0),
        {"promises": [LATER]},
        "torn",
    ),
    "abort that its clock may have put into it": (
        (NOW - 500, ABORT, 0), {"promises": [LATER], "ahead_ms": (0, 1)}, "manual_abort",
    ),
    "abort that ended no records": (
        (NOW - 500, ABORT, 0), {"promises": [LATER], "has_data": False}, "manual_abort",
    ),
    "abort before it was added": ((NOW - 501, ABORT, 0), {"promises": [LATER]}, "manual_abort"),
    "abort behind its decision": (
        (NOW + 2_000, ABORT, 0),
        {"promises": [LATER._replace(has_marker=True)]},
        "manual_abort",
    ),
    "abort of another epoch inside it": ((NOW, ABORT, 5), {"promises": [LATER]}, "manual_abort"),
    "commit after it was declared complete": (
        (NOW + 5_000, COMMIT, 0), {"promises": [COMPLETE]}, "early_completion",
    ),
    "commit after it was declared complete, history from just before": (
        (NOW + 5_000, COMMIT, 0), {"promises": [COMPLETE], "whole_from_ms": NOW + 50 - 1_001},
        "early_completion",
    ),
    "commit after it was declared complete, its marker may have been cut away": (
        (NOW + 5_000, COMMIT, 0), {"promises": [COMPLETE], "whole_from_ms": NOW + 50 - 1_000},
        "unexpected",
    ),
    "a second commit after it was declared complete": (
        (NOW + 5_000, COMMIT, 0), {"promises": [TAKEN]}, "unexpected",
    ),
    "commit after it was declared complete, of which another marker may be": (
        (NOW + 5_000, COMMIT, 0), {"promises": [COMPLETE._replace(has_ambiguous=True)]}, "unexpected",
    ),
    "commit of another epoch after it": (
        (NOW + 5_000, COMMIT, 1), {"promises": [COMPLETE]}, "unexpected",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNALIGNED)
def test_markers_without_a_transaction(name: str) -> None:
    marker, facts, wanted = UNALIGNED[name]
    plain: dict[str, Any] = {
        "promises": [], "coordinator": COORDINATOR, "is_below_history": False,
        "has_data": True, "before_ms": NOW, "ahead_ms": (0, 0), "whole_from_ms": NEVER, "tolerances": TOLERANCES,
    }  # fmt: skip
    assert judge_unaligned(*marker, **(plain | facts)) == wanted
    assert wanted in ALIGNMENTS


@pytest.mark.parametrize(
    ("at", "read", "wanted"),
    [
        (0, True, True),
        (0, False, False),
        (LATE_MS - 1_000, True, False),
        (LATE_MS - 1_001, True, True),
    ],
)
def test_evidence_needs_the_file_that_would_hold_it(at: int, read: bool, wanted: bool) -> None:
    assert is_evidence(NOW + at, COORDINATOR._replace(is_read=read), TOLERANCES) is wanted
