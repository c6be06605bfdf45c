"""Rows of `silver.partition_history` from what came in and what was found."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pipeline.replay.alignment import NONE, Longs
from pipeline.spark.arrow import arrow_schema
from schemas.silver import PARTITION_HISTORY


def nullable(values: Longs) -> pa.Array:
    """Numbers as a column, null where there is none."""
    return pa.array(values, mask=values == NONE)


OUTPUT_ROWS = 1 << 15
"""Rows that are put together at a time: a busy partition has millions."""


def history_rows(table: pa.Table, computed: dict[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    """The input's columns and the computed ones, in the physical schema."""
    for start in range(0, table.num_rows, OUTPUT_ROWS):
        rows = table.slice(start, OUTPUT_ROWS)
        beside = {name: values.slice(start, OUTPUT_ROWS) for name, values in computed.items()}
        yield _rows(rows, beside)


def _rows(table: pa.Table, computed: dict[str, pa.Array]) -> pa.RecordBatch:
    arrays = []
    for field in arrow_schema(PARTITION_HISTORY):
        column = computed.get(field.name)
        if column is None and field.name in table.column_names:
            column = table.column(field.name).combine_chunks()
        if column is None:
            column = pa.nulls(table.num_rows, field.type)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        arrays.append(column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(PARTITION_HISTORY))
