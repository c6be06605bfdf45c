"""A finding of an earlier run is resolved only where this run shows its end."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline import lifecycle
from pipeline.findings import with_status
from pipeline.spark import tables
from schemas import silver
from schemas.table import Table

pytestmark = pytest.mark.spark

RUNS = "topic string, partition int, producer_id bigint, first_offset bigint, marker_offset bigint"
JUDGED = {"hanging_transaction": None, "duplicate_batch": None}


class _Run:
    """As much of a run as the question needs."""

    def __init__(self, spark: SparkSession) -> None:
        rows = [("t", 0, 7, 5, 9), ("t", 1, 7, 5, None)]
        self.tables = {silver.PARTITION_TXN: tables.local(spark, rows, RUNS)}

    def silver(self, table: Table) -> DataFrame:
        return self.tables[table]


def _finding(name: str, code: str = "hanging_transaction", **fields: Any) -> dict[str, Any]:
    plain = {
        "finding_id": name, "code": code, "class": "orphan_producer", "severity": "critical",
        "certainty": "proven", "topic": "t", "partition": 0, "producer_id": 7, "first_offset": 5,
        "status": "new",
    }  # fmt: skip
    return plain | fields


def _statuses(
    spark: SparkSession, previous: list[dict[str, Any]], attempts: dict[str, str | None]
) -> dict[str, str]:
    run: Any = _Run(spark)
    found = with_status([], previous, lambda gone: lifecycle.over(run, attempts, gone))
    return {one["finding_id"]: one["status"] for one in found}


def test_only_a_run_that_is_closed_now_is_resolved(spark: SparkSession) -> None:
    previous = [
        _finding("closed"),
        _finding("still open, in flight", partition=1),
        _finding("not copied", partition=2),
        _finding("a fact that never ends", code="duplicate_batch", **{"class": "exact"}),
    ]
    assert _statuses(spark, previous, JUDGED) == {
        "closed": "resolved",
        "still open, in flight": "not_seen",
        "not copied": "not_seen",
        "a fact that never ends": "not_seen",
    }


def test_nothing_is_resolved_by_a_detector_that_was_not_attempted(spark: SparkSession) -> None:
    attempts = {"hanging_transaction": "not attempted: needs .log files"}
    assert _statuses(spark, [_finding("closed")], attempts) == {"closed": "not_seen"}


def test_what_is_found_again_is_open() -> None:
    found = with_status([_finding("again"), _finding("fresh")], [_finding("again")], pytest.fail)
    assert {one["finding_id"]: one["status"] for one in found} == {"again": "open", "fresh": "new"}
