"""Published incidents as whole copies: the bytes in, what the audit says above `info` out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders
from tests.builders import ABORT
from tests.unit.detect.small import Small

WORKER, REPLACEMENT, OTHER = 0, 1, 2
HEALTH = {"slow_transaction/long_running", "slow_transaction/near_timeout"}
"""What lives as long as its timeout is told as minor, and accused of nothing."""
LATE_MS = 200_000
"""Beyond transaction.timeout.ms (60 s), the abort scan and the patience."""


@pytest.mark.parametrize("is_late", [False, True])
def test_a_replacement_under_another_id(is_late: bool, tmp_path: Path) -> None:
    """Worker 1 keeps its transaction open, worker 2 under another id commits the same key 238 ms later.

    Two ids that write in turn are everyday life and accuse nobody; the coordinator must end the open one in time.
    """
    logs = Small()
    for producer in (WORKER, REPLACEMENT, OTHER):
        logs.state(-5_000, builders.EMPTY, producer)
    logs.state(0, builders.ONGOING, WORKER)
    logs.write(2, WORKER)
    logs.transaction(238, REPLACEMENT)
    if is_late:
        for at in range(20_000, LATE_MS + 1, 20_000):
            logs.transaction(at, OTHER)
    wanted = {"hanging_transaction/past_deadline", "lso_pinned/pinned"} if is_late else set()
    assert logs.said(tmp_path) - HEALTH == wanted


@pytest.mark.parametrize(
    ("abort_epoch", "is_written_on", "wanted"),
    [
        (0, True, {"hanging_transaction/not_in_transaction", "lso_pinned/pinned",
                   "write_outside_transaction/after_completion"}),
        (0, False, set()),
        (1, True, {"hanging_transaction/epoch_mismatch", "lso_pinned/pinned",
                   "zombie_write/epoch_regressed"}),
        (1, False, set()),
    ],
)  # fmt: skip
def test_a_timeout_that_kept_the_epoch(
    abort_epoch: int, is_written_on: bool, wanted: set[str], tmp_path: Path
) -> None:
    """KAFKA-6119: before 1.0.1 the producer that had timed out wrote on with its epoch, and nobody ended that."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    logs.state(-4_000, builders.EMPTY, OTHER)
    logs.state(0, builders.ONGOING)
    logs.write(2)
    logs.state(70_000, builders.PREPARE_ABORT, epoch=abort_epoch)
    logs.mark(70_005, kind=ABORT, epoch=abort_epoch)
    logs.state(70_010, builders.COMPLETE_ABORT, epoch=abort_epoch)
    logs.transaction(71_000, OTHER)
    if is_written_on:
        logs.write(72_000)
    logs.transaction(73_000, OTHER)
    logs.transaction(LATE_MS, OTHER)
    assert logs.said(tmp_path) - HEALTH == wanted
