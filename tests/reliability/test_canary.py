"""A broken rule turns the suite red: the tests that guard it are run against it (figure 19).

The same for a crashing decoder: `tests/fuzz/test_mutate.py`; for a broken detector in Spark: below.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.detect import duplicate_batch
from tests.recordings import recording
from tests.reliability.broken import BREAKS
from tests.score import complaints, expected
from tests.spark.audited import audited, found

ROOT = Path(__file__).resolve().parents[2]
PLANTED = "tests/unit/detect/test_plants.py::test_a_planted_fault"
AUDITED = "tests/unit/detect/test_recordings.py::test_a_recording_holds_what_it_is_expected_to_hold"
GUARDS = {
    "no_duplicate": f"{PLANTED}[exact_duplicate]",
    "no_open_run": f"{PLANTED}[orphan_producer]",
    "every_step_illegal": f"{AUDITED}[01-happy-path-4.1-tv2]",
    "no_illegal_step": f"{PLANTED}[illegal_transition]",
}


def run(guard: str, broken: str) -> subprocess.CompletedProcess[str]:
    """The guard in a process of its own, one rule broken or none."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.reliability.broken", guard],
        cwd=ROOT, env={**os.environ, "AUDIT_BREAK": broken, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_break_has_a_guard() -> None:
    assert set(GUARDS) == set(BREAKS)


@pytest.mark.slow
@pytest.mark.parametrize("broken", GUARDS)
def test_a_broken_rule_turns_the_suite_red(broken: str) -> None:
    whole = run(GUARDS[broken], "")
    assert whole.returncode == 0, whole.stdout
    red = run(GUARDS[broken], broken)
    assert red.returncode == 1, red.stdout
    assert "FAILED" in red.stdout


@pytest.mark.spark
def test_a_silent_detector_turns_the_audit_of_a_recording_red(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = duplicate_batch.find

    def silent(*, sequence_event: DataFrame) -> DataFrame:
        return find(sequence_event=sequence_event).limit(0)

    monkeypatch.setattr(duplicate_batch, "find", silent)
    folder = recording("08a")
    result = audited(spark, folder / "logs", tmp_path)
    said = complaints(found(result), expected(folder), result.exit_code)
    assert any("duplicate_batch" in one for one in said), said
