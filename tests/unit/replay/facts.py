"""Plain facts of one partition and its coordinator, from which cases differ in one."""

from __future__ import annotations

from typing import Any

from pipeline.replay.alive import Alive
from pipeline.replay.coverage import (
    ALWAYS,
    NEVER,
    CoordinatorCoverage,
    PartitionCoverage,
    Tolerances,
)
from pipeline.replay.open_runs import judge_run
from pipeline.replay.ownership import OwnerState, Run
from pipeline.replay.promises import Promise
from tests.unit.replay.histories import COMPLETE_COMMIT, ONGOING, PREPARE_COMMIT

NOW = 1_795_000_000_000
ABORT, COMMIT = 0, 1
LATE_MS = 200_000
"""Well beyond grace and clock skew (31 s), timeout and abort scan (70 s)."""
PATIENCE_MS = 31_000
TOLERANCES = Tolerances()

TICK_MS = 1_000
"""A coordinator that lives writes so often: the time that passed for certain is shorter by as much."""


def living(ms: int) -> Alive:
    return Alive(ms, tuple(range(ms - 300 * TICK_MS, ms + 1, TICK_MS)))


RUN = Run(
    producer_id=1, first_offset=10, min_epoch=0, max_epoch=0, is_open=True, is_transactional=True,
    first_append_ms=None, marker_offset=None, marker_ms=None, marker_type=None, marker_epoch=None,
    before_ms=NOW - 500, after_ms=NOW, previous_epoch=None, last_ms=NOW + LATE_MS,
    clock_low_ms=-1_000, clock_high_ms=1_000,
)  # fmt: skip
CLOSED = RUN._replace(
    is_open=False, marker_offset=12, marker_ms=NOW, marker_type=ABORT, marker_epoch=0
)
PROMISE = Promise(
    transactional_id="id", transaction_offset=3, coordinator_partition=0, epoch=0, prepare_epoch=None,
    state=ONGOING, outcome=None, version=0, timeout_ms=60_000, start_ms=NOW, added_ms=NOW,
    prepare_ms=None, complete_ms=None, prepare_leader_epoch=None, has_marker=False, leader_epoch=0,
)  # fmt: skip
PREPARED = PROMISE._replace(
    state=PREPARE_COMMIT,
    prepare_epoch=0,
    outcome=COMMIT,
    prepare_ms=NOW + 50,
    prepare_leader_epoch=0,
)
COMPLETE = PREPARED._replace(state=COMPLETE_COMMIT, complete_ms=NOW + 100)
OWNER = OwnerState("id", 0, True, COMPLETE_COMMIT, 0, 0, NOW - 10_000)
READ = PartitionCoverage(0, NOW + LATE_MS, is_one_instant=False)
STOPPED = PartitionCoverage(0, ALWAYS, is_one_instant=True)
COORDINATOR = CoordinatorCoverage(
    NOW + LATE_MS, NEVER, {0: living(NOW + LATE_MS)}, True, NOW + LATE_MS
)
STOPPED_COORDINATOR = COORDINATOR._replace(read_until_ms=ALWAYS, settled_until_ms=ALWAYS)


def judged(run: Run = RUN, **given: Any) -> tuple[str | None, str | None, str | None]:
    """Judgement, outside and zombie of a run; facts that are not given are plain."""
    facts: dict[str, Any] = {
        "alignment": "none", "aligned": None, "promises": [], "owner": OWNER, "partition": READ,
        "coordinator": COORDINATOR, "everything": COORDINATOR, "statuses": {},
        "tolerances": TOLERANCES,
    }  # fmt: skip
    facts |= given
    order = ("alignment", "aligned", "promises", "owner")
    found = judge_run(run, *(facts.pop(name) for name in order), **facts)
    assert found.judgement is None or found.reason
    return found.judgement, found.outside, found.zombie


def owner(**fields: Any) -> OwnerState:
    return OWNER._replace(**fields)


def until(ms: int) -> dict[str, Any]:
    """Coordinator files that reach so far."""
    read = COORDINATOR._replace(read_until_ms=ms, settled_until_ms=ms)
    return {"coordinator": read, "everything": read}


def alive(ms: int, epoch: int = 0) -> CoordinatorCoverage:
    """A coordinator that wrote every `TICK_MS` until then."""
    return COORDINATOR._replace(alive={epoch: living(ms)})
