"""The window functions equal the replay, row by row, on every recording and on generated histories."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pipeline.replay.history import replay
from pipeline.replay.producer import Producer, Step, step
from pipeline.wire.batch import MAX_SEQUENCE, Batch
from tests.differential.replicas import replicas
from tests.recordings import all_recordings
from tests.unit.replay.rows import ABORT, COMMIT, data, marker

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

FIELDS = {
    "base_offset": "bigint", "last_offset": "bigint", "is_control": "boolean",
    "base_sequence": "int", "producer_id": "bigint", "producer_epoch": "int",
    "coordinator_epoch": "int", "control_type": "int", "partition_leader_epoch": "int",
    "records_count": "int", "size_bytes": "int", "timestamp_type": "int",
    "max_timestamp_ms": "bigint", "is_transactional": "boolean",
}  # fmt: skip
"""Columns of `bronze.batch` that the windows read."""
EVENTS = {"first", "exact", "overlap", "reset", "gap", "bump_not_zero", "epoch_regressed"}


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
            )  # fmt: skip
        batches.append(one)
        offset = one.last_offset + 1 + (rng.random() < 0.1)
    return Log(batches, rng.random() < 0.2, rng.choice((0, 0, offset // 3)))


def steps(log: Log) -> list[Step]:
    producers: dict[int, Producer] = {}
    found = []
    for batch in log.batches:
        state = producers.get(batch.producer_id) or Producer(batch.producer_id)
        producers[batch.producer_id], fact, _ = step(
            state,
            batch,
            is_offsets=log.is_offsets,
            history_start_offset=log.history_start_offset,
        )
        found.append(fact)
    return found


def windowed(
    spark: SparkSession, logs: list[Log], may_wrap: bool
) -> tuple[list[Row], list[Row], list[Row]]:
    """Steps, runs and irregular steps of all logs as Spark gives them; `replica_id` is the place in the list."""
    from pyspark.sql import functions as F

    from pipeline.spark import history

    ddl = "replica_id bigint, is_offsets boolean, history_start_offset bigint, " + ", ".join(
        f"{name} {kind}" for name, kind in FIELDS.items()
    )
    rows = [
        (number, log.is_offsets, log.history_start_offset, *(getattr(b, name) for name in FIELDS))
        for number, log in enumerate(logs)
        for b in log.batches
    ]
    batches = history.with_history(spark.createDataFrame(rows, ddl), may_wrap)
    batches = batches.withColumn("event", history.event_kind()).cache()
    found = batches.orderBy("replica_id", F.col("base_offset")).collect()
    runs = history.runs(batches).orderBy("replica_id", "producer_id", "run_number").collect()
    events = history.sequence_events(batches).orderBy("replica_id", "base_offset").collect()
    batches.unpersist()
    return found, runs, events


def plain(value: Any) -> Any:
    """Spark's rows and the replay's tuples as plain tuples."""
    return tuple(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("may_wrap", [True, False])
@pytest.mark.parametrize("source", ["recordings", "generated"])
def test_windows_equal_the_replay(spark: SparkSession, source: str, may_wrap: bool) -> None:
    highest = (MAX_SEQUENCE - 1, MAX_SEQUENCE) if may_wrap else ()
    logs = (
        [log for log in recorded() if may_wrap or not is_near_wrap(log)]
        if source == "recordings"
        else [generated(seed, highest) for seed in range(400)]
    )
    found, runs, events = windowed(spark, logs, may_wrap)
    wanted = [(number, fact) for number, log in enumerate(logs) for fact in steps(log)]
    assert len(found) == len(wanted)
    names = (
        "run_number", "max_epoch_before", "coordinator_epoch_before", "previous", "reached",
        "first_sequence", "last_sequence", "event",
    )  # fmt: skip
    for row, (number, fact) in zip(found, wanted, strict=True):
        assert (row["replica_id"], row["base_offset"]) == (number, fact.offset)
        for name in names:
            assert plain(row[name]) == plain(getattr(fact, name)), (number, fact, name)
    histories = [
        replay(
            log.batches,
            is_offsets=log.is_offsets,
            history_start_offset=log.history_start_offset,
        )
        for log in logs
    ]
    expected = [(number, run) for number, history in enumerate(histories) for run in history.runs]
    assert len(runs) == len(expected)
    for row, (number, run) in zip(runs, expected, strict=True):
        assert row["replica_id"] == number
        assert {name: row[name] for name in run._fields} == run._asdict()
    irregular = [
        (number, event.step.offset, event.producer_id, event.kind, event.other_offset)
        for number, history in enumerate(histories)
        for event in history.events
    ]
    names = ("replica_id", "base_offset", "producer_id", "kind", "other_offset")
    assert [tuple(row[name] for name in names) for row in events] == irregular
    kinds = {fact.event for _, fact in wanted}
    if source == "generated":
        assert {event[3] for event in irregular} == EVENTS
        assert kinds == {None, "first", "back", "gap", "bump_not_zero", "epoch_regressed"}
    print(source, len(wanted), "steps,", len(irregular), "irregular,", len(expected), "runs equal")
