"""The same input again: the next night, another place, other settings, killed at its commits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from pipeline.audit import AuditResult
from pipeline.spark import commits
from tests.recordings import recording
from tests.score import complaints, expected
from tests.spark.audited import audited, content, found

pytestmark = pytest.mark.spark
RUN_ID = "night"
COMMITS = (
    "bronze.entry", "bronze.segment", "silver.replica", "silver.committed_offset",
    "silver.coordinator", "silver.partition_history", "gold.finding", "gold.run",
)  # fmt: skip
EVERY = [f"{when} {commit}" for commit in COMMITS for when in ("before", "after")]
SOME = ["after bronze.entry", "before silver.partition_history", "after gold.finding"]
POINTS = EVERY if os.environ.get("AUDIT_FULL") == "1" else SOME


class Night(NamedTuple):
    """One audit of 06 from beginning to end."""

    output: Path
    result: AuditResult
    findings: bytes


class Killed(Exception):
    """Raised at a commit, as if the process had ended there."""


@pytest.fixture(scope="module")
def night(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Night:
    output = tmp_path_factory.mktemp("night")
    result = audited(spark, recording("06") / "logs", output, run_id=RUN_ID)
    return Night(output, result, _written(result))


def _written(result: AuditResult) -> bytes:
    return Path(result.output_dir, "findings.jsonl").read_bytes()


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Points at which commits end the run; the first one that is reached is taken off."""
    points: list[str] = []

    def hook(point: str) -> None:
        if points and points[0] == point:
            points.pop(0)
            raise Killed(point)

    monkeypatch.setattr(commits, "COMMIT_HOOK", hook)
    return points


def test_killed_runs_and_other_settings_end_in_the_same_tables(
    spark: SparkSession, night: Night, killed_at: list[str], tmp_path: Path
) -> None:
    """Each run is killed a little later, in one output; the last one ends."""
    for point in POINTS:
        killed_at.append(point)
        with pytest.raises(Killed, match=point):
            audited(spark, recording("06") / "logs", tmp_path, run_id=RUN_ID)
        assert not Path(tmp_path, "runs", RUN_ID, "summary.json").exists()
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        result = audited(spark, recording("06") / "logs", tmp_path, run_id=RUN_ID)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
    assert _written(result) == night.findings
    assert content(spark, tmp_path, RUN_ID) == content(spark, night.output, RUN_ID)
    held = {name for name, rows in content(spark, tmp_path, RUN_ID).items() if rows}
    written = {commit.split(".")[1] for commit in COMMITS}
    assert written - held == {"committed_offset"}, "06 has no groups"


def test_the_next_night_resolves_what_was_aborted(spark: SparkSession, night: Night) -> None:
    recorded = recording("07")
    assert (
        complaints(night.result.examples, expected(recording("06")), night.result.exit_code) == []
    )
    result = audited(spark, recorded / "logs", night.output)
    findings = found(result)
    hanging = [one for one in night.result.examples if one["code"] == "hanging_transaction"]
    assert [one["status"] for one in hanging] == ["new"] * 3
    over = {one["finding_id"]: one["code"] for one in findings if one["status"] == "resolved"}
    assert {one["finding_id"] for one in hanging} <= set(over)
    assert set(over.values()) == {"hanging_transaction", "lso_pinned"}
    again = [one["status"] for one in findings if one["code"] == "write_outside_transaction"]
    assert set(again) == {"open"}
    assert complaints(findings, expected(recorded), result.exit_code) == []
