"""Every query of docs/sql.md runs on one audited output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from pipeline import catalog
from pipeline.config_sections import Health
from tests.notebooks.conftest import NOW
from tests.recordings import recording
from tests.spark.audited import audited

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
QUERY = re.compile(r"^## (\d+)\. .*?^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOTHING_TO_FIND = {5, 8, 9, 15}
"""Of these two nights; of other copies there is: see below."""


def _queries() -> dict[int, str]:
    page = (ROOT / "docs/sql.md").read_text(encoding="utf-8")
    queries = {int(number): text for number, text in QUERY.findall(page)}
    assert page.count("```sql") == len(queries)
    return queries


def test_queries(spark: SparkSession, output: Path) -> None:
    queries = _queries()
    assert set(queries) == set(range(1, 18))
    assert catalog.open_tables(spark, str(output)) == NOW
    rows = {number: spark.sql(text).collect() for number, text in queries.items()}
    assert {number for number, found in rows.items() if not found} <= NOTHING_TO_FIND
    judged = {row["first_offset"]: row["judgement"] for row in rows[3] if row["partition"] == 1}
    assert judged == {6: "not_in_transaction"}
    lags = {row["partition"]: row["lag"] for row in rows[4] if row["topic"] == "h-topic"}
    assert lags == {1: 8, 2: 7, 3: 7, 5: 7}
    back = [(row["previous_committed_offset"], row["committed_offset"]) for row in rows[14]]
    assert (8, 2) in back
    assert sum(row["transactions"] for row in rows[17]) == spark.table("silver_transaction").count()


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        (None, ["pay (Kafka Streams v1)", "orders", None, None]),
        (r"(?P<application>[a-z]+)-\d_\d", ["pay", "orders", None, None]),
    ],
)
def test_applications_in_sql(
    spark: SparkSession, tmp_path: Path, pattern: str | None, told: list[str | None]
) -> None:
    """By the rules of the run that was opened."""
    health = Health(application_pattern=pattern)
    audited(spark, recording("04a") / "logs", tmp_path, health=health)
    catalog.open_tables(spark, str(tmp_path))
    ids = "values (0, 'pay-0_1'), (1, 'orders-7'), (2, 'solo'), (3, null) as t(n, id)"
    asked = f"select application(id) as name from {ids} order by n"
    assert [row["name"] for row in spark.sql(asked).collect()] == told


def _answers(spark: SparkSession, name: str, output: Path) -> dict[int, list[Row]]:
    audited(spark, recording(name) / "logs", output)
    catalog.open_tables(spark, str(output))
    queries = _queries()
    return {number: spark.sql(queries[number]).collect() for number in NOTHING_TO_FIND}


def test_queries_about_timeouts(spark: SparkSession, tmp_path: Path) -> None:
    rows = _answers(spark, "04a", tmp_path)
    assert {row["transactional_id"] for row in rows[8]} == {"to-1", "to-2", "to-3"}
    assert all(3_000 <= row["lasted_ms"] < 5_000 for row in rows[8])
    assert rows[5]
    assert not rows[15]


def test_queries_about_fences_and_live_copies(spark: SparkSession, tmp_path: Path) -> None:
    fenced = {
        row["transactional_id"]: row["fences"]
        for row in _answers(spark, "05a", tmp_path / "fences")[9]
    }
    assert sum(fenced.values()) == 3
    live = _answers(spark, "11a", tmp_path / "live")
    assert {row["is_one_instant"] for row in live[15]} == {False}
