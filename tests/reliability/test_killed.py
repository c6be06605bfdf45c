"""One real `kill -9`, and what lies on disk at every commit, as one there would leave it (figure 9).

For the latter the output is copied before and after each commit of one run: a kill takes nothing back that was
written. Real kills at all commits and at random instants: `python -m tests.reliability.kills FOLDER`.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import NamedTuple

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


class Kept(NamedTuple):
    """One undisturbed run.

    Attributes:
        copies: Folder of the output's copies, named after the points where they were taken.
        tables: Its rows.
        findings: Its `findings.jsonl`.
    """

    copies: Path
    tables: dict[str, list[str]]
    findings: bytes


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("kept")
    patch = pytest.MonkeyPatch()
    patch.setattr(
        commits, "COMMIT_HOOK", lambda point: shutil.copytree(folder / "whole", folder / point)
    )
    whole = audited(spark, recording("06") / "logs", folder / "whole", run_id=RUN)
    patch.undo()
    findings = Path(whole.output_dir, "findings.jsonl").read_bytes()
    return Kept(folder, stored(folder / "whole", RUN), findings)


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS)
def test_the_same_run_again_after_a_kill_at_any_commit(
    spark: SparkSession, kept: Kept, point: str
) -> None:
    again = audited(spark, recording("06") / "logs", kept.copies / point, run_id=RUN)
    assert stored(kept.copies / point, RUN) == kept.tables
    assert Path(again.output_dir, "findings.jsonl").read_bytes() == kept.findings
