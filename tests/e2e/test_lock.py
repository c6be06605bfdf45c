"""One run at a time on an output root, and no lock left by a killed one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs import lock
from pipeline.errors import OutputLocked

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys, time
from jobs import lock
with lock.hold(sys.argv[1]):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""
CONTEND = """
import pathlib, sys
from jobs import lock
file = pathlib.Path(sys.argv[1], "counter")
for _ in range(20):
    with lock.hold(sys.argv[1], 60):
        file.write_text(str(int(file.read_text()) + 1))
"""


def _python(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )


def _holder(output: Path, seconds: float) -> subprocess.Popen[str]:
    process = _python(HOLD, str(output), str(seconds))
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_run_is_told_who_holds_it(tmp_path: Path) -> None:
    with _holder(tmp_path, 60) as process:
        assert lock.is_held(str(tmp_path))
        with pytest.raises(OutputLocked) as error, lock.hold(str(tmp_path)):
            pass
        assert f"process {process.pid} on " in str(error.value)
        assert error.value.exit_code == 4
        process.kill()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    with _holder(tmp_path, 60) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert not lock.is_held(str(tmp_path))
    with lock.hold(str(tmp_path)):
        assert lock.holder(str(tmp_path)).startswith(f"process {os.getpid()} on ")


def test_the_second_run_can_wait(tmp_path: Path) -> None:
    with _holder(tmp_path, 0.5):
        start = time.monotonic()
        with lock.hold(str(tmp_path), 30):
            assert time.monotonic() - start < 20


def test_never_two_at_once(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    processes = [_python(CONTEND, str(tmp_path)) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert (tmp_path / "counter").read_text() == "60"


def test_an_output_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(OutputLocked, match="cannot be written"),
        lock.hold(str(tmp_path / "file" / "out")),
    ):
        pass


def test_looking_writes_nothing(tmp_path: Path) -> None:
    assert not lock.is_held(str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []
