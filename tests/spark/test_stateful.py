"""Groups of sorted batches, whatever way the batches were cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from pipeline.spark.stateful import groups, runs, sorted_rows
from schemas.table import Column, Table

COUNTS = Table(
    "silver",
    "counts",
    "Rows of a key.",
    (
        Column("key", "long", "Key.", True),
        Column("rows", "long", "Rows."),
        Column("is_sorted", "boolean", "In order."),
    ),
    ("rows",),
)
KEYS = st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from(["a", "b"])), max_size=12)


@given(KEYS, st.lists(st.integers(0, 4), max_size=12))
def test_groups_are_those_of_the_rows(keys: list[tuple[int | None, str]], sizes: list[int]) -> None:
    keys.sort(key=lambda key: (key[0] is not None, key[0] or 0, key[1]))
    table = pa.table(
        {
            "a": pa.array([a for a, _ in keys], pa.int64()),
            "b": pa.array([b for _, b in keys], pa.string()),
            "row": pa.array(range(len(keys)), pa.int64()),
        }
    )
    batches, start = [], 0
    for size in [*sizes, len(keys)]:
        batches += table.slice(start, size).combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], schema=table.schema)
        ]
        start += size
    expected = [
        (key, [row for row, _ in rows])
        for key, rows in groupby(enumerate(keys), key=lambda item: item[1])
    ]
    found = [
        ((one.column("a")[0].as_py(), one.column("b")[0].as_py()), one.column("row").to_pylist())
        for one in groups(iter(batches), ("a", "b"))
    ]
    assert found == expected


def test_runs_do_not_wait_for_a_key_to_end() -> None:
    endless = (pa.record_batch({"a": [1, 1, 1]}) for _ in iter(int, 1))
    key, part = next(runs(endless, ("a",)))
    assert (key, part.num_rows) == ((1,), 3)


@pytest.mark.spark
def test_replay_gives_whole_sorted_groups(spark: SparkSession) -> None:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in groups(batches, ("key",)):
            values = one.column("value").to_pylist()
            row = [one.column("key")[0].as_py()], [len(values)], [values == sorted(values)]
            yield pa.RecordBatch.from_arrays(
                [pa.array(row[0], pa.int64()), pa.array(row[1], pa.int64()), pa.array(row[2])],
                names=list(COUNTS.names),
            )

    rows = spark.range(0, 70_000, 1, 4).selectExpr(
        "if(id % 7 = 0, null, if(id < 60000, 1, id % 5)) as key", "hash(id) as value"
    )
    in_order = sorted_rows(rows, keys=("key",), order=("value",), partitions=3)
    found = in_order.mapInArrow(count, COUNTS.ddl())
    expected = {row["key"]: row["count"] for row in rows.groupBy("key").count().collect()}
    assert {row["key"]: row["rows"] for row in found.collect()} == expected
    assert all(row["is_sorted"] for row in found.collect())
