"""The one adapter between Spark and state machines: sorted rows in, rows out, one pass a task."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

Key = tuple[object, ...]


def sorted_rows(
    rows: DataFrame,
    *,
    keys: tuple[str, ...],
    order: tuple[str, ...],
    partitions: int | None = None,
) -> DataFrame:
    """Rows as a state machine over groups wants them; `mapInArrow` or `tables.replace` run it.

    Nothing of a group is held but what the state machine keeps: Spark sorts on disk where it has to, and a hot key
    delays only its own task. A key may begin and end in mid-batch, or span many batches.

    Args:
        rows: Input.
        keys: Rows with equal keys go to one task, next to each other.
        order: Further sort columns within a key.
        partitions: Number of tasks; Spark's setting by default.
    """
    count = () if partitions is None else (partitions,)
    return rows.repartition(*count, *keys).sortWithinPartitions(*keys, *order)


def groups(batches: Iterator[pa.RecordBatch], keys: tuple[str, ...]) -> Iterator[pa.Table]:
    """Whole groups of batches that are sorted by key, without copies.

    Memory holds the batches of one group. A null key equals null, as it does in Spark's order.

    Args:
        batches: Of one task, in order; empty ones are passed over.
        keys: Names of the key columns.
    """
    held: list[pa.RecordBatch] = []
    current: Key | None = None
    for key, part in runs(batches, keys):
        if held and key != current:
            yield pa.Table.from_batches(held)
            held = []
        current = key
        held.append(part)
    if held:
        yield pa.Table.from_batches(held)


def runs(
    batches: Iterator[pa.RecordBatch], keys: tuple[str, ...]
) -> Iterator[tuple[Key, pa.RecordBatch]]:
    """Slices of one key each, with the key; a group that spans batches gives one slice a batch."""
    for batch in batches:
        if not batch.num_rows:
            continue
        starts = _starts(batch, keys)
        ends = [*starts[1:], batch.num_rows]
        columns = [batch.column(name).take(pa.array(starts)).to_pylist() for name in keys]
        for start, end, key in zip(starts, ends, zip(*columns, strict=True), strict=True):
            yield key, batch.slice(start, end - start)


def _starts(batch: pa.RecordBatch, keys: tuple[str, ...]) -> list[int]:
    """Row numbers where a key begins."""
    if batch.num_rows == 1:
        return [0]
    changed = None
    for name in keys:
        column = batch.column(name)
        before, after = column.slice(0, batch.num_rows - 1), column.slice(1)
        # Unequal is null next to a null; then they differ when only one of them is.
        one_is_null = pc.not_equal(pc.is_null(before), pc.is_null(after))
        differs = pc.coalesce(pc.not_equal(before, after), one_is_null)
        changed = differs if changed is None else pc.or_(changed, differs)
    return [0, *(index + 1 for index in pc.indices_nonzero(changed).to_pylist())]
