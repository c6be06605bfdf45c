"""Arrow batches of the physical bronze table."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.spark.arrow import arrow_schema
from pipeline.wire.arrays import Array, BatchArrays
from schemas.bronze import ENTRY
from schemas.table import Table

Row = dict[str, Any]
SCHEMA = arrow_schema(ENTRY)
_AS_THEY_ARE = (
    "position",
    "base_offset",
    "last_offset",
    "partition_leader_epoch",
    "magic",
    "crc",
    "size_bytes",
    "codec",
    "timestamp_type",
    "is_transactional",
    "is_control",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "records_count",
)


class Place(NamedTuple):
    """What rows belong to; 0 as replica stands for the whole log directory."""

    segment_id: int
    replica_id: int


def entry_batch(place: Place, kind: str, columns: Row) -> pa.RecordBatch:
    """One Arrow batch in the physical schema.

    Args:
        place: Where the rows belong.
        kind: Logical table.
        columns: By name, arrays of NumPy or Arrow of one length, `position` among them; the
            others are null.
    """
    count = len(columns["position"])
    fixed = {"kind": kind, "segment_id": place.segment_id, "replica_id": place.replica_id}
    arrays = []
    for field in SCHEMA:
        value = columns.get(field.name)
        if field.name in fixed:
            arrays.append(pa.repeat(pa.scalar(fixed[field.name], field.type), count))
        elif value is None:
            arrays.append(pa.nulls(count, field.type))
        else:
            array = value if isinstance(value, pa.Array) else pa.array(value)
            arrays.append(array if array.type == field.type else array.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def detail_batch(place: Place, kind: str, rows: list[Row]) -> pa.RecordBatch:
    """Rows of a small kind: their own columns as JSON in `detail`."""
    return entry_batch(
        place,
        kind,
        {
            "position": pa.array([row.get("position", 0) for row in rows], pa.int64()),
            "base_offset": pa.array([row.get("base_offset") for row in rows], pa.int64()),
            "max_timestamp_ms": pa.array([row.get("max_timestamp_ms") for row in rows], pa.int64()),
            "detail": pa.array([json.dumps(row) for row in rows], pa.string()),
        },
    )


def header_batch(place: Place, arrays: BatchArrays, which: Array | None = None) -> pa.RecordBatch:
    """Rows of kind batch.

    Args:
        place: Where they belong.
        arrays: Decoded headers.
        which: Indices of those to take; all by default.
    """
    one = arrays if which is None else BatchArrays._make(values[which] for values in arrays)
    no_marker = (one.control_type < 0) | (one.producer_id < 0)
    columns: Row = {name: getattr(one, name) for name in _AS_THEY_ARE}
    columns |= {
        "delete_horizon_ms": _nullable(one.delete_horizon_ms, one.delete_horizon_ms < 0),
        "base_timestamp_ms": _nullable(one.base_timestamp_ms, one.base_timestamp_ms == -1),
        "max_timestamp_ms": _nullable(one.max_timestamp_ms, one.max_timestamp_ms == -1),
        "control_type": _nullable(one.control_type, no_marker),
        "coordinator_epoch": _nullable(one.coordinator_epoch, no_marker),
    }
    return entry_batch(place, "batch", columns)


def _nullable(values: Array, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Array:
    return pa.array(values, mask=mask)


def logical(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """A batch of one kind in the schema of its logical table."""
    schema = arrow_schema(table)
    if set(table.names) <= set(SCHEMA.names):
        return batch.select(list(table.names)).cast(schema)
    ids = {name: batch.column(name).to_pylist() for name in Place._fields}
    rows = [
        {**json.loads(text), **{name: values[index] for name, values in ids.items()}}
        for index, text in enumerate(batch.column("detail").to_pylist())
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)
