"""Figure 11 of `docs/reliability.md` on real file systems: full, read-only, without HOME, without temp files.

Each runs in mount and user namespaces of its own (`unshare`), with a tmpfs of a few megabytes as the output.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import stored_output
from tests.stored_output import finding, summary

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
_PROLOGUE = """
set -u
disk="$1"; source="$2"
mount -t tmpfs -o size=6m tmpfs "$disk"
cp -r "$source"/. "$disk"
look() { (cd "$disk/runs"/*/ && sha256sum report.html junit.xml summary.md summary.json 2>&1; ls | grep -c tmp); }
job() { say "$@"; "$PYTHON" -m jobs "$@" --output "$disk" 2>&1; say "code $?"; }
say() { echo "== $*"; }
"""


class Step(NamedTuple):
    """What a command said, and its exit code."""

    said: list[str]
    code: int


def _inside(tmp_path: Path, script: str, **environment: str) -> list[str]:
    """Runs a script in namespaces of its own with an output on a tmpfs; its lines."""
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode
    ):
        print("no user namespaces here: full and read-only disks were not tried")
        pytest.skip("no user namespaces")
    found = [finding(first_offset=number, partition=number % 2) for number in range(3)]
    stored_output.write(tmp_path / "source", stored_output.tables(found), summary())
    (tmp_path / "disk").mkdir()
    given = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHON": sys.executable,
        "PYTHONDONTWRITEBYTECODE": "1", **environment,
    }  # fmt: skip
    done = subprocess.run(
        ["unshare", "-Urm", "bash", "-c", _PROLOGUE + script, "-",
         str(tmp_path / "disk"), str(tmp_path / "source")],
        env=given, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


def _steps(lines: list[str]) -> list[Step]:
    found, said = [], []
    for line in lines:
        if line.startswith("== code "):
            found.append(Step(said, int(line.removeprefix("== code "))))
            said = []
        elif not line.startswith("== "):
            said.append(line)
    return [*found, Step(said, -1)]


@pytest.mark.parametrize(
    ("job", "left"),
    [("report", "0"), ("report", "36k"), ("gate --now 2026-11-26T03:00:00Z", "12k")],
)
def test_a_full_disk_keeps_the_last_good_page_and_the_next_run_works(
    tmp_path: Path, job: str, left: str
) -> None:
    script = f"""
    job report; look
    dd if=/dev/zero of="$disk/fill" bs=4k 2>/dev/null; truncate -s -{left} "$disk/fill"
    job {job} --html-assets dir; look
    rm "$disk/fill"
    job report; look
    """
    first, full, again, last = _steps(_inside(tmp_path, script))
    assert (first.code, full.code, again.code) == (0, 4, 0)
    before, (error, *_) = full.said[:5], full.said[5:]
    assert error.startswith("error: ")
    assert "No space left on device" in error
    assert len(full.said) == 6, full.said
    assert again.said[:5] == before == last.said[:5]


def test_a_read_only_output_is_refused_in_one_line(tmp_path: Path) -> None:
    script = 'job report; look\nmount -o remount,ro "$disk"\njob report --html-assets dir; look'
    first, refused, after = _steps(_inside(tmp_path, script))
    assert first.code == 0
    assert refused.code == 4
    said = refused.said[5:]
    assert len(said) == 1
    assert said[0].startswith("error: ")
    assert "Read-only file system" in said[0]
    assert after.said == refused.said[:5]


@pytest.mark.parametrize("home", [{}, {"HOME": "/nonexistent"}])
def test_without_a_home(tmp_path: Path, home: dict[str, str]) -> None:
    (done, _) = _steps(_inside(tmp_path, "job report", **home))
    assert done.code == 0, done.said


def test_without_a_place_for_temp_files(tmp_path: Path) -> None:
    """Nothing but the output can be written: page and gate need no other place."""
    script = f"""
    mount -t tmpfs -o size=4k,ro tmpfs {os.devnull.rsplit("/", 1)[0]}/shm
    mount --bind "$disk" "$disk"; mount -o remount,bind,rw "$disk"
    export TMPDIR=/nonexistent
    job report; look
    """
    (done, _) = _steps(_inside(tmp_path, script))
    assert done.code == 0, done.said
