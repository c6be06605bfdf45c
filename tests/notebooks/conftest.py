"""One audited output for everything below: a hanging transaction, group offsets, and a night before."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.spark import tables
from schemas import gold
from tests.recordings import recording
from tests.spark.audited import audited, laid_out

BEFORE, NOW = "before", "now"


@pytest.fixture(scope="session")
def output(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output root of the run `NOW`, and of `BEFORE`, which lacked one of its findings."""
    root = tmp_path_factory.mktemp("notebooks")
    folders = {name: recording(name) / "logs" for name in ("06", "16a")}
    output = root / "output"
    audited(spark, laid_out(folders, root / "copies"), output, run_id=NOW)
    for table, kept in (
        (gold.FINDING, "producer_id is null or producer_id <> 424242"),
        (gold.RUN, "true"),
    ):
        rows = tables.read(spark, table, str(output)).filter(kept).toArrow().to_pylist()
        earlier = {"run_id": BEFORE, "sequence": -1}
        changed = [tuple((row | earlier)[name] for name in table.names) for row in rows]
        tables.replace_rows(spark, changed, table, str(output), BEFORE)
    return output
