"""Figure 11 for the audit itself: disks that are full or read-only.

Each runs in mount and user namespaces of its own (`unshare`), with an output that holds an earlier run on a tmpfs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.recordings import recording
from tests.reliability.kills import files_of
from tests.reliability.stored import stored

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.full]
ROOT = Path(__file__).resolve().parents[2]
EARLIER, RUN = "earlier", "night"
FILLED_KIB = (100, 250, 350, 450, 550)
"""What is free at the beginning; a run writes about 620 KiB."""

_PROLOGUE = """
set -u
disk="$1"; source="$2"; result="$3"; cd /
job() { "$PYTHON" -P -m jobs --input "$INPUT" --output "$disk" --run-id night 2>"$result/said" >/dev/null; code=$?; }
keep() { mkdir "$result/$1"; cp -r "$disk"/. "$result/$1"; mv "$result/said" "$result/$1.said"; echo "$code"; }
"""
_DISK = """
mount -t tmpfs -o size=12m tmpfs "$disk"; cp -r "$source"/. "$disk"
"""
_NO_TEMP = """
for place in /tmp /var/tmp /dev/shm "$TEMP"; do
  mount --bind "$place" "$place"; mount -o remount,bind,ro "$place"
done
mount --bind "$result" "$result"; mount -o remount,bind,rw "$result"; cd /proc
"""
"""The folder of a process is the last place that Python tries."""


class Outputs(NamedTuple):
    """What is compared with.

    Attributes:
        earlier: Output that holds one run.
        undisturbed: The same with the run that the cases disturb.
    """

    earlier: Path
    undisturbed: Path


def _environment() -> dict[str, str]:
    kept = ("PATH", "JAVA_HOME", "AUDIT_JARS", "HOME")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PYTHONPATH": str(ROOT), "PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1",
        "INPUT": str(recording("06") / "logs"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode
    ):
        print("no user namespaces here: full and read-only disks were not tried")
        pytest.skip("no user namespaces")
    folder = tmp_path_factory.mktemp("outputs")
    made = Outputs(folder / "earlier", folder / "undisturbed")
    environment = _environment()
    for output, run_id in zip(made, (EARLIER, RUN), strict=True):
        if output is made.undisturbed:
            shutil.copytree(made.earlier, output)
        subprocess.run(
            [sys.executable, "-P", "-m", "jobs", "--input", environment["INPUT"],
             "--output", str(output), "--run-id", run_id],
            env=environment, capture_output=True, check=False,
        )  # fmt: skip
        assert (output / "runs" / run_id / "summary.json").exists()
    return made


class Step(NamedTuple):
    """What an audit left: its output, its exit code and what it said on standard error."""

    output: Path
    code: int
    said: str


def _steps(
    tmp_path: Path, outputs: Outputs, script: str, names: Sequence[str] = ()
) -> dict[str, Step]:
    """Runs a script in namespaces of its own; the steps that it kept, in their order."""
    result, disk = tmp_path / "result", tmp_path / "disk"
    result.mkdir()
    disk.mkdir()
    done = subprocess.run(
        ["unshare", "-Urm", "bash", "-c", _PROLOGUE + script, "-", disk, outputs.earlier, result],
        env=_environment() | {"TEMP": tempfile.gettempdir()}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    names = names or [
        word.split()[1] for word in script.split(";") if word.strip().startswith("keep ")
    ]
    codes = map(int, done.stdout.split())
    return {
        name: Step(result / name, code, (result / f"{name}.said").read_text())
        for name, code in zip(names, codes, strict=True)
    }


def _refused(step: Step, outputs: Outputs) -> str:
    """One line, exit code 4, and the earlier run as it was; the line."""
    print(step.said)
    assert step.code == 4
    assert step.said.startswith("error: ")
    assert step.said.count("\n") == 1
    assert files_of(step.output, EARLIER) == files_of(outputs.earlier, EARLIER)
    assert stored(step.output, EARLIER) == stored(outputs.earlier, EARLIER)
    assert not (step.output / "runs" / RUN / "summary.json").exists()
    return step.said


def _as_undisturbed(step: Step, outputs: Outputs) -> None:
    assert step.code in (0, 1, 3), step.said
    assert stored(step.output, RUN) == stored(outputs.undisturbed, RUN)
    here, there = files_of(step.output, RUN), files_of(outputs.undisturbed, RUN)
    assert here["findings.jsonl"] == there["findings.jsonl"]
    assert files_of(step.output, EARLIER) == files_of(outputs.earlier, EARLIER)


@pytest.mark.parametrize("left_kib", [0, 40])
def test_a_disk_that_is_full(tmp_path: Path, outputs: Outputs, left_kib: int) -> None:
    script = f"""{_DISK}
    dd if=/dev/zero of="$disk/fill" bs=4k 2>/dev/null; truncate -s -{left_kib}k "$disk/fill"
    job; rm "$disk/fill"; keep full; job; keep again; """
    steps = _steps(tmp_path, outputs, script)
    assert "No space left on device" in _refused(steps["full"], outputs)
    _as_undisturbed(steps["again"], outputs)


@pytest.mark.timeout(1800)
def test_a_disk_that_fills_up(tmp_path: Path, outputs: Outputs) -> None:
    """Larger each time, it fails at another moment, on what the run before left; the last one is large enough."""
    sizes = " ".join(map(str, FILLED_KIB))
    script = f"""{_DISK}
    used=$(du -sk "$disk" | cut -f1); for left in {sizes}; do
      mount -o remount,size=$((used + left))k "$disk"; job; keep "$left"
    done
    mount -o remount,size=12m "$disk"; job; keep again; """
    steps = _steps(tmp_path, outputs, script, [*map(str, FILLED_KIB), "again"])
    for left in FILLED_KIB:
        said = _refused(steps[str(left)], outputs)
        assert "No space left on device" in said, (left, said)
    _as_undisturbed(steps["again"], outputs)


def test_a_disk_for_temp_files_that_is_full(tmp_path: Path, outputs: Outputs) -> None:
    """Spark unpacks its libraries there, and would name a library as the cause."""
    script = f"""{_DISK}
    mkdir "$result/small"; mount -t tmpfs -o size=64k tmpfs "$result/small"
    export TMPDIR="$result/small"
    dd if=/dev/zero of="$TMPDIR/fill" bs=4k 2>/dev/null; truncate -s -8k "$TMPDIR/fill"
    job; umount "$result/small"; keep full; unset TMPDIR; job; keep again; """
    steps = _steps(tmp_path, outputs, script)
    assert "no room for temporary files" in _refused(steps["full"], outputs)
    _as_undisturbed(steps["again"], outputs)


def test_no_place_for_temp_files(tmp_path: Path, outputs: Outputs) -> None:
    script = f"""{_NO_TEMP}{_DISK}
    job; keep none; mkdir "$result/place"; export TMPDIR="$result/place"; job; keep again; """
    steps = _steps(tmp_path, outputs, script)
    assert "No usable temporary directory" in _refused(steps["none"], outputs)
    _as_undisturbed(steps["again"], outputs)


@pytest.mark.parametrize("home", [None, "/nonexistent"])
def test_without_a_home(tmp_path: Path, outputs: Outputs, home: str | None) -> None:
    change = "unset HOME" if home is None else f"export HOME={home}"
    steps = _steps(tmp_path, outputs, f"{_DISK}\n{change}; job; keep done; ")
    _as_undisturbed(steps["done"], outputs)


def test_a_read_only_output(tmp_path: Path, outputs: Outputs) -> None:
    script = f"""{_DISK}
    mount -o remount,ro "$disk"; job; keep refused; mount -o remount,rw "$disk"; job; keep again; """
    steps = _steps(tmp_path, outputs, script)
    assert "Read-only file system" in _refused(steps["refused"], outputs)
    _as_undisturbed(steps["again"], outputs)
