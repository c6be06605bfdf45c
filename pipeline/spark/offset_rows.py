"""Arrow in, Arrow out: offset materialisation over sorted rows of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from pipeline.replay.offsets import CommitRecord, Committed, MarkerRecord, OffsetsReplay
from pipeline.spark.arrow import arrow_schema
from schemas.silver import COMMITTED_OFFSET

INPUT = (
    "replica_id",
    "base_offset",
    "is_control",
    "group_id",
    "topic",
    "partition",
    "committed_offset",
    "commit_timestamp_ms",
    "max_timestamp_ms",
    "partition_leader_epoch",
    "is_transactional",
    "producer_id",
    "producer_epoch",
    "control_type",
)
"""Columns that the function reads, in this order, sorted by the first two."""
FLUSH_ROWS = 20_000


def materialiser(
    places: dict[int, tuple[int, int]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: rows of `INPUT` -> rows of `COMMITTED_OFFSET`.

    Args:
        places: Replica id -> (copy, partition of `__consumer_offsets`).
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        replica: int | None = None
        state = OffsetsReplay()
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            columns = [batch.column(index).to_pylist() for index in range(len(INPUT))]
            for row in zip(*columns, strict=True):
                if row[0] != replica:
                    if replica is not None:
                        rows += [_row(places[replica], one) for one in state.end()]
                    replica, state = row[0], OffsetsReplay()
                rows += [_row(places[row[0]], one) for one in _step(state, row)]
            if len(rows) >= FLUSH_ROWS:
                yield _flush(rows)
                rows = []
        if replica is not None:
            rows += [_row(places[replica], one) for one in state.end()]
        if rows:
            yield _flush(rows)

    return run


def _step(state: OffsetsReplay, row: tuple[Any, ...]) -> list[Committed]:
    offset, is_control, producer_id = row[1], row[2], row[11]
    if is_control:
        return state.marker(MarkerRecord(offset, producer_id, row[13], row[8], row[9]))
    record = CommitRecord(
        offset, row[3], row[4], row[5], row[6], row[7], row[8], row[9], row[10], *row[11:13]
    )
    return state.commit(record)


def _row(place: tuple[int, int], one: Committed) -> tuple[Any, ...]:
    record, previous = one.record, one.previous
    is_known = previous is not None
    return (
        *place,
        record.record_offset,
        record.group_id,
        record.topic,
        record.partition,
        record.committed_offset,
        record.commit_timestamp_ms,
        record.append_ms,
        record.leader_epoch,
        record.is_transactional,
        record.producer_id if record.is_transactional else None,
        record.producer_epoch if record.is_transactional else None,
        one.outcome,
        one.marker_offset,
        previous.committed_offset if is_known and previous else None,
        previous.is_transactional if is_known and previous else None,
        previous.record_offset if is_known and previous else None,
        one.race_ms,
        one.is_before_marker,
    )


def _flush(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    schema = arrow_schema(COMMITTED_OFFSET)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
