"""Markers of transactions that two coordinators had a hand in, each with its own clock."""

from __future__ import annotations

from pipeline.replay.alignment import Alignment
from tests.unit.replay.marked import aligned, marker, promise

_BEFORE = [10_000 * at for at in range(-5, 0)]
_BEHIND = [10_000 * at for at in range(1, 6)]
AFTER_FAILOVER = {"prepare_leader_epoch": 1, "complete_leader_epoch": 1}


def _around(
    markers: list[dict[str, int]], promises: list[dict[str, int]], ahead_ms: int
) -> Alignment:
    """Between transactions enough to tell the clock of either coordinator; the second one's is behind by `ahead_ms`."""
    rows = [
        *[marker(at + 4) for at in _BEFORE], *markers,
        *[marker(at + 4, coordinator_epoch=1) for at in _BEHIND],
    ]  # fmt: skip
    listed = [
        *[promise(at, at + 8) for at in _BEFORE], *promises,
        *[promise(at - ahead_ms, at + 8 - ahead_ms, **AFTER_FAILOVER) for at in _BEHIND],
    ]  # fmt: skip
    return aligned(rows, listed)


def test_a_coordinator_that_failed_over_stamps_with_two_clocks() -> None:
    """Prepare* by a coordinator whose clock is ahead of the next one's: Complete* seems to come before it.

    The marker that the next one sent is not one more of the transaction before, which was complete already.
    """
    promises = [promise(0, 260), promise(308, 234, complete_leader_epoch=1)]
    found = _around([marker(4), marker(401, coordinator_epoch=1)], promises, 167)
    assert found.promise.tolist() == list(range(12))


def test_a_resend_by_a_later_coordinator_is_of_what_was_not_complete() -> None:
    promises = [promise(0, 50), promise(100, 400, complete_leader_epoch=1)]
    markers = [marker(5), marker(105), marker(390, coordinator_epoch=1)]
    found = _around(markers, promises, 0)
    assert found.promise.tolist() == [*range(7), 6, *range(7, 12)]
