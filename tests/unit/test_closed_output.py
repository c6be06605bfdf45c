"""An output that nobody reads: no trace on the screen, and no exit code that means something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import stored_output
from tests.stored_output import RUN_ID, finding, summary

ROOT = Path(__file__).resolve().parents[2]
_REPORT = ("report", "--now", "2026-11-26T03:00:00Z")


def _answer(arguments: tuple[str, ...], stdout: int | None) -> tuple[int, str]:
    """Exit code and what stands on stderr; without a descriptor the process has no stdout at all."""
    started = subprocess.run(
        [sys.executable, "-P", "-m", "jobs", *arguments],
        stdout=subprocess.DEVNULL if stdout is None else stdout,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=(lambda: os.close(1)) if stdout is None else None,
        check=False,
    )
    return started.returncode, started.stderr.decode()


def _pipe_without_reader() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.fixture
def output(tmp_path: Path) -> str:
    """An output root with one run."""
    one = finding()
    stored_output.write(tmp_path, stored_output.tables([one]), summary())
    (tmp_path / "runs" / RUN_ID).mkdir(parents=True, exist_ok=True)
    return str(tmp_path)


def test_a_reader_who_goes_away_changes_no_verdict(output: str) -> None:
    writer = _pipe_without_reader()
    code, said = _answer((*_REPORT, "--output", output), writer)
    os.close(writer)
    assert (code, said) == (0, "")


def test_a_reader_who_goes_away_gets_no_trace() -> None:
    writer = _pipe_without_reader()
    code, said = _answer(("explain", "zombie_write"), writer)
    os.close(writer)
    assert (code, said) == (4, "")


def test_no_output_at_all(output: str) -> None:
    assert _answer(("explain", "zombie_write"), None) == (0, "")
    assert _answer((*_REPORT, "--output", output), None) == (0, "")


def test_a_damaged_file_of_findings_is_named_with_its_line(output: str) -> None:
    file = Path(output, "runs", RUN_ID, "findings.jsonl")
    file.write_text('{"finding_id": "0000"}\n{"trunc')
    code, said = _answer(("show", "abcdef12", "--output", output), subprocess.DEVNULL)
    assert code == 4
    assert said.startswith(f"error: {file}:2: not a finding")
