"""A producer's transactions between two brokers whose clocks are not one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

from tests import builders, log_layout
from tests.builders import ABORT, COMMIT, NOW_MS

TOPIC, ID, PRODUCER_ID = "orders", "writer", 1000
_VERSION_2 = {"version": 1, "client_transaction_version": 2}


def life(
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


CLOCKS: dict[str, Callable[[float], float]] = {
    "half-a-millisecond": lambda now: 0.5,
    "drift": lambda now: now * 2e-4,
    "ntp-step": lambda now: 0 if now < 600_000 else 300,
    "ntp-steps-at-the-end": lambda now: 0 if now < 1_400_000 else -200,
    "ahead-beyond-tolerance": lambda now: 3_000,
    "behind-beyond-tolerance": lambda now: -3_000,
    "jump-and-back": lambda now: 3_600_000 if 600_000 < now < 630_000 else 0,
}
