"""Each broker was stopped cleanly and copied, one after the other: their files are of different moments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders
from tests.unit.detect.small import Small

MINUTE = 60_000


def _minutes() -> tuple[Small, int, int]:
    """Ten minutes of commits by two producers, the second from the third minute on; sizes after two of them."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY, 1)
    data = states = 0
    for at in range(0, 10 * MINUTE, 5_000):
        if at == 2 * MINUTE:
            data, states = len(logs.data), len(logs.states)
        if at == 3 * MINUTE:
            logs.state(at - 10, builders.EMPTY, 2)
        logs.transaction(at, 1)
        if at >= 3 * MINUTE:
            logs.transaction(at + 500, 2)
    return logs, data, states


@pytest.mark.parametrize("is_first", ["data", "states"])
def test_a_broker_that_was_copied_minutes_earlier_accuses_nobody(
    is_first: str, tmp_path: Path
) -> None:
    logs, data, states = _minutes()
    logs.write(10 * MINUTE, 2)
    sizes = {"data": data} if is_first == "data" else {"states": states}
    assert logs.said(tmp_path, **sizes) == set()


def test_brokers_that_stopped_together_prove_what_is_missing(tmp_path: Path) -> None:
    logs, _, _ = _minutes()
    logs.write(10 * MINUTE, 3)
    assert "hanging_transaction/orphan_producer" in logs.said(tmp_path)


def test_a_transaction_without_its_marker_is_missing_it(tmp_path: Path) -> None:
    logs, _, _ = _minutes()
    at = 10 * MINUTE
    for later, kind in (
        (0, builders.ONGOING),
        (10, builders.PREPARE_COMMIT),
        (20, builders.COMPLETE_COMMIT),
    ):
        logs.state(at + later, kind, 2)
    logs.transaction(at + 5_000, 1)
    assert "marker_audit/missing" in logs.said(tmp_path)
