"""Counts of a run's tables, which the suites judge: each file is read once, column by column.

Great Expectations on a Spark frame runs a job a metric; a table of millions of rows is counted
here in the time that one of those jobs takes to start.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.gate.accepted import ACCEPTED
from pipeline.gate.segments import SegmentProfile, batches_by_segment, records_by_segment
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
GOLD = (gold_tables.FINDING, gold_tables.METRIC)
_SUMS = {
    "silver.transaction": "partition_count",
    "silver.partition_txn": "record_count",
}
_ENTRIES = BRONZE[:3]
"""What is read from segments: told apart by its place there; segments that overlap hold an offset twice."""
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
        table.name: records_by_segment(table, output, run_id)
        for table in (bronze_tables.TXN_STATE, bronze_tables.OFFSET_COMMIT)
    }
    return Profile(counted, batches_by_segment(output, run_id), records)


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
    told = _told(stored.footers(table, output, run_id), required, accepted)
    total = _SUMS.get(name)
    columns = [column for column in (*required, *accepted) if column not in told.known]
    columns = list(dict.fromkeys([*columns, *([total] if total else [])]))
    count = added = 0
    nulls, outside = dict(told.nulls), dict(told.outside)
    for piece in stored.pieces(table, output, run_id, columns) if columns else ():
        count += piece.num_rows
        for column in set(required) - set(told.nulls):
            nulls[column] = nulls.get(column, 0) + piece[column].null_count
        for column in set(accepted) - set(told.outside):
            outside[column] = outside.get(column, 0) + _outside(piece[column], accepted[column])
        added += int(pc.sum(piece[total]).as_py() or 0) if total else 0
    types = {column: _word(kind) for column, kind in stored.types(table, output, run_id).items()}
    doubles = _doubles(table, output, run_id)
    rows = count if told.rows is None else told.rows
    return TableProfile(table, types, rows, nulls, outside, doubles, added)


class _Told(NamedTuple):
    """What footers tell, so that it need not be read: rows, nulls, and columns with accepted values only."""

    rows: int | None
    nulls: dict[str, int]
    outside: dict[str, int]

    @property
    def known(self) -> set[str]:
        """Columns of which nothing else is asked."""
        return set(self.nulls) | set(self.outside)


def _told(
    footers: list[stored.Footer] | None,
    required: list[str],
    accepted: dict[str, tuple[int | str, ...]],
) -> _Told:
    if footers is None:
        return _Told(None, {}, {})
    nulls = {
        column: sum(one.nulls[column] for one in footers)
        for column in required
        if column not in accepted and all(column in one.nulls for one in footers)
    }
    outside = {
        column: 0
        for column, values in accepted.items()
        if column not in required and all(_is_within(one, column, values) for one in footers)
    }
    return _Told(sum(one.rows for one in footers), nulls, outside)


def _is_within(footer: stored.Footer, column: str, values: tuple[int | str, ...]) -> bool:
    """Whether lowest and highest value show that all are accepted: the accepted ones are whole numbers in a row."""
    known = footer.ranges.get(column)
    if known is None or not all(isinstance(value, int) for value in values):
        return False
    numbers = [int(value) for value in values]
    is_gapless = sorted(numbers) == list(range(min(numbers), max(numbers) + 1))
    return is_gapless and min(numbers) <= known[0] and known[1] <= max(numbers)


def _outside(values: pa.ChunkedArray, accepted: tuple[int | str, ...]) -> int:
    known = pc.is_in(values, value_set=pa.array(accepted, values.type), skip_nulls=False)
    known_or_null = pc.or_(known, pc.is_null(values))
    return len(values) - int(pc.sum(known_or_null).as_py() or 0)


def _doubles(table: Table, output: str, run_id: str) -> int:
    """Rows more than keys, among the first `KEYS_CHECKED` or a few more."""
    held: list[pa.Table] = []
    key = bronze_tables.ENTRY.key if table in _ENTRIES else table.key
    names = [column for column in key if column not in _IN_FOLDERS]
    for piece in stored.pieces(table, output, run_id, names):
        held.append(piece.slice(0, KEYS_CHECKED))
        if sum(map(len, held)) >= KEYS_CHECKED:
            break
    if not held:
        return 0
    keys = pa.concat_tables(held)
    return int(keys.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows)
