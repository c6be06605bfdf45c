"""An operator's ABORT beside transactions that were committed: it is nobody's marker, and no marker sent again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import Config
from tests import builders, pure_audit
from tests.builders import ABORT
from tests.unit.detect.small import Small

VERSION_2 = {"version": 1, "client_transaction_version": 2}


def _told(logs: Small, root: Path) -> set[str]:
    logs.write_to(root)
    return {f"{one['code']}/{one['class']}" for one in pure_audit.accusations(root)}


def _bumped(logs: Small, at: int, epoch: int) -> None:
    """A transaction of version 2: its marker has the next epoch."""
    logs.state(at, builders.ONGOING, epoch=epoch, **VERSION_2)
    logs.write(at + 2, epoch=epoch)
    logs.state(at + 10, builders.PREPARE_COMMIT, epoch=epoch + 1, **VERSION_2)
    logs.mark(at + 15, epoch=epoch + 1)
    logs.state(at + 20, builders.COMPLETE_COMMIT, epoch=epoch + 1, **VERSION_2)


@pytest.mark.parametrize("after_ms", [100, 800, 5_000])
@pytest.mark.parametrize("has_own", [True, False])
def test_one_that_ends_nothing_is_no_marker_of_a_commit(
    after_ms: int, has_own: bool, tmp_path: Path
) -> None:
    """Alone with its coordinator epoch, nothing tells its clock; a commit that lacks its own marker lacks it still."""
    logs = Small()
    logs.state(-90_000, builders.EMPTY)
    logs.state(-90_000, builders.EMPTY, 2)
    logs.transaction(-60_000)
    logs.state(0, builders.ONGOING)
    logs.state(10, builders.PREPARE_COMMIT)
    if has_own:
        logs.mark(15)
    logs.state(20, builders.COMPLETE_COMMIT)
    logs.mark(20 + after_ms, kind=ABORT, coordinator_epoch=1)
    logs.transaction(90_000, 2)
    wanted = {"manual_abort/manual_abort"} | (set() if has_own else {"marker_audit/missing"})
    assert _told(logs, tmp_path) == wanted


@pytest.mark.parametrize("is_late", [False, True])
def test_under_version_2_it_bears_the_epoch_of_the_marker_before(
    is_late: bool, tmp_path: Path
) -> None:
    """Late data bear it as well: no transaction held them, and the ABORT behind them is no marker sent again."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY, version=1)
    _bumped(logs, 0, 0)
    if is_late:
        logs.write(2_000, epoch=1)
    logs.mark(2_500, kind=ABORT, epoch=1)
    for number in range(1, 4):
        _bumped(logs, 20_000 * number, number)
    late = {"write_outside_transaction/after_completion"} if is_late else set()
    assert _told(logs, tmp_path) - {"version_inferred/broker_version"} == {
        "manual_abort/manual_abort", *late
    }  # fmt: skip


def test_a_marker_that_was_sent_again_is_told_as_that(tmp_path: Path) -> None:
    logs = Small()
    logs.state(-5_000, builders.EMPTY, version=1)
    _bumped(logs, 0, 0)
    logs.mark(500, epoch=1)
    for number in range(1, 4):
        _bumped(logs, 20_000 * number, number)
    logs.write_to(tmp_path)
    runs = pure_audit.replayed(pure_audit.read(tmp_path, Config())).runs
    assert [run["alignment"] for run in runs] == ["aligned", "resent", *["aligned"] * 3]
