"""One real `kill -9`, and what lies on disk at every commit, as one there would leave it (figure 9).

For the latter the output is copied before and after each commit of one run: a kill takes nothing back that was
written. Real kills at all commits and at random instants: `python -m tests.reliability.kills FOLDER`.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.spark import commits
from tests.recordings import recording
from tests.reliability.kills import EARLIER, POINTS, RUN, SAME, files_of, start
from tests.reliability.stored import stored
from tests.spark.audited import audited

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_real_kill(spark: SparkSession, tmp_path: Path) -> None:
    """A process and its JVM die when nearly all tables are written; the same run id ends as if it had not been."""
    source, killed, whole = recording("06") / "logs", tmp_path / "killed", tmp_path / "whole"
    for output in (killed, whole):
        audited(spark, source, output, run_id=EARLIER)
    audited(spark, source, whole, run_id=RUN)
    earlier = files_of(killed, EARLIER)
    process = start(killed, RUN, "before gold.finding")
    said = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, said
    assert files_of(killed, EARLIER) == earlier
    assert not (killed / "runs" / RUN / "summary.json").exists()
    audited(spark, source, killed, run_id=RUN)
    assert files_of(killed, EARLIER) == earlier
    assert stored(killed, EARLIER) == stored(whole, EARLIER)
    assert stored(killed, RUN) == stored(whole, RUN)
    here, there = files_of(killed, RUN), files_of(whole, RUN)
    assert all(here[name] == there[name] for name in SAME)


@pytest.mark.full
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
    assert sorted(points) == sorted(POINTS)
