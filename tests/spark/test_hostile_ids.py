"""Ids, whatever they hold: a shell reads each as one word of a command, and rows that are printed draw nothing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import catalog
from pipeline.detect.finding import text
from tests.report.hostile import corpus

pytestmark = pytest.mark.spark
NESTED = [
    ("t $(x) u", "$(x)"),
    ("a'b", "'"),
    ("$(x)", "t $(x) u"),
    (" ", "e"),
    ("plain", "plain\n"),
]


def test_each_id_is_one_word(spark: SparkSession) -> None:
    held = [one for one in corpus() if one.isprintable() or one.isascii()]
    pairs = [*NESTED, *zip(held, reversed(held), strict=True)]
    rows = spark.createDataFrame(pairs, "topic string, transactional_id string")
    command = text("run --id {transactional_id:shell} --topic {topic:shell}")
    said = [row["said"] for row in rows.select(command.alias("said")).collect()]
    for (topic, name), one in zip(pairs, said, strict=True):
        assert one == shlex.join(["run", "--id", name, "--topic", topic])


def test_no_id_reads_none(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(None,)], "topic string")
    assert rows.select(text("{topic:shell}").alias("said")).collect()[0]["said"] == "none"


@pytest.mark.parametrize("is_vertical", [False, True])
def test_printed_rows_draw_nothing(
    spark: SparkSession, is_vertical: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    held = [(one, 1) for one in corpus() if one.encode("utf-8", "replace").decode() == one]
    catalog.show(spark.createDataFrame(held, "id string, n int"), 1_000, is_vertical=is_vertical)
    said = capsys.readouterr().out
    assert "\\x1b[31mred" in said
    assert all(one.isprintable() for one in said.split("\n"))


def test_notebooks_print_so() -> None:
    for file in (Path(__file__).resolve().parents[2] / "notebooks").glob("*.py"):
        assert not re.search(r"(?<!catalog)\.show\(", file.read_text(encoding="utf-8")), file.name
