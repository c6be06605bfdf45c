"""Ingest into Delta: complete, once, and the same whenever it was killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.spark import bronze as ingesting
from pipeline.spark import commits, tables
from pipeline.spark.plan import plan
from pipeline.spark.read_file import read_task
from pipeline.spark.tasks import tasks_of
from schemas import bronze
from schemas.table import Table
from tests import builders
from tests.log_layout import LogDir
from tests.recordings import recording

pytestmark = pytest.mark.spark


class Killed(Exception):
    """The process ended here."""


def ingest(spark: SparkSession, root: Path, output: Path, run_id: str) -> ingesting.Ingested:
    found = ingesting.ingest(spark, plan([str(root)]), str(output), run_id)
    ingesting.write_segments(spark, found, str(output), run_id)
    return found


def rows_of(spark: SparkSession, table: Table, output: Path, run_id: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, ingesting.view(spark, table, str(output), run_id).collect()), key=repr)


def content(spark: SparkSession, output: Path, run_id: str) -> dict[str, list[tuple[Any, ...]]]:
    return {table.name: rows_of(spark, table, output, run_id) for table in bronze.TABLES}


def registered(spark: SparkSession, output: Path) -> dict[str, dict[str, int]]:
    ingesting.register(spark, str(output))
    found = {}
    for table in bronze.TABLES:
        assert spark.table(table.view_name).columns == [tables.RUN, *table.names]
        counts = spark.table(table.view_name).groupBy(tables.RUN).count().collect()
        found[table.name] = {row[tables.RUN]: row["count"] for row in counts}
    return found


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commit points at which the process ends."""
    deadly: list[str] = []

    def stop(point: str) -> None:
        if point in deadly:
            raise Killed

    monkeypatch.setattr(commits, "COMMIT_HOOK", stop)
    return deadly


def test_tables_hold_what_the_readers_yield(spark: SparkSession, tmp_path: Path) -> None:
    root = recording("06") / "logs"
    expected: Counter[str] = Counter()
    for task in tasks_of(plan([str(root)])):
        for batch in read_task(task):
            expected[batch.column(0)[0].as_py()] += batch.num_rows
    found = ingest(spark, root, tmp_path, "run")
    tables_of = content(spark, tmp_path, "run")
    for name in ("batch", "txn_state", "offset_commit", "group_metadata"):
        assert len(tables_of[name]) == expected[name], name
    assert len(tables_of["segment"]) == len(found.segments) == expected["scan"]
    kinds = Counter(row[bronze.SIDECAR.names.index("entry_kind")] for row in tables_of["sidecar"])
    assert kinds["producer_snapshot"] + kinds["aborted_txn"] == expected["sidecar"]
    assert {"leader_epoch", "replication-offset-checkpoint"} <= set(kinds)
    columns = bronze.SEGMENT.names.index("batch_count"), bronze.SEGMENT.names.index("is_superseded")
    assert all(row[columns[0]] > 0 and not row[columns[1]] for row in tables_of["segment"])


def test_a_killed_ingest_is_invisible_and_goes_with_the_next_run(
    spark: SparkSession, tmp_path: Path, hook: list[str]
) -> None:
    root = recording("06") / "logs"
    output = tmp_path / "output"
    ingest(spark, root, output, "first")
    before = registered(spark, output)
    for point in ("before bronze.entry", "after bronze.entry", "before bronze.segment"):
        hook[:] = [point]
        with pytest.raises(Killed):
            ingest(spark, root, output, "second")
        assert registered(spark, output) == before
    hook.clear()
    ingest(spark, root, output, "second")
    hook[:] = ["before bronze.segment"]
    with pytest.raises(Killed):
        ingest(spark, root, output, "third")
    hook.clear()
    ingest(spark, root, output, "fourth")
    entries = tables.read_runs(spark, bronze.ENTRY, str(output)).select(tables.RUN).distinct()
    assert {row[tables.RUN] for row in entries.collect()} == {"first", "second", "fourth"}
    whole = content(spark, output, "first")
    assert content(spark, output, "second") == content(spark, output, "fourth") == whole


def test_damage_and_overlaps_reach_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    made = LogDir(tmp_path / "input")
    made.segment("orders", 0, [builders.batch(n, 1) for n in range(10)])
    torn = builders.batch(14, 1)[:30]
    made.segment("orders", 0, [*(builders.batch(n, 1) for n in range(6, 14))])
    with (made.partition("orders", 0) / "00000000000000000006.log").open("ab") as stream:
        stream.write(torn)
    top = made.finish()
    (top / "cleaner-offset-checkpoint").write_text("0\n9\n")
    output = tmp_path / "output"
    found = ingest(spark, tmp_path / "input", output, "run")
    assert list(found.keep_from.values()) == [10]
    assert [row["reason"] for row in found.unreadable] == ["torn_tail"]
    reasons = [row[5] for row in rows_of(spark, bronze.UNREADABLE, output, "run")]
    assert bronze.UNREADABLE.names[5] == "reason"
    assert sorted(reasons) == ["bad_record", "torn_tail"]


def test_an_empty_input_is_an_ingest_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    found = ingest(spark, tmp_path / "input", tmp_path / "output", "run")
    assert (found.segments, found.unreadable) == ([], [])
    assert not any(content(spark, tmp_path / "output", "run").values())
