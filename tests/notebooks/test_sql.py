"""Every query of docs/sql.md runs on one audited output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import catalog
from tests.notebooks.conftest import NOW

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
QUERY = re.compile(r"^## (\d+)\. .*?^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOTHING_TO_FIND = {5, 8, 9, 15}


def test_queries(spark: SparkSession, output: Path) -> None:
    page = (ROOT / "docs/sql.md").read_text(encoding="utf-8")
    queries = {int(number): text for number, text in QUERY.findall(page)}
    assert set(queries) == set(range(1, 17))
    assert page.count("```sql") == len(queries)
    assert catalog.open_tables(spark, str(output)) == NOW
    rows = {number: spark.sql(text).collect() for number, text in queries.items()}
    assert {number for number, found in rows.items() if not found} <= NOTHING_TO_FIND
    judged = {row["first_offset"]: row["judgement"] for row in rows[3] if row["partition"] == 1}
    assert judged == {6: "not_in_transaction"}
    lags = {row["partition"]: row["lag"] for row in rows[4] if row["topic"] == "h-topic"}
    assert lags == {1: 8, 2: 7, 3: 7, 5: 7}
    back = [(row["previous_committed_offset"], row["committed_offset"]) for row in rows[14]]
    assert (8, 2) in back
