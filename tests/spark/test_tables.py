"""Replacing runs in Delta tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.errors import OutputConflict
from pipeline.spark import commits, tables
from schemas.table import Column, Table

pytestmark = pytest.mark.spark
THING = Table("gold", "thing", "A thing.", (Column("name", "string", "Name."),), ("name",))


def write(
    spark: SparkSession, output: Path, run_id: str, *names: str, also: tuple[str, ...] = ()
) -> None:
    rows = tables.local(spark, [(name,) for name in names], THING.ddl())
    tables.replace(rows, THING, str(output), run_id, also=also)


def content(spark: SparkSession, output: Path) -> list[tuple[str, str]]:
    rows = tables.read_runs(spark, THING, str(output)).collect()
    return sorted((row[tables.RUN], row["name"]) for row in rows)


def test_a_run_replaces_its_own_rows_only(spark: SparkSession, tmp_path: Path) -> None:
    assert not tables.exists(THING, str(tmp_path))
    write(spark, tmp_path, "one", "a", "b")
    write(spark, tmp_path, "two", "c")
    write(spark, tmp_path, "one", "d")
    assert content(spark, tmp_path) == [("one", "d"), ("two", "c")]
    read = tables.read(spark, THING, str(tmp_path), "two")
    assert (read.columns, read.count()) == (["name"], 1)
    write(spark, tmp_path, "three", "e", also=("one",))
    assert content(spark, tmp_path) == [("three", "e"), ("two", "c")]
    assert tables.partition_folders(THING, str(tmp_path)) == {"one", "two", "three"}


def test_delta_keeps_the_commits_that_name_the_files_of_a_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(spark, tmp_path, "one", "a")
    (row,) = spark.sql(f"DESCRIBE DETAIL delta.`{tables.path(THING, str(tmp_path))}`").collect()
    assert row["properties"]["delta.enableExpiredLogCleanup"] == "false"


def test_a_log_folder_without_a_commit_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    Path(tables.path(THING, str(tmp_path)), "_delta_log").mkdir(parents=True)
    assert not tables.exists(THING, str(tmp_path))
    write(spark, tmp_path, "one", "a")
    assert content(spark, tmp_path) == [("one", "a")]


def test_columns_of_another_version_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, "one", "a")
    newer = THING._replace(columns=(*THING.columns, Column("size", "long", "Size.", True)))
    with pytest.raises(OutputConflict, match="size"):
        tables.read(spark, newer, str(tmp_path))
    rows = tables.local(spark, [("a", 1)], newer.ddl())
    with pytest.raises(OutputConflict, match="size"):
        tables.replace(rows, newer, str(tmp_path), "two")


def test_the_hook_stands_before_and_behind_each_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    points: list[str] = []

    def kill(deadly: str, point: str) -> None:
        points.append(point)
        if point.startswith(deadly):
            raise Killed

    for deadly, survives in (("before", False), ("after", True)):
        monkeypatch.setattr(commits, "COMMIT_HOOK", partial(kill, deadly))
        with pytest.raises(Killed):
            write(spark, tmp_path, "one", "a")
        assert tables.exists(THING, str(tmp_path)) is survives
    assert points == ["before gold.thing", "before gold.thing", "after gold.thing"]


def test_commits_beside_the_work_promise_their_files_and_keep_their_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[str] = []
    monkeypatch.setattr(commits, "COMMIT_HOOK", reached.append)
    output = str(tmp_path / "odd [1] {a,b} *?")
    with commits.beside():
        write(spark, Path(output), "one", "a")
        write(spark, Path(output), "two", "b")
        write(spark, Path(output), "two", "c")
        promised = {run: tables.read(spark, THING, output, run).collect() for run in ("one", "two")}
        assert tables.exists(THING, output)
    assert {run: [row["name"] for row in rows] for run, rows in promised.items()} == {
        "one": ["a"],
        "two": ["c"],
    }
    assert [point for point in reached if point.startswith("after")] == ["after gold.thing"] * 3
    assert content(spark, Path(output)) == [("one", "a"), ("two", "c")]


def test_nothing_is_committed_behind_a_commit_that_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hook(point: str) -> None:
        if point.startswith("after"):
            raise OSError("no space left on device")

    def both() -> None:
        with commits.beside():
            write(spark, tmp_path, "one", "a")
            write(spark, tmp_path, "two", "b")

    monkeypatch.setattr(commits, "COMMIT_HOOK", hook)
    with pytest.raises(OSError, match="no space left"):
        both()
    monkeypatch.setattr(commits, "COMMIT_HOOK", None)
    assert content(spark, tmp_path) == [("one", "a")]
