"""Brokers that were stopped and copied while others of their cluster, which led, went on.

Followers fetch each partition at its own pace: the files of one broker end milliseconds apart. On real clusters
(three brokers under traffic, one stopped and copied alone) some high watermark lay below its log's end each time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders
from tests.unit.detect.small import Small

LAST = 60_000


def _minute() -> Small:
    """A minute of commits, the last one 20 ms before the end of both logs."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY, 1)
    for at in range(0, LAST, 5_000):
        logs.transaction(at, 1)
    return logs


@pytest.mark.parametrize("lacks", ["marker", "ongoing"])
def test_a_follower_that_lags_in_one_partition_accuses_nobody(lacks: str, tmp_path: Path) -> None:
    logs = _minute()
    cut = {"data": len(logs.data) - 1}
    if lacks == "ongoing":
        logs.write(LAST, 1)
        cut = {}
    assert logs.said(tmp_path, unacknowledged=1, **cut) == set()


@pytest.mark.parametrize("lacks", ["marker", "ongoing"])
def test_the_same_on_brokers_that_stopped_last_is_proof(lacks: str, tmp_path: Path) -> None:
    logs = _minute()
    if lacks == "ongoing":
        logs.write(LAST, 1)
        assert "hanging_transaction/not_in_transaction" in logs.said(tmp_path)
    else:
        assert "marker_audit/missing" in logs.said(tmp_path, data=len(logs.data) - 1)
