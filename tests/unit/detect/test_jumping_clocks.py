"""Clocks that are set right before a running broker's file is copied, and faults beside them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pipeline.config import Config
from tests import builders, pure_audit
from tests.unit.detect.jumping_clocks import life
from tests.unit.detect.small import Small

ONE = Config(transaction_state_partitions=1)


@pytest.mark.parametrize("seed", [*range(36), 56])
def test_a_clock_that_jumps_before_the_copy_accuses_nobody(seed: int, tmp_path: Path) -> None:
    life(random.Random(seed), tmp_path)
    found = [one for one in pure_audit.accusations(tmp_path, ONE) if one["severity"] != "info"]
    assert found == []


@pytest.mark.parametrize("seed", [0, 1, 4, 7, 9])
def test_a_marker_that_is_missing_is_found_by_order(seed: int, tmp_path: Path) -> None:
    life(random.Random(seed), tmp_path, lacks_marker=True)
    found = {(one["code"], one["class"]) for one in pure_audit.accusations(tmp_path, ONE)}
    assert ("marker_audit", "missing") in found


@pytest.mark.parametrize(
    ("is_clean", "is_overtaken", "wanted"),
    [
        (True, False, {"marker_audit/early_completion"}),
        (False, True, {"marker_audit/early_completion"}),
        (False, False, set()),
    ],
    ids=["brokers stopped", "order tells", "only clocks tell"],
)
def test_a_marker_behind_complete(
    is_clean: bool, is_overtaken: bool, wanted: set[str], tmp_path: Path
) -> None:
    """Five seconds late, the last one of a partition: had the leader's clock been set, a copy would look like that."""
    logs = Small()
    for producer_id in (1, 2, 9):
        logs.state(-5_000, builders.EMPTY, producer_id)
    for at in range(0, 60_000, 5_000):
        logs.transaction(at)
    logs.state(60_000, builders.ONGOING)
    logs.write(60_002)
    logs.state(60_010, builders.PREPARE_COMMIT)
    logs.state(60_020, builders.COMPLETE_COMMIT)
    if is_overtaken:
        logs.transaction(63_000, 2)
    logs.mark(65_020)
    for at in range(70_000, 130_000, 5_000):
        logs.state(at, builders.ONGOING, 9, lists=(("other", 0),))
        logs.state(at + 10, builders.PREPARE_COMMIT, 9, lists=(("other", 0),))
        logs.state(at + 20, builders.COMPLETE_COMMIT, 9)
    assert logs.said(tmp_path, is_clean=is_clean) == wanted


@pytest.mark.parametrize("is_late_copy", [True, False])
@pytest.mark.parametrize("has_other", [True, False])
def test_an_abort_by_hand_is_told_by_clocks_too(
    has_other: bool, is_late_copy: bool, tmp_path: Path
) -> None:
    """Data outside any transaction, and an abort of them; a partition without any other marker proves nothing by order.

    That they are data outside needs order, or a copy that began long after.
    """
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    logs.state(-4_000, builders.EMPTY, 2)
    if has_other:
        for at in range(0, 20_000, 5_000):
            logs.transaction(at, 2)
    for at in range(20_000, 120_000, 5_000):
        for kind in (builders.ONGOING, builders.PREPARE_COMMIT, builders.COMPLETE_COMMIT):
            logs.state(at + kind, kind, lists=(("other", 0),))
    logs.write(41_000)
    logs.mark(45_000, kind=builders.ABORT)
    if has_other:
        for at in range(50_000, 70_000, 5_000):
            logs.transaction(at, 2)
    logs.write_to(tmp_path, is_clean=False)
    started_ms = builders.NOW_MS + 121_000 if is_late_copy else None
    found = pure_audit.accusations(tmp_path, Config(copy_started_ms=started_ms))
    said = {f"{one['code']}/{one['class']}" for one in found}
    outside = {"write_outside_transaction/partition_not_added"}
    assert said == {"manual_abort/manual_abort"} | (outside if has_other or is_late_copy else set())
