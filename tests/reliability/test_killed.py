"""What lies on disk at every commit, as `kill -9` there leaves it, and what the same run makes of it (figure 9).

The output is copied before and after each commit of one run: a kill takes nothing back that was written. Real kills,
at commits and at random instants: `tests/reliability/kills.py`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.spark import commits
from tests.recordings import recording
from tests.reliability.stored import stored
from tests.spark.audited import audited

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.full]
RUN = "night"
LEAST = 14


def test_the_same_run_again_after_a_kill_at_any_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = recording("06") / "logs"
    points: list[str] = []

    def keep(point: str) -> None:
        shutil.copytree(tmp_path / "whole", tmp_path / point)
        points.append(point)

    monkeypatch.setattr(commits, "COMMIT_HOOK", keep)
    whole = audited(spark, source, tmp_path / "whole", run_id=RUN)
    monkeypatch.setattr(commits, "COMMIT_HOOK", None)
    wanted = stored(tmp_path / "whole", RUN)
    findings = Path(whole.output_dir, "findings.jsonl").read_bytes()
    for point in points:
        again = audited(spark, source, tmp_path / point, run_id=RUN)
        assert stored(tmp_path / point, RUN) == wanted, point
        assert Path(again.output_dir, "findings.jsonl").read_bytes() == findings, point
    print(len(points), "kill points")
    assert len(points) >= LEAST
