"""Open transactions whose batches are gone: only the producer snapshot at the log end still holds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders, log_layout, pure_audit
from tests.builders import NOW_MS
from tests.unit.detect.small import HERE, STATE_TOPIC, TOPIC, Small

PRODUCER_ID = 9


def _said(root: Path, *, is_listed: bool, with_coordinator: bool = True) -> list[tuple[str, str]]:
    """DeleteRecords went up to offset 4; the snapshot holds a transaction of producer 9 open since offset 2."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY, PRODUCER_ID)
    for at in range(0, 50_000, 10_000):
        logs.transaction(at, 1)
    if is_listed:
        logs.state(5_000, builders.ONGOING, PRODUCER_ID, lists=HERE)
    log = log_layout.LogDir(root)
    log.segment(TOPIC, 0, logs.data[4:])
    log.log_starts[TOPIC, 0] = 4
    ghost = (PRODUCER_ID, 0, 0, 2, 0, NOW_MS, -1, 2)
    log.sidecar(TOPIC, 0, logs.data_end, "snapshot", log_layout.snapshot([ghost]))
    if with_coordinator:
        log.segment(STATE_TOPIC, 0, logs.states)
    log.finish()
    return [
        (row["class"], row["severity"])
        for row in pure_audit.accusations(root)
        if row["code"] == "hanging_transaction"
    ]


@pytest.mark.parametrize(
    ("is_listed", "with_coordinator", "found"),
    [
        (False, True, [("snapshot_only", "critical")]),
        (True, True, []),
        (False, False, [("snapshot_only", "info")]),
    ],
    ids=["ghost", "open-by-right", "nobody-to-ask"],
)
def test_a_transaction_that_only_a_snapshot_holds_open(
    is_listed: bool, with_coordinator: bool, found: list[tuple[str, str]], tmp_path: Path
) -> None:
    said = _said(tmp_path, is_listed=is_listed, with_coordinator=with_coordinator)
    assert said == found
