"""Between the driver's rules and Spark: columns as arrays, statements as a detector's input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.replay.statement import DDL, Statement
from pipeline.spark import tables
from pipeline.spark.run import Run
from pipeline.spark.tables import Held

NONE = -1
Array = np.ndarray[Any, Any]


def longs(rows: pa.Table) -> dict[str, Array]:
    """Columns as arrays: numbers and booleans as int64 with -1 for null, texts as objects."""
    found: dict[str, Array] = {}
    for name in rows.column_names:
        column = rows[name]
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            found[name] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=object)
        else:
            found[name] = pc.fill_null(pc.cast(column, pa.int64()), NONE).to_numpy()
    return found


def held(run: Run, said: Iterable[Statement]) -> Held:
    """Statements as rows on the driver."""
    rows = [tuple(one) for one in said]
    return Held(tables.local(run.spark, rows, DDL), not rows)
