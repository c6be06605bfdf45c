"""Files of a run: whole or not at all, the same bytes every time, no secrets, the earlier ones intact."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs import cli
from pipeline.report import files
from tests import stored_output
from tests.stored_output import RUN_ID, finding, summary

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("report.html", "junit.xml", "summary.md")


def _digests(root: Path) -> dict[str, str]:
    return {
        name: hashlib.sha256((root / "runs" / RUN_ID / name).read_bytes()).hexdigest()
        for name in NAMES
    }


def _written(root: Path) -> Path:
    found = [finding(first_offset=number, partition=number % 2) for number in range(3)]
    stored_output.write(root, stored_output.tables(found), summary())
    return root


def test_the_same_bytes_whatever_the_hash_seed_and_the_place_of_a_relative_root(
    tmp_path: Path,
) -> None:
    seen = []
    for seed, zone in (("0", "UTC"), ("1", "Pacific/Auckland"), ("42", "America/St_Johns")):
        root = _written(tmp_path / seed / "out")
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C",
        }  # fmt: skip
        command = [sys.executable, "-m", "jobs", "report", "--output", root.name]
        subprocess.run(command, env=environment, cwd=root.parent, check=True, capture_output=True)
        seen.append(_digests(root))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), OSError(30, "Read-only file system")]
)
def test_a_disk_that_is_full_leaves_the_earlier_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    error: OSError,
) -> None:
    root = _written(tmp_path)
    assert cli.run(["report", "--output", str(root)]) == 0
    before = _digests(root)
    replaced = os.replace

    def replace(source: Path, target: Path) -> None:
        if target.name == name:
            raise error
        replaced(source, target)

    monkeypatch.setattr(files.os, "replace", replace)
    assert cli.run(["report", "--output", str(root), "--html-assets", "dir"]) == 4
    said = capsys.readouterr().err
    assert str(error.strerror) in said
    assert said.count("\n") == 1
    assert _digests(root)[name] == before[name]
    assert not list((root / "runs" / RUN_ID).glob("*.tmp"))
    monkeypatch.undo()
    assert cli.run(["report", "--output", str(root)]) == 0
    assert _digests(root) == before


def test_no_secret_in_any_file(tmp_path: Path) -> None:
    from pipeline.text import redact

    secrets = ("hunter2", "AKIAEXAMPLE", "s3cr3t-value")
    typed = [
        f"s3://{secrets[1]}:{secrets[0]}@bucket/copies",
        f"--conf=spark.hadoop.fs.s3a.secret.key={secrets[2]}",
        f"https://host/x?token={secrets[2]}&a=b",
    ]
    about = summary(
        command_line=[redact(one) for one in typed],
        input={"paths": [redact(typed[0])], "fingerprint": "f"},
    )
    stored_output.write(tmp_path, stored_output.tables(), about)
    assert cli.run(["report", "--output", str(tmp_path)]) == 0
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert not any(one.encode() in file.read_bytes() for one in secrets), file


def test_files_of_a_run_change_together_or_not_at_all(tmp_path: Path) -> None:
    files.write_together(tmp_path, {"junit.xml": ["old"], "report.html": ["old"]})

    def breaking() -> Iterator[str]:
        yield "half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.write_together(tmp_path, {"junit.xml": ["new"], "report.html": breaking()})
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "junit.xml": "old",
        "report.html": "old",
    }
