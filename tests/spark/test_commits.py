"""Commits of files to tables of many nights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.spark import commits
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


def test_a_further_night_asks_no_spark_job(spark: SparkSession, tmp_path: Path) -> None:
    """Only a run that the log names has files to be taken out."""
    folder, context = str(tmp_path / "table"), spark.sparkContext
    kept = [column for column in gold.METRIC.columns if column.name != commits.RUN]
    table = gold.METRIC._replace(columns=tuple(kept))
    commits.add(spark, table, folder, ["monday"], [])
    try:
        context.setJobGroup("tuesday", "a commit")
        commits.add(spark, table, folder, ["tuesday"], [])
        context.setJobGroup("a question", "of which Spark makes a job")
        spark.range(1).count()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    jobs = context.statusTracker().getJobIdsForGroup
    assert list(jobs("tuesday")) == []
    assert list(jobs("a question")) != []
