"""Commits of files to tables of many nights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.spark import commits, parquet
from schemas import gold

pytestmark = pytest.mark.spark
CHECKPOINT_EVERY = 10
"""Delta's default."""


def test_a_table_with_a_checkpoint_takes_commits_made_beside_the_work(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As in a new process, which knows nothing of the table yet."""
    folder = str(tmp_path / "table")
    kept = [column for column in gold.METRIC.columns if column.name != commits.RUN]
    table = gold.METRIC._replace(columns=tuple(kept))
    for night in range(CHECKPOINT_EVERY + 1):
        commits.add(spark, table, folder, [f"night-{night}"], [])
    assert list(Path(folder, "_delta_log").glob("*.checkpoint.parquet"))
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    with commits.beside():
        commits.add(spark, table, folder, ["one-more"], [])
    assert Path(folder, "_delta_log", f"{CHECKPOINT_EVERY + 1:020}.json").exists()


def test_only_a_run_that_the_log_names_is_asked_for_its_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A question to Delta is a Spark job, of each of some twenty tables each night."""
    folder, context = str(tmp_path / "table"), spark.sparkContext
    kept = [column for column in gold.METRIC.columns if column.name != commits.RUN]
    table = gold.METRIC._replace(columns=tuple(kept))
    asked = {}
    try:
        for place, run in enumerate(["monday", "tuesday", "monday"]):
            context.setJobGroup(f"commit {place}", run)
            file = parquet.File(f"run_id={run}/{place}.parquet", "", 1, 1)
            commits.add(spark, table, folder, [run], [file])
            asked[place] = len(context.statusTracker().getJobIdsForGroup(f"commit {place}"))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert asked[1] < asked[2]
    assert [path for path, _ in commits.added(folder, "monday")] == ["run_id=monday/2.parquet"]
