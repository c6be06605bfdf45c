"""transaction.version is taken back while a producer runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders
from tests.unit.detect.small import Small

VERSION_2 = {"version": 1, "client_transaction_version": 2}


@pytest.mark.parametrize("is_lost", [False, True])
def test_transactions_that_go_on_with_the_last_epoch(is_lost: bool, tmp_path: Path) -> None:
    """Version 2 ends a transaction with the epoch that the next one has; without it nothing is bumped."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    for number in range(10):
        at, epoch, version = 5_000 * number, min(number, 5), VERSION_2 if number < 5 else {}
        end = min(number + 1, 5)
        logs.state(at, builders.ONGOING, epoch=epoch, **version)
        logs.write(at + 2, epoch=epoch)
        logs.state(at + 10, builders.PREPARE_COMMIT, epoch=end, **version)
        if not (is_lost and number == 9):
            logs.mark(at + 15, epoch=end)
        logs.state(at + 20, builders.COMPLETE_COMMIT, epoch=end, **version)
    if is_lost:
        logs.transaction(100_000, 2)
    found = logs.said(tmp_path)
    assert ("marker_audit/missing" in found) if is_lost else found == set()


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("is_torn", [False, True])
def test_a_client_goes_on_as_under_version_2(
    is_commit: bool, is_torn: bool, tmp_path: Path
) -> None:
    """Taken back to 0 in the middle of the fourth transaction; the client hears of it when it connects anew."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    prepare = builders.PREPARE_COMMIT if is_commit else builders.PREPARE_ABORT
    complete = builders.COMPLETE_COMMIT if is_commit else builders.COMPLETE_ABORT
    for number in range(10):
        at, end = 5_000 * number, number + 1
        logs.state(at, builders.ONGOING, epoch=number, **(VERSION_2 if number <= 3 else {}))
        logs.write(at + 2, epoch=number)
        logs.state(at + 10, prepare, epoch=end, **(VERSION_2 if number < 3 else {}))
        kind = int(is_commit) ^ (is_torn and number == 7)
        logs.mark(at + 15, kind=kind, epoch=end)
        logs.state(at + 20, complete, epoch=end, **(VERSION_2 if number < 3 else {}))
    assert logs.said(tmp_path) == ({"marker_audit/wrong_outcome"} if is_torn else set())
