"""The Delta tables under the output root; with `commits` all that knows Delta.

A table is partitioned by `run_id` and replaced by run, so a run that is killed and started again with the same id ends
in the same tables. Tasks write the Parquet files (`parquet`); a commit adds them through Delta's own transaction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import OutputConflict
from pipeline.spark import commits, parquet
from pipeline.spark.arrow import arrow_schema, ddl_schema
from pipeline.spark.commits import RUN as RUN
from pipeline.spark.parquet import File, Function
from schemas.table import Table

LOCAL_ROWS = 100_000
"""Rows that a detector's input may have to be held on the driver."""


def path(table: Table, output: str) -> str:
    """Folder of a physical table."""
    return os.path.join(output, table.layer, table.name)


def exists(table: Table, output: str) -> bool:
    """Whether the table was ever committed; a log folder alone is what a killed first write leaves."""
    folder = path(table, output)
    return commits.is_promised(folder) or commits.is_made(folder)


def partition_folders(table: Table, output: str) -> set[str]:
    """Runs that ever wrote files of a table, committed or not."""
    prefix = f"{RUN}="
    folders = Path(path(table, output)).glob(f"{prefix}*")
    return {folder.name.removeprefix(prefix) for folder in folders}


def files(table: Table, output: str, run_id: str) -> list[tuple[str, dict[str, str]]]:
    """Parquet files of one run with their partition values, read from the log without asking Spark.

    A run's rows are replaced in one commit, so the newest commit that names the run adds all of its files
    (Delta protocol: one JSON action a line, `add` with `path` and `partitionValues`). Files whose commit is on its
    way count (`commits.beside`).

    Raises:
        AuditError: The commits of that time are no longer in the log.
    """
    folder = path(table, output)
    found = commits.promised(folder, run_id)
    if found is None:
        found = commits.added(folder, run_id)
    return [(os.path.join(folder, name), values) for name, values in found]


def replace(
    rows: DataFrame,
    table: Table,
    output: str,
    run_id: str,
    also: Sequence[str] = (),
    function: Function | None = None,
) -> list[File]:
    """Replaces one run's rows of a table in one commit; the tasks write the files.

    Args:
        rows: The table's columns by name, `run_id` excepted; or the input of `function`.
        table: Declaration.
        output: Output root.
        run_id: Run whose rows are replaced.
        also: Runs whose rows are removed by the same commit.
        function: Makes the rows from `rows` in Arrow, as for `mapInArrow`.

    Returns:
        The files that hold the rows.

    Raises:
        OutputConflict: The table was written by another version.
    """
    _begin(table, output)
    if function is None:
        rows = rows.select(*_stored(table).names)
    write = parquet.writer(_stored(table), path(table, output), _partition(run_id), function)
    written = rows.mapInArrow(write, parquet.WRITTEN).toArrow().to_pylist()
    files = [File(**row) for row in written]
    commits.add(rows.sparkSession, _stored(table), path(table, output), (run_id, *also), files)
    return files


def replace_rows(
    spark: SparkSession,
    rows: Sequence[Sequence[Any]],
    table: Table,
    output: str,
    run_id: str,
    also: Sequence[str] = (),
) -> None:
    """Replaces one run's rows by rows of the driver, in one commit and without a job.

    Args:
        spark: The session.
        rows: Values in the order of the table's columns.
        table: Declaration.
        output: Output root.
        run_id: Run whose rows are replaced.
        also: Runs whose rows are removed by the same commit.

    Raises:
        OutputConflict: The table was written by another version.
    """
    _begin(table, output)
    schema = arrow_schema(table)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    files = parquet.write(iter([batch]), _stored(table), path(table, output), _partition(run_id))
    commits.add(spark, _stored(table), path(table, output), (run_id, *also), files)


def _stored(table: Table) -> Table:
    """The table as its files hold it: the run is in the name of their folder."""
    return table._replace(columns=tuple(one for one in table.columns if one.name != RUN))


def _partition(run_id: str) -> str:
    return f"{RUN}={run_id}"


def _begin(table: Table, output: str) -> None:
    commits.reached(f"before {table.layer}.{table.name}")
    check_version(table, output)


def vacuum(spark: SparkSession, output: str) -> None:
    """Removes files that no version of the last seven days needs, from every table of an output root."""
    for log in sorted(Path(output).glob("*/*/_delta_log")):
        spark.sql(f"VACUUM delta.`{log.parent.absolute()}`").collect()


def read(spark: SparkSession, table: Table, output: str, run_id: str | None = None) -> DataFrame:
    """Reads a table, or one run of it; without its `run_id` column unless the declaration has one.

    One run is read from the files that its commit names: a question to Delta for them costs a Spark job or two.

    Raises:
        OutputConflict: The table was written by another version.
        AuditError: The commits of that run are no longer in the log.
    """
    if run_id is None:
        return read_runs(spark, table, output).select(*table.names)
    check_version(table, output)
    held = [file for file, _ in files(table, output, run_id)]
    if not held:
        return empty(spark, table)
    source = spark.read.schema(commits.with_run(_stored(table)).ddl()).option(
        "basePath", path(table, output)
    )
    return source.parquet(*map(_literal, held)).select(*table.names)


def _literal(file: str) -> str:
    """A path in which Spark sees no pattern (Hadoop: `GlobPattern`)."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", file)


def read_runs(spark: SparkSession, table: Table, output: str) -> DataFrame:
    """All runs of a table with their `run_id`.

    Raises:
        OutputConflict: The table was written by another version.
    """
    rows = spark.read.format("delta").load(path(table, output))
    _check_columns(rows.columns, table)
    return rows


def check_version(table: Table, output: str) -> None:
    """A table that is there has the columns that this version writes.

    Raises:
        OutputConflict: It was written by another version.
    """
    folder = path(table, output)
    if commits.is_made(folder):
        _check_columns(commits.columns(folder), table)


def _check_columns(names: Iterable[str], table: Table) -> None:
    """Columns tell the version of a table's declaration."""
    found, declared = set(names), {RUN, *table.names}
    if found != declared:
        listed = ", ".join(sorted(found ^ declared))
        raise OutputConflict(
            f"{table.layer}.{table.name} in the output has other columns than this version writes ({listed}): "
            "use another --output"
        )


def empty(spark: SparkSession, table: Table) -> DataFrame:
    """No rows, the table's columns."""
    return spark.createDataFrame(arrow_schema(table).empty_table(), table.ddl())


def local(spark: SparkSession, rows: Sequence[Sequence[Any]], ddl: str) -> DataFrame:
    """Rows of the driver as a local relation: Spark folds what is done to it while it plans, without a job.

    Args:
        spark: The session.
        rows: Values in column order.
        ddl: `name type, ...` with the types of `schemas`.
    """
    schema = ddl_schema(ddl)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema), ddl)


class Held(NamedTuple):
    """Rows that were evaluated once; `is_empty` is known without asking Spark again."""

    rows: DataFrame
    is_empty: bool


def localise(rows: DataFrame, limit: int = LOCAL_ROWS) -> Held:
    """Evaluates rows once and keeps them on the driver when they are few; many stay where they are."""
    held = rows.limit(limit + 1).toArrow()
    if held.num_rows > limit:
        return Held(rows, False)
    return Held(rows.sparkSession.createDataFrame(held, rows.schema), held.num_rows == 0)
