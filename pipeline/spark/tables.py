"""The Delta tables under the output root; the only module that knows Delta.

A table is partitioned by `run_id` and replaced by run, so a run that is killed and started again with the same id ends in
the same tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.table import Table

RUN = "run_id"
SCHEMA_VERSION = "1"
VERSION_PROPERTY = "audit.schemaVersion"

COMMIT_HOOK: Callable[[str], None] | None = None
"""Called with `before <table>` and `after <table>` around every commit; tests inject failures here."""


def path(table: Table, output: str) -> str:
    """Folder of a physical table."""
    return os.path.join(output, table.layer, table.name)


def exists(table: Table, output: str) -> bool:
    """Whether the table was ever committed."""
    return Path(path(table, output), "_delta_log").is_dir()


def replace(rows: DataFrame, table: Table, output: str, run_id: str, by: tuple[str, ...] = ()) -> None:
    """Replaces one run's rows of a table in one commit.

    Args:
        rows: The table's columns by name, `run_id` excepted.
        table: Declaration.
        output: Output root.
        run_id: Run whose rows are replaced.
        by: Further partition columns.
    """
    name = f"{table.layer}.{table.name}"
    _hook(f"before {name}")
    shaped = rows.select(
        *(column.name for column in table.columns if column.name != RUN), F.lit(run_id).alias(RUN)
    )
    writer = (
        shaped.write.format("delta")
        .mode("overwrite")
        .partitionBy(RUN, *by)
        .option("delta.dataSkippingNumIndexedCols", "0")
        .option(VERSION_PROPERTY, SCHEMA_VERSION)
    )
    if exists(table, output):
        quoted = run_id.replace("'", "''")
        writer = writer.option("replaceWhere", f"{RUN} = '{quoted}'")
    writer.save(path(table, output))
    _hook(f"after {name}")


def read(spark: SparkSession, table: Table, output: str, run_id: str | None = None) -> DataFrame:
    """Reads a table, or one run of it; without its `run_id` column unless the declaration has one."""
    rows = spark.read.format("delta").load(path(table, output))
    if run_id is not None:
        rows = rows.filter(F.col(RUN) == run_id)
    return rows.select(*table.names)


def empty(spark: SparkSession, table: Table) -> DataFrame:
    """No rows, the table's columns."""
    return spark.createDataFrame([], table.ddl())


def _hook(point: str) -> None:
    if COMMIT_HOOK is not None:
        COMMIT_HOOK(point)
