"""The documented calls on an output root: every logical table as a view for SQL, and rows printed for people."""

from __future__ import annotations

import contextlib
import io
import json
import sys

from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import UsageError
from pipeline.replay.application import told
from pipeline.spark import bronze, silver_views, stored, tables
from pipeline.text import sanitise
from schemas import gold
from schemas.bronze import SEGMENT
from schemas.silver import TABLES as SILVER


def open_tables(spark: SparkSession, output: str, run_id: str | None = None) -> str | None:
    """Registers `bronze_*`, `silver_*` and `gold_*` as temporary views, and the function `application` for SQL.

    Bronze and gold views hold all runs, told apart by `run_id`; silver views hold one run.
    `application(transactional_id)` is the application that an id tells and its framework, by the rules of that run;
    null where it tells none.

    Args:
        spark: A session with Delta, as `pipeline.spark.session.build` makes it.
        output: Output root of an audit.
        run_id: The run of the silver views; the newest completed one when not given.

    Returns:
        The run of the silver views; None when no run was completed.

    Raises:
        UsageError: No output, or no such run in it; views would be empty, which looks like nothing found.
    """
    if not any(tables.exists(table, output) for table in (SEGMENT, *gold.TABLES)):
        raise UsageError(sanitise(f"no completed run in {output}: it holds no tables of an audit"))
    if run_id is not None:
        completed_runs(output, run_id)
    bronze.register(spark, output)
    for table in gold.TABLES:
        if tables.exists(table, output):
            tables.read(spark, table, output).createOrReplaceTempView(table.view_name)
    chosen = run_id or newest_run(output)
    if chosen is not None:
        for table in SILVER:
            silver_views.view(spark, table, output, chosen).createOrReplaceTempView(table.view_name)
    pattern = _pattern(output, chosen)
    spark.udf.register("application", lambda one: told(one or "", pattern) or None, "string")
    return chosen


def show(rows: DataFrame, count: int = 20, *, is_vertical: bool = False) -> None:
    """Prints rows whole, as `DataFrame.show` does; nothing that an id holds reaches the terminal as a command.

    Args:
        rows: What to print.
        count: So many rows at most.
        is_vertical: A line a value instead of a line a row.
    """
    table = io.StringIO()
    with contextlib.redirect_stdout(table):
        rows.show(count, truncate=False, vertical=is_vertical)
    lines = table.getvalue().split("\n")
    sys.stdout.write("\n".join(map(sanitise, lines)) + "\n")


def _pattern(output: str, run_id: str | None) -> str | None:
    """`health.application_pattern` of a completed run."""
    for row in stored.completed(output):
        if row["run_id"] == run_id:
            found: str | None = json.loads(row["summary"]).get("application_pattern")
            return found
    return None


def newest_run(output: str) -> str | None:
    """Id of the newest completed run."""
    return next(reversed(completed_runs(output)), None)


def completed_runs(output: str, *wanted: str) -> list[str]:
    """Ids of the completed runs, oldest first.

    Args:
        output: Output root.
        wanted: Runs that have to be in it, completed or not.

    Raises:
        UsageError: One of them is not.
    """
    runs = [row["run_id"] for row in stored.completed(output)]
    begun = tables.partition_folders(SEGMENT, output)
    for one in wanted:
        if one not in runs and one not in begun:
            held = ", ".join(runs[-5:]) or "none"
            raise UsageError(
                sanitise(f"{output} holds no run {one}; its newest completed ones: {held}")
            )
    return runs
