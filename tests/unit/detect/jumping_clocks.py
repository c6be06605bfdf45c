"""Lives of a leader and a coordinator whose clocks jump around the moment at which their files are copied."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests import builders, log_layout
from tests.builders import NOW_MS
from tests.unit.detect.small import STATE_TOPIC, TOPIC

JUMPS_MS = (800, 5_000, 60_000, 200_000, 3_600_000)
GAPS_MS = ((100, 900), (3_000, 3_000), (2_000, 9_000), (20_000, 40_000))
_VERSION_2 = {"version": 1, "client_transaction_version": 2}


class Event(NamedTuple):
    """Something that is appended; `kind` of a state, a marker's type, or None for data."""

    ms: float
    log: str
    producer_id: int
    kind: int | None
    epoch: int
    sequence: int = 0


class Clock(NamedTuple):
    """A broker's: by how much it is ahead, and by how much more from a moment on."""

    ahead_ms: int
    jump_ms: int
    from_ms: float

    def at(self, ms: float) -> int:
        return int(NOW_MS + ms + self.ahead_ms + (self.jump_ms if ms > self.from_ms else 0))


def life(rng: random.Random, root: Path, *, lacks_marker: bool = False) -> None:
    """One such life, with one partition of either log.

    Args:
        rng: what chances are drawn from.
        root: where the directories of two brokers are made.
        lacks_marker: a marker long before the copy is left out.
    """
    copied = {TOPIC: rng.uniform(150_000, 400_000)}
    copied[STATE_TOPIC] = copied[TOPIC] + rng.choice([0, rng.uniform(-100_000, 120_000)])
    leader = _clock(rng, rng.choice([0, 0, 300, -300]), copied)
    coordinator = _clock(rng, 0, copied)
    version = rng.choice([0, 2])
    events = sorted(_events(rng, version, max(copied.values())))
    if lacks_marker:
        # Markers of later decisions have to follow for certain, so the clocks do not matter.
        before = [one for one in events if one.log == "marker" and one.ms < 40_000]
        events.remove(before[-1])
    tags = _VERSION_2 if version == 2 else {}
    data: list[bytes] = []
    states: list[bytes] = []
    for one in events:
        if one.log == "state" and one.ms <= copied[STATE_TOPIC]:
            ms = coordinator.at(one.ms)
            assert one.kind is not None
            value = builders.txn_value(
                one.kind, producer_id=one.producer_id, producer_epoch=one.epoch, start_ms=ms,
                partitions=[(TOPIC, 0)] if one.kind in (1, 2, 3) else (), **tags,
            )  # fmt: skip
            states.append(
                builders.txn_entry(len(states), f"id-{one.producer_id}", value, timestamp_ms=ms)
            )
        elif one.log == "data" and one.ms <= copied[TOPIC]:
            data.append(
                builders.batch(
                    len(data), producer_id=one.producer_id, producer_epoch=one.epoch,
                    base_sequence=one.sequence, transactional=True,
                )
            )  # fmt: skip
        elif one.log == "marker" and one.ms <= copied[TOPIC]:
            assert one.kind is not None
            data.append(
                builders.marker(
                    len(data), one.kind, producer_id=one.producer_id, producer_epoch=one.epoch,
                    timestamp_ms=leader.at(one.ms),
                )
            )  # fmt: skip
    for node, topic, rows in ((1, TOPIC, data), (2, STATE_TOPIC, states)):
        log = log_layout.LogDir(root, node)
        log.segment(topic, 0, rows, base_offset=0)
        log.finish(clean=False)


def _clock(rng: random.Random, ahead_ms: int, copied: dict[str, float]) -> Clock:
    jump_ms = rng.choice([-1, 1]) * rng.choice(JUMPS_MS) if rng.random() < 0.6 else 0
    return Clock(ahead_ms, jump_ms, rng.choice([*copied.values()]) - rng.uniform(0, 40_000))


def _events(rng: random.Random, version: int, until_ms: float) -> Iterator[Event]:
    gap_ms = rng.choice(GAPS_MS)
    for producer_id in range(1, rng.choice([1, 2, 5]) + 1):
        now, epoch, sequence = float(7 * producer_id), 0, 0
        yield Event(now, "state", producer_id, builders.EMPTY, epoch)
        while now < until_ms:
            now += rng.uniform(*gap_ms)
            is_commit = rng.random() > 0.15
            yield Event(now, "state", producer_id, builders.ONGOING, epoch)
            yield Event(now + 1, "data", producer_id, None, epoch, sequence)
            epoch, sequence = (epoch + 1, 0) if version == 2 else (epoch, sequence + 1)
            now += rng.uniform(2, 400)
            prepared = builders.PREPARE_COMMIT if is_commit else builders.PREPARE_ABORT
            yield Event(now, "state", producer_id, prepared, epoch)
            now += rng.uniform(0.3, 5)
            yield Event(now, "marker", producer_id, int(is_commit), epoch)
            now += rng.uniform(0.3, 5)
            ended = builders.COMPLETE_COMMIT if is_commit else builders.COMPLETE_ABORT
            yield Event(now, "state", producer_id, ended, epoch)
