"""Late markers that another marker speaks for: the rival, and twins that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.replay.alignment import Alignment, Markers, Promises
from pipeline.replay.coverage import Tolerances
from pipeline.replay.evidence import have_rivals
from tests.unit.replay.marked import ABORT, COMMIT, columns, marker, promise

TOLERANCES = Tolerances(clock_skew_ms=1_000)


def _is_doubtful(other: dict[str, int], owner: int = -1) -> bool:
    """Whether a marker 40 s behind Complete* is in doubt beside another one."""
    rows = [other | {"offset": 0}, marker(42_000, ABORT) | {"offset": 10}]
    count: Any = np.zeros(2, np.int64)
    flags = np.zeros(2, np.bool_)
    found = Alignment(np.array([owner, 0]), flags, flags, count, count, count, count)
    promises = columns(Promises, [promise(2_000, 2_020, ABORT), promise(2_100, 2_120, ABORT)])
    at, whose, late = np.array([1]), np.array([0]), np.array([True])
    markers = columns(Markers, rows)
    return bool(have_rivals(at, whose, late, markers, promises, found, TOLERANCES)[0])


def test_a_marker_that_came_in_time_is_a_rival() -> None:
    assert _is_doubtful(marker(2_010, ABORT))


@pytest.mark.parametrize(
    "other",
    [
        marker(900, ABORT),
        marker(3_100, ABORT),
        marker(2_010, COMMIT),
        marker(2_010, ABORT, producer_id=2),
        marker(2_010, ABORT, epoch=1),
    ],
)
def test_one_that_cannot_end_the_transaction_is_none(other: dict[str, int]) -> None:
    assert not _is_doubtful(other)


def test_the_marker_of_another_transaction_is_none() -> None:
    assert not _is_doubtful(marker(2_110, ABORT), owner=1)
