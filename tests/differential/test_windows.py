"""The window functions equal the replay, row by row, on every recording and on generated histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipeline.replay.history import replay
from pipeline.replay.producer import Producer, Step, step
from pipeline.wire.batch import MAX_SEQUENCE
from tests.differential.logs import Log, generated, is_near_wrap, recorded

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

FIELDS = {
    "base_offset": "bigint", "last_offset": "bigint", "is_control": "boolean",
    "base_sequence": "int", "producer_id": "bigint", "producer_epoch": "int",
    "coordinator_epoch": "int", "control_type": "int", "partition_leader_epoch": "int",
    "records_count": "int", "size_bytes": "int", "timestamp_type": "int",
    "max_timestamp_ms": "bigint", "is_transactional": "boolean", "crc": "bigint",
}  # fmt: skip
"""Columns of `bronze.batch` that the windows read."""
EVENTS = {"first", "exact", "overlap", "reset", "gap", "bump_not_zero", "epoch_regressed"}


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
