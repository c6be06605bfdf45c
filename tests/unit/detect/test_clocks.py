"""Clocks of two brokers that are not one: rounding, drift, steps, jumps; and a fault that no clock explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders, pure_audit
from tests.unit.detect.small import Small
from tests.unit.detect.two_clocks import CLOCKS, life


def _said(root: Path) -> list[tuple[str, str]]:
    return [(row["code"], row["class"]) for row in pure_audit.accusations(root)]


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("latency_ms", [(0.2, 1), (1, 5)], ids=["fast", "slow"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_clock_accuses_nobody(
    clock: str, latency_ms: tuple[float, float], version: int, tmp_path: Path
) -> None:
    life(tmp_path, CLOCKS[clock], version=version, latency_ms=latency_ms)
    assert _said(tmp_path) == []


@pytest.mark.parametrize("clock", ["half-a-millisecond", "drift", "ntp-step"])
def test_a_marker_of_nobody_is_found_by_clocks_that_move(clock: str, tmp_path: Path) -> None:
    life(tmp_path, CLOCKS[clock], stray_at=40)
    assert _said(tmp_path) == [("marker_audit", "unexpected")]


def test_dense_transactions_on_clocks_half_a_millisecond_apart(tmp_path: Path) -> None:
    life(tmp_path, lambda now: 0.5, gap_ms=(1, 60), latency_ms=(0.2, 1), count=400)
    assert _said(tmp_path) == []


@pytest.mark.parametrize("step_ms", [-420, 90])
@pytest.mark.parametrize("gap_ms", [(100, 400), (1_000, 1_000), (5_000, 20_000)], ids=str)
@pytest.mark.parametrize("left", [2, 3, 58])
def test_a_step_at_an_end_of_the_log(
    left: int, gap_ms: tuple[int, int], step_ms: int, tmp_path: Path
) -> None:
    """Few markers before it or behind it: too few to bear out what the clock was."""
    at_ms = (60 - left) * (sum(gap_ms) / 2 + 40)
    life(
        tmp_path / "step",
        lambda now: step_ms if now > at_ms else 0,
        gap_ms=gap_ms,
        latency_ms=(5, 40),
        count=60,
    )
    assert _said(tmp_path / "step") == []


@pytest.mark.parametrize("ahead_ms", [-3_010, 1_015, 3_010])
@pytest.mark.parametrize("gap_ms", [(100, 100), (1_000, 1_000), (2_990, 3_010)], ids=str)
def test_regular_commits_hide_no_clock_that_is_seconds_off(
    gap_ms: tuple[int, int], ahead_ms: int, tmp_path: Path
) -> None:
    life(tmp_path, lambda now: ahead_ms, gap_ms=gap_ms, count=60)
    assert _said(tmp_path) == []


@pytest.mark.parametrize("gap_ms", [61_000, 300_000, 3_600_000])
@pytest.mark.parametrize("periods", [-2, -1, 1, 2])
def test_clockwork_commits_hide_no_clock_that_is_periods_off(
    periods: int, gap_ms: int, tmp_path: Path
) -> None:
    """A cron job, and a broker in another time zone."""
    life(tmp_path, lambda now: periods * gap_ms, gap_ms=(gap_ms, gap_ms), count=60)
    assert _said(tmp_path) == []


@pytest.mark.parametrize("gap_ms", [61_000, 300_000, 3_600_000])
def test_a_marker_of_nobody_is_found_among_clockwork_commits(gap_ms: int, tmp_path: Path) -> None:
    life(tmp_path, lambda now: 0, gap_ms=(gap_ms, gap_ms), count=60, stray_at=40)
    assert _said(tmp_path) == [("marker_audit", "unexpected")]


@pytest.mark.parametrize("stray_at", [300, 500, 710])
def test_a_marker_of_nobody_is_found_among_a_thousand(stray_at: int, tmp_path: Path) -> None:
    """Not every marker votes on the clock; a misfit that has no vote would make every clock look better than it."""
    life(tmp_path, lambda now: 0, gap_ms=(5_000, 5_000), count=1_000, stray_at=stray_at)
    assert _said(tmp_path) == [("marker_audit", "unexpected")]


def test_clocks_beyond_tolerance_are_told_not_judged(tmp_path: Path) -> None:
    """They must not look clean either: `marker_audit`/`other_clock` counts these markers."""
    life(tmp_path, CLOCKS["ahead-beyond-tolerance"])
    one = pure_audit.replayed(pure_audit.read(tmp_path, pure_audit.Config()))
    assert {run["alignment"] for run in one.runs} == {"other_clock"}
    assert {promise["status"] for promise in one.promises} == {"ambiguous"}


@pytest.mark.parametrize("jump_ms", [0, 3_600_000])
def test_a_clock_that_was_put_back_reads_no_file_further_than_it_goes(
    jump_ms: int, tmp_path: Path
) -> None:
    """The coordinator was copied before a producer came; for seconds all clocks had been an hour ahead."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    for at in range(0, 90_000, 5_000):
        if at == 30_000:
            logs.transaction(at + jump_ms)
        elif at == 45_000:
            copied = len(logs.states)
        elif at == 60_000:
            logs.write(at, 7)
        else:
            logs.transaction(at)
    assert logs.said(tmp_path, states=copied, is_clean=False) == set()


SYMPTOMS = ("lso_pinned", "slow_transaction")
LIVES = {
    "ongoing": "hanging_transaction/past_deadline",
    "prepared": "hanging_transaction/prepare_stuck",
    "marked": "coordinator_state/prepare_with_all_markers",
}


@pytest.mark.parametrize("jumps", [False, True], ids=["waited", "jumped"])
@pytest.mark.parametrize("left", LIVES)
def test_a_clock_that_jumped_is_no_time_that_passed(left: str, jumps: bool, tmp_path: Path) -> None:
    """Three minutes of a coordinator that lived, or five seconds and a clock that was put three minutes ahead."""
    logs, passed = Small(), 180_000
    logs.state(-70_000, builders.EMPTY)
    logs.state(-70_000, builders.EMPTY, 7)
    for at in range(-60_000, 0, 5_000):
        logs.transaction(at)
    logs.state(0, builders.ONGOING, 7)
    logs.write(2, 7)
    if left != "ongoing":
        logs.state(10, builders.PREPARE_COMMIT, 7)
    if left == "marked":
        logs.mark(12, 7)
    for at in range(1_000, 6_000 if jumps else passed, 1_000):
        logs.transaction(at + (passed if jumps and at > 3_000 else 0))
    said = {
        one for one in logs.said(tmp_path, is_clean=False) if one.partition("/")[0] not in SYMPTOMS
    }
    assert said == (set() if jumps else {LIVES[left]})
