"""`deep: true` through Spark: records that stand twice are found, and what users wrote stays in the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.planting import in_contents
from tests.planting.copied import CopiedLogs
from tests.recordings import recording
from tests.score import matches
from tests.spark.audited import audited, found

pytestmark = pytest.mark.spark
CODE = "content_duplicate"


def test_contents_are_compared_on_demand(spark: SparkSession, tmp_path: Path) -> None:
    logs = CopiedLogs(recording("08a") / "logs", tmp_path / "in")
    planted = in_contents.resent(logs)
    off = audited(spark, logs.path, tmp_path / "off")
    assert off.summary["detectors"][CODE] == "not attempted: needs deep: true"
    assert [one for one in found(off) if one["code"] == CODE] == []
    deep = audited(spark, logs.path, tmp_path / "deep", deep=True)
    assert deep.summary["detectors"][CODE] == "judged"
    told = [one for one in found(deep) if one["code"] == CODE]
    plain = {"topic": "d-plain", "partition": 0, "first_offset": 2, "severity": "minor"}
    assert len(told) == 2
    assert all(any(matches(one, wanted) for one in told) for wanted in (planted.must, plain))
    assert all(len(one["evidence"]) == 2 and one["evidence"][0]["file"] for one in told)
    held = b"".join(file.read_bytes() for file in tmp_path.glob("deep/**/*") if file.is_file())
    assert in_contents.VALUE not in held
