"""Clocks of two brokers that are not one: rounding, drift, steps, jumps; and a fault that no clock explains."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import builders, log_layout, pure_audit
from tests.builders import ABORT, COMMIT, NOW_MS
from tests.unit.detect.small import Small

TOPIC, ID, PRODUCER_ID = "orders", "writer", 1000
_VERSION_2 = {"version": 1, "client_transaction_version": 2}


def _life(
    root: Path,
    ahead_ms: Callable[[float], float],
    *,
    version: int = 0,
    gap_ms: tuple[int, int] = (5_000, 20_000),
    latency_ms: tuple[float, float] = (1, 5),
    stray_at: int | None = None,
    count: int = 120,
) -> None:
    """Transactions one after the other; the partition's leader is ahead of the coordinator by `ahead_ms(time)`.

    Args:
        root: where two brokers' directories are made.
        ahead_ms: time of the coordinator, in ms -> difference of the clocks, in ms.
        version: transaction.version.
        gap_ms: bounds of the pause between two transactions.
        latency_ms: bounds of the time from Prepare* to the marker, and from there to Complete*.
        stray_at: after that transaction comes a COMMIT of nobody.
        count: transactions.
    """
    rng, now, epoch = random.Random(1), float(NOW_MS), 0
    states = [
        builders.txn_entry(0, ID, builders.txn_value(producer_id=PRODUCER_ID, **_tags(version)))
    ]
    data: list[bytes] = []

    def state(kind: int) -> None:
        value = builders.txn_value(
            kind, producer_id=PRODUCER_ID, producer_epoch=epoch, **_tags(version),
            partitions=[(TOPIC, 0)] if kind not in (4, 5) else (),
        )  # fmt: skip
        states.append(builders.txn_entry(len(states), ID, value, timestamp_ms=math.floor(now)))

    def marker(kind: int) -> None:
        data.append(
            builders.marker(
                len(data), kind, producer_id=PRODUCER_ID, producer_epoch=epoch,
                timestamp_ms=math.floor(now + ahead_ms(now - NOW_MS)),
            )
        )  # fmt: skip

    for number in range(count):
        now += rng.uniform(*gap_ms)
        state(builders.ONGOING)
        sequence = 0 if version == 2 else number
        data.append(
            builders.batch(
                len(data), producer_id=PRODUCER_ID, producer_epoch=epoch, transactional=True,
                base_sequence=sequence,
            )
        )  # fmt: skip
        now += rng.uniform(2, 30)
        kind = ABORT if rng.random() < 0.1 else COMMIT
        epoch += version == 2
        state(builders.PREPARE_COMMIT if kind else builders.PREPARE_ABORT)
        now += rng.uniform(*latency_ms)
        marker(kind)
        now += rng.uniform(*latency_ms)
        state(builders.COMPLETE_COMMIT if kind else builders.COMPLETE_ABORT)
        if number == stray_at:
            now += 2_500
            marker(COMMIT)
    for node, topic, rows in ((1, TOPIC, data), (2, "__transaction_state", states)):
        log = log_layout.LogDir(root, node)
        log.segment(topic, 0, rows)
        log.finish()


def _tags(version: int) -> dict[str, int]:
    return _VERSION_2 if version == 2 else {}


def _said(root: Path) -> list[tuple[str, str]]:
    return [(row["code"], row["class"]) for row in pure_audit.accusations(root)]


CLOCKS: dict[str, Callable[[float], float]] = {
    "half-a-millisecond": lambda now: 0.5,
    "drift": lambda now: now * 2e-4,
    "ntp-step": lambda now: 0 if now < 600_000 else 300,
    "ntp-steps-at-the-end": lambda now: 0 if now < 1_400_000 else -200,
    "ahead-beyond-tolerance": lambda now: 3_000,
    "behind-beyond-tolerance": lambda now: -3_000,
    "jump-and-back": lambda now: 3_600_000 if 600_000 < now < 630_000 else 0,
}


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("latency_ms", [(0.2, 1), (1, 5)], ids=["fast", "slow"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_clock_accuses_nobody(
    clock: str, latency_ms: tuple[float, float], version: int, tmp_path: Path
) -> None:
    _life(tmp_path, CLOCKS[clock], version=version, latency_ms=latency_ms)
    assert _said(tmp_path) == []


@pytest.mark.parametrize("clock", ["half-a-millisecond", "drift", "ntp-step"])
def test_a_marker_of_nobody_is_found_by_clocks_that_move(clock: str, tmp_path: Path) -> None:
    _life(tmp_path, CLOCKS[clock], stray_at=40)
    assert _said(tmp_path) == [("marker_audit", "unexpected")]


def test_dense_transactions_on_clocks_half_a_millisecond_apart(tmp_path: Path) -> None:
    _life(tmp_path, lambda now: 0.5, gap_ms=(1, 60), latency_ms=(0.2, 1), count=400)
    assert _said(tmp_path) == []


def test_clocks_beyond_tolerance_are_told_not_judged(tmp_path: Path) -> None:
    """They must not look clean either: `marker_audit`/`other_clock` counts these markers."""
    _life(tmp_path, CLOCKS["ahead-beyond-tolerance"])
    one = pure_audit.replayed(pure_audit.read(tmp_path, pure_audit.Config()))
    assert {run["alignment"] for run in one.runs} == {"other_clock"}
    assert {promise["status"] for promise in one.promises} == {"ambiguous"}


@pytest.mark.parametrize("jump_ms", [0, 3_600_000])
def test_a_clock_that_was_put_back_reads_no_file_further_than_it_goes(
    jump_ms: int, tmp_path: Path
) -> None:
    """The coordinator was copied before a producer came; for seconds all clocks had been an hour ahead."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    for at in range(0, 90_000, 5_000):
        if at == 30_000:
            logs.transaction(at + jump_ms)
        elif at == 45_000:
            copied = len(logs.states)
        elif at == 60_000:
            logs.write(at, 7)
        else:
            logs.transaction(at)
    assert logs.said(tmp_path, states=copied, is_clean=False) == set()
