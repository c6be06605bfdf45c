"""A directory that is left of a deleted topic, through Spark: told as what it is, and its twin as a loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.audited import audited, found
from tests.unit.detect.test_incarnations import DAY_MS, replica

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("anew", "wanted"),
    [
        ([0, 0, 1, 1], ("other_incarnation", "info", "consistent_with")),
        ([4, 4, 4, 4], ("same_offset_other_bytes", "critical", "proven")),
    ],
    ids=["made anew", "an emptied replica led"],
)
def test_same_offsets_without_topic_ids(
    anew: list[int], wanted: tuple[str, str, str], spark: SparkSession, tmp_path: Path
) -> None:
    replica(tmp_path / "in", 1, [2, 2, 3], later_ms=0, has_id=False, is_shared=False)
    replica(tmp_path / "in", 2, anew, later_ms=DAY_MS, has_id=False, is_shared=False)
    findings = found(audited(spark, tmp_path / "in", tmp_path / "out"))
    differ = [one for one in findings if one["code"] == "replica_divergence"]
    assert [(one["class"], one["severity"], one["certainty"]) for one in differ] == [wanted]
