"""Answers a question in SQL from the tables of an audit: `python -m docs.ask OUTPUT QUESTION`.

The question is a number of `docs/sql.md` or a query of its own on the same views.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from pyspark.sql import SparkSession

from pipeline import catalog
from pipeline.errors import UsageError
from pipeline.spark import session
from pipeline.text import sanitise

PAGE = Path(__file__).with_name("sql.md")
QUERY = re.compile(r"^## (\d+)\. .*?^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)


def queries() -> dict[int, str]:
    """Number -> query of `docs/sql.md`."""
    return {int(number): text for number, text in QUERY.findall(PAGE.read_text(encoding="utf-8"))}


def answer(spark: SparkSession, output: str, question: str) -> list[str]:
    """The rows as lines of a table, its heading first.

    Args:
        spark: The session.
        output: Output root; its newest completed run is asked.
        question: A number of `docs/sql.md`, or SQL.

    Raises:
        UsageError: no such question, or no completed run.
    """
    known = queries()
    if question.isdigit() and int(question) not in known:
        raise UsageError(f"docs/sql.md has the questions 1 to {max(known)}")
    if catalog.open_tables(spark, output) is None:
        raise UsageError(f"no completed run in {sanitise(output)}")
    return rows(spark, known[int(question)] if question.isdigit() else question)


def rows(spark: SparkSession, query: str) -> list[str]:
    """The rows of a query on the views that are open, as lines of a table, its heading first."""
    frame = spark.sql(query)
    cells = [frame.columns, *([_text(value) for value in row] for row in frame.collect())]
    wide = [max(len(row[number]) for row in cells) for number in range(len(frame.columns))]
    lines = ["  ".join(map(str.ljust, row, wide)).rstrip() for row in cells]
    return lines if len(lines) > 1 else [*lines, "(no row)"]


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + "Z"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return "" if value is None else sanitise(str(value))


def main(arguments: Sequence[str]) -> int:
    """Prints an answer; returns the exit code."""
    if len(arguments) != 2:
        click.echo("error: python -m docs.ask OUTPUT QUESTION", err=True)
        return 2
    try:
        lines = answer(session.build(), *arguments)
    except UsageError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    click.echo("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
