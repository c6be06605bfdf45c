"""The answers of docs/faq.md are what its commands print now."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from docs import ask
from docs.answers import BLOCK, PAGE, PREPARED, Answers, _chosen
from pipeline.errors import UsageError
from tests.recordings import recording


def test_only_the_lines_asked_for() -> None:
    lines = [f"line {number}" for number in range(1, 7)]
    assert _chosen(lines, None) == lines
    assert _chosen(lines, "1-2, 5") == ["line 1", "line 2", "...", "line 5", "..."]
    assert _chosen(lines, "2-6") == ["...", *lines[1:]]


def test_every_block_of_the_page_is_a_command_with_an_answer() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = [found["said"] for found in BLOCK.finditer(text)]
    assert len(blocks) == text.count("```console") == text.count("\n### ")
    assert all(said.strip() for said in blocks)


@pytest.mark.spark
@pytest.mark.slow
def test_the_answers_are_those_of_now(spark: SparkSession, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = PREPARED.search(text)
    assert found is not None
    answers = Answers(spark, tmp_path)
    for name in found[1].split():
        logs = recording(name) / "logs"
        answers.run(f"./spark-submit.sh --input {logs} --output audits/{name}")
    assert answers.page(text) == text, "run: python -m docs.answers"


@pytest.mark.spark
@pytest.mark.slow
def test_a_question_that_nobody_wrote(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="questions 1 to"):
        ask.answer(spark, str(tmp_path), "99")
    with pytest.raises(UsageError, match="no completed run"):
        ask.answer(spark, str(tmp_path), "1")
