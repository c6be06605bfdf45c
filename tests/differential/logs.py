"""Logs of producers, recorded and generated: what windows, arrays and the replay are compared on."""

from __future__ import annotations

import random
from typing import NamedTuple

from pipeline.wire.batch import MAX_SEQUENCE, Batch
from tests.differential.replicas import replicas
from tests.recordings import all_recordings
from tests.unit.replay.rows import ABORT, COMMIT, data, marker


class Log(NamedTuple):
    """One replica: its batches with a producer id, in offset order."""

    batches: list[Batch]
    is_offsets: bool
    history_start_offset: int


def recorded() -> list[Log]:
    return [
        Log([b for b in one.batches if b.producer_id >= 0], one.is_offsets, one.history_start)
        for folder in all_recordings()
        for one in replicas(folder)
    ]


def is_near_wrap(log: Log) -> bool:
    return any(batch.base_sequence > MAX_SEQUENCE // 4 for batch in log.batches)


def generated(seed: int, highest: tuple[int, ...]) -> Log:
    """Few producers, epochs that go up and down, repeats, gaps, wraps, emptied batches and markers."""
    rng = random.Random(seed)
    batches: list[Batch] = []
    offset = 0
    for _ in range(rng.randint(1, 60)):
        producer_id, epoch = rng.randint(0, 2), rng.choice((0, 0, 0, 1, 1, 2))
        if rng.random() < 0.25:
            outcome = rng.choice((ABORT, COMMIT, COMMIT, None))
            one = marker(
                offset, outcome, producer_id=producer_id, epoch=epoch,
                coordinator_epoch=rng.randint(0, 3), leader_epoch=rng.randint(0, 1),
            )  # fmt: skip
        else:
            records = rng.randint(1, 4)
            sequence = rng.choice((*range(-1, 7), *highest))
            one = data(
                offset, sequence, producer_id=producer_id, epoch=epoch, records=records,
                transactional=rng.random() < 0.8, kept=rng.choice((None, None, 0)),
                log_append_time=rng.random() < 0.3, time_ms=rng.randint(1, 99),
            )._replace(crc=rng.choice((0, 0, 0, 1)))  # fmt: skip
        batches.append(one)
        offset = one.last_offset + 1 + (rng.random() < 0.1)
    return Log(batches, rng.random() < 0.2, rng.choice((0, 0, offset // 3)))
