"""Brokers' clocks through Spark: what they leave unjudged is told, and is not clean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.score import is_loud, told
from tests.spark.audited import audited, found
from tests.unit.detect.two_clocks import CLOCKS, TOPIC, life

pytestmark = pytest.mark.spark


def test_clocks_too_far_apart_are_no_pass(spark: SparkSession, tmp_path: Path) -> None:
    life(tmp_path / "in", CLOCKS["ahead-beyond-tolerance"])
    result = audited(spark, tmp_path / "in", tmp_path / "out")
    findings = found(result)
    assert [told(one) for one in findings if is_loud(one)] == []
    counted = [one for one in findings if one["class"] == "other_clock"]
    assert [(one["topic"], one["title"].split()[0]) for one in counted] == [(TOPIC, "120")]
    assert result.exit_code == 3
    summary = json.loads(next((tmp_path / "out" / "runs").glob("*/summary.json")).read_text())
    assert f"120 markers of {TOPIC} not judged" in json.dumps(summary)


def test_a_step_of_the_clock_and_a_marker_of_nobody(spark: SparkSession, tmp_path: Path) -> None:
    life(tmp_path / "in", CLOCKS["ntp-step"], stray_at=40)
    findings = found(audited(spark, tmp_path / "in", tmp_path / "out"))
    assert [(one["code"], one["class"]) for one in findings if is_loud(one)] == [
        ("marker_audit", "unexpected")
    ]
