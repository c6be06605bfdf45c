"""The data source for notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.spark import source
from pipeline.spark.plan import plan
from pipeline.spark.read_file import read_task
from pipeline.spark.tasks import tasks_of
from tests import builders
from tests.log_layout import LogDir
from tests.recordings import recording

pytestmark = pytest.mark.spark


@pytest.fixture
def load(spark: SparkSession):  # type: ignore[no-untyped-def]  # a function of keyword arguments
    source.register(spark)

    def read(root: Path, **options: str) -> DataFrame:
        return spark.read.format(source.FORMAT).options(**options).load(str(root))

    return read


def test_every_view_has_its_columns_and_rows(load) -> None:  # type: ignore[no-untyped-def]  # see load
    root = recording("06") / "logs"
    counts = {}
    for name, view in source.VIEWS.items():
        rows = load(root, view=name)
        assert rows.columns == list(view.table.names)
        counts[name] = len(rows.collect())
    tasks = tasks_of(plan([str(root)]))
    expected = dict.fromkeys(("batch", "txn_state", "scan"), 0)
    for task in tasks:
        for batch in read_task(task, headers_only=True):
            kind = batch.column(0)[0].as_py()
            expected[kind] = expected.get(kind, 0) + batch.num_rows
    assert counts["batches"] == expected["batch"]
    assert counts["segments"] == expected["scan"]
    assert counts["txn_state"] == 66
    assert counts["producer_snapshots"] + counts["aborted_txns"] == expected["sidecar"]
    assert counts["checkpoints"] > 0
    assert counts["unreadable"] == 0


def test_filters_of_one_query_do_not_reach_the_next(load) -> None:  # type: ignore[no-untyped-def]  # see load
    rows = load(recording("06") / "logs")
    everything = rows.count()
    assert 0 < rows.filter("is_control").count() < everything
    assert rows.count() == everything


def test_an_empty_folder_has_no_rows(load, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # see load
    for name in source.VIEWS:
        assert load(tmp_path, view=name).collect() == []


def test_damage_is_a_view(load, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # see load
    LogDir(tmp_path).segment("orders", 0, [builders.batch(0, 1), builders.batch(1, 1)[:-1]])
    (damage,) = load(tmp_path, view="unreadable").collect()
    assert (damage["reason"], damage["after_offset"]) == ("torn_tail", 0)
    (segment,) = load(tmp_path, view="segments").collect()
    assert (segment["last_offset"], segment["is_superseded"]) == (0, False)


def test_wrong_use_names_what_is_wrong(load, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # see load
    with pytest.raises(PySparkException, match="did you mean 'batches'"):
        load(tmp_path, view="batchs").collect()
    with pytest.raises(PySparkException, match="does not exist"):
        load(tmp_path / "none").collect()
