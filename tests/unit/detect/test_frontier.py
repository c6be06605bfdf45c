"""A cleaned coordinator log: what its history holds no more accuses nobody."""

from __future__ import annotations

from pathlib import Path

from tests import builders
from tests.unit.detect.small import Small


def _slow_marker(*, is_cleaned: bool, late_data: bool = False) -> Small:
    """Prepared at 0, marked five seconds later; a cleaner took Prepare*, or the id never prepared anything."""
    logs = Small()
    for kind, at in ((builders.EMPTY, -9_000), (builders.ONGOING, -8_000)):
        logs.state(at, kind, 1, is_cleaned=True)
    if not late_data:
        logs.write(-7_990, 1)
    logs.state(0, builders.PREPARE_COMMIT, 1, is_cleaned=True)
    logs.state(100, builders.EMPTY, 2)
    logs.transaction(3_000, 2)
    if late_data:
        logs.write(4_000, 1)
    logs.mark(5_000, 1)
    if is_cleaned:
        logs.state(5_100, builders.COMPLETE_COMMIT, 1)
    for at in range(10_000, 60_000, 5_000):
        logs.transaction(at, 1)
        logs.transaction(at + 1_000, 2)
    return logs


def test_a_slow_marker_whose_prepare_was_cleaned_away(tmp_path: Path) -> None:
    """The cleaner keeps the last record of an id: Complete*, which lies behind the last hole."""
    assert _slow_marker(is_cleaned=True).said(tmp_path) == set()


def test_a_commit_of_nobody_whose_data_came_behind_the_frontier(tmp_path: Path) -> None:
    logs = _slow_marker(is_cleaned=False, late_data=True)
    assert "marker_audit/unexpected" in logs.said(tmp_path)


def test_a_commit_of_nobody_behind_a_transaction_of_its_producer(tmp_path: Path) -> None:
    logs = _slow_marker(is_cleaned=True)
    logs.mark(61_500, 1)
    logs.transaction(70_000, 2)
    assert logs.said(tmp_path) == {"marker_audit/unexpected"}
