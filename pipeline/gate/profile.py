"""Counts of a run's tables, which the suites judge: each file is read once, column by column.

Great Expectations on a Spark frame runs a job a metric; a table of millions of rows is counted
here in the time that one of those jobs takes to start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.gate.accepted import ACCEPTED
from pipeline.spark import stored
from pipeline.spark.arrow import arrow_schema
from schemas import bronze as bronze_tables
from schemas import gold as gold_tables
from schemas import silver as silver_tables
from schemas.table import Table

KEYS_CHECKED = 100_000
"""Rows of a table whose keys are compared with each other; of a larger table the first ones."""

BRONZE = (
    bronze_tables.BATCH,
    bronze_tables.TXN_STATE,
    bronze_tables.OFFSET_COMMIT,
    bronze_tables.SEGMENT,
)
SILVER = (
    silver_tables.REPLICA,
    silver_tables.COORDINATOR_STEP,
    silver_tables.TRANSACTION,
    silver_tables.OWNER,
    silver_tables.PARTITION_TXN,
    silver_tables.TRANSACTION_PARTITION,
    silver_tables.SEQUENCE_EVENT,
    silver_tables.COMMITTED_OFFSET,
)
GOLD = (gold_tables.FINDING,)
_SUMS = {
    "silver.transaction": "partition_count",
    "silver.partition_txn": "record_count",
}
_IN_FOLDERS = ("run_id", "kind")


class TableProfile(NamedTuple):
    """Counts of one table of a run.

    Attributes:
        table: Its declaration.
        types: Column -> type as stored.
        rows: Rows.
        nulls: Required column -> nulls in it.
        outside: Column with accepted values -> values outside of them.
        doubles: Rows whose key another row has too, as far as keys were compared.
        total: Sum of the column in `_SUMS`.
    """

    table: Table
    types: dict[str, str]
    rows: int
    nulls: dict[str, int]
    outside: dict[str, int]
    doubles: int
    total: int


class SegmentProfile(NamedTuple):
    """What `bronze.batch` holds of one segment.

    Attributes:
        rows: Batches.
        records: Records in them.
        markers: Control batches of producers.
        first: Lowest base offset.
        last: Highest last offset.
        covered: Offsets that its batches span.
        of_producers: Records of data batches with a producer id.
    """

    rows: int
    records: int
    markers: int
    first: int
    last: int
    covered: int
    of_producers: int


NOTHING = SegmentProfile(0, 0, 0, 0, 0, 0, 0)


class Profile(NamedTuple):
    """Counts of one run.

    Attributes:
        tables: `layer.table` -> counts.
        segments: Segment id -> what `bronze.batch` holds of it.
        records: Table of records -> segment id -> rows.
    """

    tables: dict[str, TableProfile]
    segments: dict[int, SegmentProfile]
    records: dict[str, dict[int, int]]


def name_of(table: Table) -> str:
    """`layer.table`."""
    return f"{table.layer}.{table.name}"


def profile(output: str, run_id: str) -> Profile:
    """Counts everything that the suites judge.

    Args:
        output: Output root.
        run_id: The run.

    Raises:
        AuditError: The run's files are no longer named by the tables' logs.
        OSError: A file is gone or cannot be read.
    """
    counted = {name_of(table): _count(table, output, run_id) for table in (*BRONZE, *SILVER, *GOLD)}
    records = {
        table.name: _per_segment(table, output, run_id)
        for table in (bronze_tables.TXN_STATE, bronze_tables.OFFSET_COMMIT)
    }
    return Profile(counted, _segments(output, run_id), records)


def declared_types(table: Table) -> dict[str, str]:
    """Column -> type as it should be stored."""
    return {field.name: _word(field.type) for field in arrow_schema(table)}


def _word(kind: pa.DataType) -> str:
    """A type without what Parquet adds to it: names of list elements, nullability of fields."""
    if pa.types.is_list(kind):
        return f"list<{_word(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"{one.name}: {_word(one.type)}" for one in kind) + ">"
    return str(kind)


def _count(table: Table, output: str, run_id: str) -> TableProfile:
    name = name_of(table)
    required = [
        column.name
        for column in table.columns
        if not column.nullable and column.name not in _IN_FOLDERS
    ]
    accepted = ACCEPTED.get(name, {})
    total = _SUMS.get(name)
    keys = [column for column in table.key if column not in _IN_FOLDERS]
    is_keyed = table not in BRONZE
    columns = list(dict.fromkeys([*required, *accepted, *keys, *([total] if total else [])]))
    count = added = 0
    nulls = dict.fromkeys(required, 0)
    outside = dict.fromkeys(accepted, 0)
    compared: list[pa.Table] = []
    for piece in stored.pieces(table, output, run_id, columns):
        count += piece.num_rows
        for column in required:
            nulls[column] += piece[column].null_count
        for column, values in accepted.items():
            outside[column] += _outside(piece[column], values)
        added += int(pc.sum(piece[total]).as_py() or 0) if total else 0
        if is_keyed and sum(map(len, compared)) < KEYS_CHECKED:
            compared.append(piece.select(keys).slice(0, KEYS_CHECKED))
    held = stored.types(table, output, run_id)
    types = {column: _word(kind) for column, kind in held.items()}
    return TableProfile(table, types, count, nulls, outside, _doubles(compared), added)


def _outside(values: pa.ChunkedArray, accepted: tuple[int | str, ...]) -> int:
    known = pc.is_in(values, value_set=pa.array(accepted, values.type), skip_nulls=False)
    known_or_null = pc.or_(known, pc.is_null(values))
    return len(values) - int(pc.sum(known_or_null).as_py() or 0)


def _doubles(pieces: list[pa.Table]) -> int:
    """Rows more than keys."""
    if not pieces:
        return 0
    keys = pa.concat_tables(pieces)
    return keys.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows


def _per_segment(table: Table, output: str, run_id: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for piece in stored.pieces(table, output, run_id, ["segment_id"]):
        for one in pc.value_counts(piece["segment_id"].combine_chunks()).to_pylist():
            found[one["values"]] = found.get(one["values"], 0) + one["counts"]
    return found


def _segments(output: str, run_id: str) -> dict[int, SegmentProfile]:
    columns = ["segment_id", "base_offset", "last_offset", "records_count", "is_control"]
    columns += ["producer_id"]
    found: dict[int, SegmentProfile] = {}
    for piece in stored.pieces(bronze_tables.BATCH, output, run_id, columns):
        arrays = {
            name: pc.fill_null(piece[name].cast(pa.int64()), 0).to_numpy() for name in columns
        }
        ids, where = np.unique(arrays["segment_id"], return_inverse=True)
        span = arrays["last_offset"] - arrays["base_offset"] + 1
        control = arrays["is_control"].astype(bool)
        has_producer = arrays["producer_id"] >= 0
        records = arrays["records_count"]
        sums = [
            np.bincount(where, weights, len(ids)).astype(np.int64)
            for weights in (None, records, control & has_producer, span)
        ]
        of_producers = np.bincount(where, records * (~control & has_producer), len(ids))
        firsts = np.full(len(ids), np.iinfo(np.int64).max)
        lasts = np.full(len(ids), np.iinfo(np.int64).min)
        np.minimum.at(firsts, where, arrays["base_offset"])
        np.maximum.at(lasts, where, arrays["last_offset"])
        for n, segment_id in enumerate(ids.tolist()):
            rows, held, markers, covered = (int(one[n]) for one in sums)
            mine = SegmentProfile(
                rows,
                held,
                markers,
                int(firsts[n]),
                int(lasts[n]),
                covered,
                int(of_producers[n]),
            )
            found[segment_id] = _added(found.get(segment_id), mine)
    return found


def _added(one: SegmentProfile | None, other: SegmentProfile) -> SegmentProfile:
    if one is None:
        return other
    return SegmentProfile(
        one.rows + other.rows,
        one.records + other.records,
        one.markers + other.markers,
        min(one.first, other.first),
        max(one.last, other.last),
        one.covered + other.covered,
        one.of_producers + other.of_producers,
    )
