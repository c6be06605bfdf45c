"""The one adapter between Spark and state machines: sorted rows in, rows out, one pass a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pipeline.spark.arrow import arrow_schema
from schemas.table import Table

Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def replay(
    rows: DataFrame,
    *,
    keys: tuple[str, ...],
    order: tuple[str, ...],
    function: Function,
    table: Table,
) -> DataFrame:
    """Runs a state machine over groups.

    Args:
        rows: Input.
        keys: Rows with equal keys go to one task, next to each other.
        order: Further sort columns within a key.
        function: Gets the sorted batches of a task; a key may begin and end in mid-batch.
        table: Declaration of the rows that it yields.
    """
    ordered = rows.repartition(*keys).sortWithinPartitions(*keys, *order)
    return ordered.mapInArrow(function, table.ddl())


def groups(batches: Iterator[pa.RecordBatch], keys: tuple[str, ...]) -> Iterator[pa.Table]:
    """Whole groups of sorted batches; memory holds one group."""
    held: list[pa.RecordBatch] = []
    current: tuple[object, ...] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        bounds = _bounds(batch, keys)
        for first, behind in zip(bounds[:-1], bounds[1:], strict=True):
            key = tuple(batch.column(name)[first].as_py() for name in keys)
            if held and key != current:
                yield pa.Table.from_batches(held)
                held = []
            current = key
            held.append(batch.slice(first, behind - first))
    if held:
        yield pa.Table.from_batches(held)


def _bounds(batch: pa.RecordBatch, keys: tuple[str, ...]) -> list[int]:
    """Row numbers where a key begins, and the end."""
    if batch.num_rows == 1:
        return [0, 1]
    changed = None
    for name in keys:
        column = batch.column(name)
        differs = pc.not_equal(column.slice(1), column.slice(0, batch.num_rows - 1))
        changed = differs if changed is None else pc.or_(changed, differs)
    starts = pc.indices_nonzero(changed).to_pylist()
    return [0, *(start + 1 for start in starts), batch.num_rows]


__all__ = ["arrow_schema", "groups", "replay"]
