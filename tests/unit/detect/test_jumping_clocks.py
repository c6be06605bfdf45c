"""Clocks that are set right before a running broker's file is copied, retries of markers, and faults beside them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pipeline.config import Config
from tests import builders, pure_audit
from tests.unit.detect.jumping_clocks import life
from tests.unit.detect.small import Small
from tests.unit.detect.two_clocks import life as two_clocks

ONE = Config(transaction_state_partitions=1)


@pytest.mark.parametrize("seed", range(40))
def test_a_clock_that_jumps_before_the_copy_accuses_nobody(seed: int, tmp_path: Path) -> None:
    life(random.Random(seed), tmp_path)
    found = [one for one in pure_audit.accusations(tmp_path, ONE) if one["severity"] != "info"]
    assert found == []


@pytest.mark.parametrize("seed", [0, 1, 4, 7, 9])
def test_a_marker_that_is_missing_is_found_by_order(seed: int, tmp_path: Path) -> None:
    life(random.Random(seed), tmp_path, lacks_marker=True)
    found = {(one["code"], one["class"]) for one in pure_audit.accusations(tmp_path, ONE)}
    assert ("marker_audit", "missing") in found


@pytest.mark.parametrize(
    ("after_ms", "has_data", "wanted"),
    [
        (200, False, set()),
        (900, False, set()),
        (2_500, False, {"marker_audit/unexpected"}),
        (200, True, {"marker_audit/unexpected", "write_outside_transaction/after_completion"}),
    ],
    ids=["retry", "slow retry", "too late for one", "it ends data"],
)
def test_a_commit_right_behind_its_like_is_a_retry(
    after_ms: int, has_data: bool, wanted: set[str], tmp_path: Path
) -> None:
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    for at in range(0, 60_000, 5_000):
        logs.transaction(at)
        if at == 30_000:
            if has_data:
                logs.write(at + 100)
            logs.mark(at + 20 + after_ms)
    assert logs.said(tmp_path) == wanted


@pytest.mark.parametrize("gap_ms", [61_000, 300_000, 3_600_000])
@pytest.mark.parametrize("periods", [1, 2])
def test_clockwork_commits_hide_no_clock_that_is_periods_off(
    periods: int, gap_ms: int, tmp_path: Path
) -> None:
    """A cron job, and a broker in another time zone."""
    two_clocks(tmp_path, lambda now: periods * gap_ms, gap_ms=(gap_ms, gap_ms), count=60)
    assert pure_audit.accusations(tmp_path) == []
