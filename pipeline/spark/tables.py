"""The Delta tables under the output root; the only module that knows Delta.

A table is partitioned by `run_id` and replaced by run, so a run that is killed and started again with the same id ends
in the same tables. Tasks write the Parquet files (`parquet`); a commit adds them through Delta's own transaction.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import AuditError, OutputConflict
from pipeline.spark import parquet
from pipeline.spark.arrow import arrow_schema, ddl_schema
from pipeline.spark.parquet import File, Function
from schemas.table import Column, Table

LOCAL_ROWS = 100_000
"""Rows that a detector's input may have to be held on the driver."""
RUN = "run_id"

COMMIT_HOOK: Callable[[str], None] | None = None
"""Called with `before <table>` and `after <table>` around every commit; tests inject failures here."""


def path(table: Table, output: str) -> str:
    """Folder of a physical table."""
    return os.path.join(output, table.layer, table.name)


def exists(table: Table, output: str) -> bool:
    """Whether the table was ever committed; a log folder alone is what a killed first write leaves."""
    return next(Path(path(table, output), "_delta_log").glob("*.json"), None) is not None


def partition_folders(table: Table, output: str) -> set[str]:
    """Runs that ever wrote files of a table, committed or not."""
    prefix = f"{RUN}="
    folders = Path(path(table, output)).glob(f"{prefix}*")
    return {folder.name.removeprefix(prefix) for folder in folders}


def files(table: Table, output: str, run_id: str) -> list[tuple[str, dict[str, str]]]:
    """Parquet files of one run with their partition values, read from the log without asking Spark.

    A run's rows are replaced in one commit, so the newest commit that names the run adds all of its files
    (Delta protocol: one JSON action a line, `add` with `path` and `partitionValues`).

    Raises:
        AuditError: The commits of that time are no longer in the log.
    """
    commits = sorted(Path(path(table, output), "_delta_log").glob("*.json"), reverse=True)
    for commit in commits:
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        named = [
            (kind, action[kind])
            for action in actions
            for kind in ("add", "remove")
            if kind in action and action[kind].get("partitionValues", {}).get(RUN) == run_id
        ]
        if named:
            return [
                (os.path.join(path(table, output), unquote(one["path"])), one["partitionValues"])
                for kind, one in named
                if kind == "add"
            ]
    if commits and int(commits[-1].stem) > 0:
        name = f"{table.layer}.{table.name}"
        raise AuditError(f"{name}: the commit of run {run_id} is no longer in its log")
    return []


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
    _commit(rows.sparkSession, table, output, (run_id, *also), files)
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
    _commit(spark, table, output, (run_id, *also), files)


def _stored(table: Table) -> Table:
    """The table as its files hold it: the run is in the name of their folder."""
    return table._replace(columns=tuple(one for one in table.columns if one.name != RUN))


def _partition(run_id: str) -> str:
    return f"{RUN}={run_id}"


def _begin(table: Table, output: str) -> None:
    _hook(f"before {table.layer}.{table.name}")
    if exists(table, output):
        _check_columns(_columns(table, output), table)


def _commit(
    spark: SparkSession, table: Table, output: str, runs: Sequence[str], files: Sequence[File]
) -> None:
    """One Delta transaction: all files of `runs` go, `files` come, and the table is made if it is not there."""
    jvm: Any = spark._jvm
    session = spark._jsparkSession
    delta = jvm.org.apache.spark.sql.delta
    begun = delta.DeltaLog.forTable(session, path(table, output)).startTransaction()
    actions = jvm.java.util.ArrayList()
    if exists(table, output):
        known = begun.filterFiles().iterator()
        while known.hasNext():
            file = known.next()
            if file.partitionValues().apply(RUN) in runs:
                actions.add(file.remove())
    else:
        begun.updateMetadata(_action(jvm, "metaData", _metadata(jvm, table)), False)
    now = int(time.time() * 1000)
    for one in files:
        kind = {parquet.KIND: one.kind} if table.parts else {}
        added = {
            "path": one.path,
            "partitionValues": {RUN: runs[0], **kind},
            "size": one.size_bytes,
            "modificationTime": now,
            "dataChange": True,
            "stats": json.dumps({"numRecords": one.row_count}),
        }
        actions.add(_action(jvm, "add", added))
    operation = getattr(delta, "DeltaOperations$ManualUpdate$").__getattr__("MODULE$")
    begun.commit(jvm.scala.jdk.javaapi.CollectionConverters.asScala(actions).toSeq(), operation)
    _hook(f"after {table.layer}.{table.name}")


def _metadata(jvm: Any, table: Table) -> dict[str, Any]:
    """Action that makes the table (Delta protocol: Change Metadata)."""
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(_with_run(table).ddl()).json()
    return {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [RUN, *((parquet.KIND,) if table.parts else ())],
        # `files` reads the commits of runs that are kept, so Delta must not remove them after its thirty days.
        "configuration": {
            "delta.dataSkippingNumIndexedCols": "0",
            "delta.enableExpiredLogCleanup": "false",
        },
    }


def _action(jvm: Any, name: str, content: dict[str, Any]) -> Any:
    action = jvm.org.apache.spark.sql.delta.actions.Action
    return action.fromJson(json.dumps({name: content}))


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
    _check_columns(_columns(table, output), table)
    held = [file for file, _ in files(table, output, run_id)]
    if not held:
        return empty(spark, table)
    source = spark.read.schema(_with_run(table).ddl()).option("basePath", path(table, output))
    return source.parquet(*held).select(*table.names)


def read_runs(spark: SparkSession, table: Table, output: str) -> DataFrame:
    """All runs of a table with their `run_id`.

    Raises:
        OutputConflict: The table was written by another version.
    """
    rows = spark.read.format("delta").load(path(table, output))
    _check_columns(rows.columns, table)
    return rows


def _with_run(table: Table) -> Table:
    return table._replace(columns=(*_stored(table).columns, Column(RUN, "string", "Run.")))


def _columns(table: Table, output: str) -> list[str]:
    """Columns that the table was made with (Delta protocol: `metaData.schemaString`)."""
    first = Path(path(table, output), "_delta_log", f"{0:020}.json")
    for line in first.read_text(encoding="utf-8").splitlines():
        action = json.loads(line)
        if "metaData" in action:
            fields = json.loads(action["metaData"]["schemaString"])["fields"]
            return [field["name"] for field in fields]
    raise AuditError(f"{table.layer}.{table.name}: its first commit declares no columns")


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


def _hook(point: str) -> None:
    if COMMIT_HOOK is not None:
        COMMIT_HOOK(point)
