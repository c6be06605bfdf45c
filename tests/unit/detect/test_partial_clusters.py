"""One broker of several was copied, and its first partitions of `__transaction_state` look like all."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.codes import TWO_PHASE_TIMEOUT_MS
from tests import builders, log_layout, pure_audit
from tests.unit.detect.small import STATE_TOPIC, TOPIC, Small


@pytest.mark.parametrize(
    ("others", "found"),
    [((0, 3), set()), ((0, 1), {"orphan_producer"})],
    ids=["partitions-elsewhere", "all-here"],
)
def test_an_owner_may_be_on_a_broker_that_was_not_copied(
    others: tuple[int, ...], found: set[str], tmp_path: Path
) -> None:
    """`__transaction_state` of three partitions on three brokers: one holds partition 0 alone."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    for at in range(0, 200_000, 5_000):
        logs.transaction(at)
        if at == 50_000:
            logs.write(at + 100, 7)
    log = log_layout.LogDir(tmp_path)
    log.segment(TOPIC, 0, logs.data)
    log.segment(STATE_TOPIC, 0, logs.states)
    for partition in others:
        log.segment("payments", partition, [builders.batch()])
    log.finish()
    said = pure_audit.accusations(tmp_path)
    assert {one["class"] for one in said if one["code"] == "hanging_transaction"} == found


@pytest.mark.parametrize(
    ("timeout_ms", "severity"),
    [(60_000, {"major"}), (3_600_000, set()), (TWO_PHASE_TIMEOUT_MS, set())],
    ids=["a-minute", "an-hour", "two-phase"],
)
def test_brokers_allow_what_they_granted_another(
    timeout_ms: int, severity: set[str], tmp_path: Path
) -> None:
    """Open for 25 minutes, its owner not copied: late by the default maximum, not by what a coordinator allowed."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY, timeout_ms=timeout_ms)
    for at in range(0, 1_500_000, 5_000):
        logs.transaction(at)
        if at == 0:
            logs.write(at + 100, 7)
    log = log_layout.LogDir(tmp_path)
    log.segment(TOPIC, 0, logs.data)
    log.segment(STATE_TOPIC, 0, logs.states)
    log.segment("payments", 1, [builders.batch()])
    log.finish()
    said = pure_audit.accusations(tmp_path)
    late = [one for one in said if one["class"] == "owner_not_copied"]
    assert {one["severity"] for one in late} == severity
