"""Rows of a run straight from its Parquet files: small questions on the driver, without a Spark job.

A question to Spark costs a third of a second however few rows there are; the gate and the report ask
dozens. What is read here is what Delta committed (`tables.files`), in pieces of bounded size.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.spark import tables
from pipeline.spark.arrow import arrow_schema
from schemas import bronze, gold, silver
from schemas.table import Table

PIECE_ROWS = 65_536
KIND = "kind"
_PHYSICAL: dict[Table, Table] = {
    silver.COORDINATOR_STEP: silver.COORDINATOR,
    silver.TRANSACTION: silver.COORDINATOR,
    silver.OWNER: silver.COORDINATOR,
    silver.PARTITION_TXN: silver.PARTITION_HISTORY,
    silver.TRANSACTION_PARTITION: silver.PARTITION_HISTORY,
    bronze.BATCH: bronze.ENTRY,
    bronze.TXN_STATE: bronze.ENTRY,
    bronze.OFFSET_COMMIT: bronze.ENTRY,
    bronze.GROUP_METADATA: bronze.ENTRY,
    bronze.UNREADABLE: bronze.ENTRY,
    bronze.SIDECAR: bronze.ENTRY,
}


def completed(output: str) -> list[dict[str, Any]]:
    """Rows of `gold.run` of completed runs, oldest first.

    Raises:
        OutputConflict: The output was written by another version.
    """
    found: list[dict[str, Any]] = []
    if tables.exists(gold.RUN, output):
        tables.check_version(gold.RUN, output)
        for run_id in tables.partition_folders(gold.RUN, output):
            held = rows(gold.RUN, output, run_id).to_pylist()
            found += [{**row, "run_id": run_id} for row in held if row["is_completed"]]
    return sorted(found, key=lambda row: int(row["sequence"]))


def physical(table: Table) -> Table:
    """The table whose files hold the rows of a logical one."""
    return _PHYSICAL.get(table, table)


def files(table: Table, output: str, run_id: str) -> list[str]:
    """Files that hold rows of a logical table."""
    return [
        file
        for file, partition in tables.files(physical(table), output, run_id)
        if partition.get(KIND, table.name) == table.name
    ]


def types(table: Table, output: str, run_id: str) -> dict[str, pa.DataType]:
    """Column -> type as stored, for the columns of the declaration; those declared when nothing is stored."""
    held = files(table, output, run_id)
    if not held:
        return {field.name: field.type for field in arrow_schema(table)}
    schema = pq.read_schema(held[0])
    of_folders = {tables.RUN: pa.string(), KIND: pa.string()}
    stored = of_folders | {field.name: field.type for field in schema}
    return {name: stored[name] for name in stored if name in table.names}


class Footer(NamedTuple):
    """What a file says of its columns without reading them.

    Attributes:
        rows: Rows.
        nulls: Column -> nulls, for columns whose every row group counts them.
        ranges: Column -> lowest and highest value, for columns whose every row group knows them.
    """

    rows: int
    nulls: dict[str, int]
    ranges: dict[str, tuple[Any, Any]]


def footers(table: Table, output: str, run_id: str) -> list[Footer] | None:
    """Footers of the files of a logical table; None where a file holds other kinds too."""
    found = []
    for file in files(table, output, run_id):
        source = pq.ParquetFile(file)
        if KIND in source.schema_arrow.names:
            return None
        found.append(_footer(source.metadata))
    return found


def _footer(about: pq.FileMetaData) -> Footer:
    nulls: dict[str, list[int]] = {}
    ranges: dict[str, list[Any]] = {}
    for group in range(about.num_row_groups):
        held = about.row_group(group)
        for number in range(held.num_columns):
            column = held.column(number)
            known = column.statistics
            if known is not None and known.has_null_count:
                nulls.setdefault(column.path_in_schema, []).append(known.null_count)
            if known is not None and known.has_min_max:
                ranges.setdefault(column.path_in_schema, []).extend((known.min, known.max))
    groups = about.num_row_groups
    return Footer(
        about.num_rows,
        {name: sum(held) for name, held in nulls.items() if len(held) == groups},
        {name: (min(held), max(held)) for name, held in ranges.items() if len(held) == 2 * groups},
    )


def pieces(
    table: Table,
    output: str,
    run_id: str,
    columns: Sequence[str],
    only: Mapping[str, Collection[Any]] | None = None,
) -> Iterator[pa.Table]:
    """Rows of a logical table of one run, a piece at a time.

    Args:
        table: A logical or physical table.
        output: Output root.
        run_id: The run.
        columns: Columns wanted.
        only: Column -> values wanted.
    """
    declared = arrow_schema(table)
    # Only a physical table of several logical ones tells them by kind; elsewhere it is a column like others.
    wanted = {**(only or {}), **({KIND: (table.name,)} if table in _PHYSICAL else {})}
    for file in files(table, output, run_id):
        source = pq.ParquetFile(file)
        known = source.schema_arrow.names
        if not set(only or ()) <= set(known):
            continue
        needed = [name for name in known if name in columns or name in wanted]
        for rows in pieces_of(source, needed):
            for name in wanted.keys() & set(known):
                accepted = pa.array(list(wanted[name]), rows.schema.field(name).type)
                rows = rows.filter(pc.is_in(rows[name], value_set=accepted))
            if rows.num_rows:
                for name in set(columns) - set(known):
                    empty = pa.nulls(rows.num_rows, declared.field(name).type)
                    rows = rows.append_column(name, empty)
                yield rows.select(list(columns))


def pieces_of(source: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Rows of a file, a piece at a time; Arrow's reader would keep something of each row group until the file's end."""
    for group in range(source.num_row_groups):
        for batch in source.iter_batches(PIECE_ROWS, row_groups=[group], columns=list(columns)):
            yield pa.Table.from_batches([batch])


def rows(
    table: Table,
    output: str,
    run_id: str,
    columns: Sequence[str] | None = None,
    only: Mapping[str, Collection[Any]] | None = None,
) -> pa.Table:
    """The same as one table, with the declared types when there are none."""
    names = list(columns or (name for name in table.names if name != tables.RUN))
    found = list(pieces(table, output, run_id, names, only))
    schema = pa.schema([arrow_schema(table).field(name) for name in names])
    if not found:
        return schema.empty_table()
    return pa.concat_tables(found)


def details(table: Table, output: str, run_id: str) -> list[dict[str, Any]]:
    """Rows of a small kind of bronze, which are kept as JSON, with the segment of each."""
    found = pieces(table, output, run_id, ("segment_id", "detail"))
    return [
        {**json.loads(row["detail"]), "segment_id": row["segment_id"]}
        for piece in found
        for row in piece.to_pylist()
    ]
