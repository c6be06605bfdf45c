"""`spark-submit.sh` from the first start on a fresh machine to a run without any network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.self_check import SAMPLE

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("spark-submit.sh", "setup.cfg", "constraints.txt", "conf", "jobs", "pipeline", "schemas")


def _copy(folder: Path) -> Path:
    """A checkout without an environment."""
    folder.mkdir()
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    shutil.copytree(SAMPLE, folder / SAMPLE.relative_to(ROOT))
    return folder / "spark-submit.sh"


def _environment(**changed: str) -> dict[str, str]:
    dropped = ("PYTHONPATH", "JAVA_HOME", "VIRTUAL_ENV", "AUDIT_JARS", "PYSPARK_PYTHON")
    return {name: value for name, value in os.environ.items() if name not in dropped} | changed


def _fake(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def _path_without_java(folder: Path) -> str:
    """Just the tools that a start needs, of which Java is none."""
    folder.mkdir()
    for name in ("bash", "env", "readlink", "dirname", "cat", "cksum"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    _fake(folder, "python3", f'exec "{sys.executable}" "$@"')
    return str(folder)


def _start(launcher: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(launcher), *arguments],
        env=_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_first_start_without_java_is_2_and_one_line(tmp_path: Path) -> None:
    launcher = _copy(tmp_path / "checkout")
    done = _start(launcher, PATH=_path_without_java(tmp_path / "bin"))
    assert done.returncode == 2
    assert (
        done.stderr == "error: Java 17 or newer is needed: there is none on PATH; install a JDK or "
        "set JAVA_HOME\n"
    )
    assert not (tmp_path / "checkout" / ".venv").exists()


def test_a_first_start_with_an_old_java_is_2_and_one_line(tmp_path: Path) -> None:
    launcher = _copy(tmp_path / "checkout")
    path = _path_without_java(tmp_path / "bin")
    _fake(tmp_path / "bin", "java", "echo 'openjdk version \"11.0.20\" 2023-07-18' >&2")
    done = _start(launcher, PATH=path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: Java 17 or newer is needed: ")
    assert done.stderr.count("\n") == 1


def test_an_old_python_is_2_and_one_line(tmp_path: Path) -> None:
    launcher = _copy(tmp_path / "checkout")
    path = _path_without_java(tmp_path / "bin")
    _fake(tmp_path / "bin", "python3", "exit 1")
    done = _start(launcher, PATH=path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: Python 3.11 or newer is needed")
    assert done.stderr.count("\n") == 1


def test_a_later_start_without_java_is_2_and_one_line(launcher: Path, tmp_path: Path) -> None:
    done = _start(
        launcher, "--output", str(tmp_path / "out"), PATH=_path_without_java(tmp_path / "bin")
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: Java 17 or newer is needed")
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_two_first_starts_at_once_and_then_a_start_without_network(tmp_path: Path) -> None:
    launcher = _copy(tmp_path / "checkout")
    command = [str(launcher), "doctor", "--output", str(tmp_path / "out")]
    cache = subprocess.run(
        [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True
    )
    environment = _environment(HOME=str(tmp_path / "home"), PIP_CACHE_DIR=cache.stdout.strip())
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=900)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    for folder in (".ivy2", ".ivy2.5.2", ".m2"):
        assert not (tmp_path / "home" / folder).exists(), (
            "the user's own folders are none of our business"
        )

    alone = [
        "unshare",
        "--net",
        "--map-root-user",
        "bash",
        "-c",
        'ip link set lo up && exec "$@"',
        "bash",
    ]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        print("network namespaces are not to be had here: the run keeps its network")
        alone = []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("pipeline", "jobs", "schemas", "pyspark", "queue"):
        (elsewhere / f"{name}.py").write_text(f"raise SystemExit('{name} of the wrong folder')\n")
    done = subprocess.run(
        [*alone, str(launcher), "--output", str(tmp_path / "out"), "--format", "json"],
        env=environment,
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "set-up" not in done.stderr
    assert json.loads(done.stdout)["verdict"] == "failed"
