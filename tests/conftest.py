"""What all tests share: one Spark session, made when the first test asks for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The session of all Spark tests: one shuffle partition, no adaptive execution."""
    from pipeline.spark import session

    options = []
    for setting in (
        "spark.sql.shuffle.partitions=1",
        "spark.sql.adaptive.enabled=false",
        "spark.databricks.delta.snapshotPartitions=1",
    ):
        options += ["--conf", setting]
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    return session.build(options=options, log=log)
