"""Copies in several passes that removed nothing: partitions that their broker held no more when it stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders, log_layout, pure_audit
from tests.unit.detect.small import STATE_TOPIC, TOPIC, Small


@pytest.mark.parametrize("is_held", [False, True], ids=["deleted-since", "held"])
def test_a_partition_that_its_broker_does_not_name_is_of_an_earlier_pass(
    is_held: bool, tmp_path: Path
) -> None:
    logs = Small()
    logs.state(-5_000, builders.EMPTY, 1)
    for at in range(0, 60_000, 5_000):
        logs.transaction(at, 1)
    log = log_layout.LogDir(tmp_path)
    # Two transactions are later, and one ends later.
    log.segment(TOPIC, 0, logs.data[:-5])
    log.segment(STATE_TOPIC, 0, logs.states)
    log.segment("payments", 0, [builders.batch()])
    if not is_held:
        del log.log_ends[TOPIC, 0]
    log.finish()
    said = {one["class"] for one in pure_audit.accusations(tmp_path) if one["severity"] != "info"}
    assert said == ({"missing", "not_in_transaction", "pinned"} if is_held else set())
