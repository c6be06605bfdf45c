"""The command line without a JVM: exit codes, one clear line, quick answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import cli, explain, java, run, self_check
from pipeline.errors import AuditError, OutputConflict, OutputLocked, UnsupportedEnvironment
from pipeline.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]


def _answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = cli.run(arguments)
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return code, said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--inptu", "x"], "did you mean"),
        (["adit"], "no job 'adit' (did you mean 'audit'?)"),
        (["--input", "/nope"], "no such file or folder"),
        (["--as-of", "2026-11-26T02:10:00"], "a time needs an offset or Z"),
        (["--as-of", "noon"], "not a time"),
        (["--format", "xml"], "'xml' is not one of"),
        (["--keep-runs", "0"], "--keep-runs: "),
        (["--producer-id", "x"], "not a valid integer"),
        (["--run-id", "../x"], "--run-id: "),
        (["--kafka-version", "new"], "--kafka-version: "),
        (["--conf", "/nope.yaml"], "No such file"),
        (["--spark", "--deploy-mode", "cluster"], "cluster is not supported"),
        (["--spark", "program.py"], "an option of spark-submit is expected"),
        (["explain", "zombie"], "did you mean 'zombie_write'"),
        (["explain"], "Missing argument"),
        (["show", "abc"], "at least 6 characters"),
        (["show", "abcdef123", "--output", "/nope"], "no run in"),
        (["\x1b[31m"], "\\x1b[31m"),
    ],
)
def test_wrong_usage_is_2_and_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, said = _answer(capsys, *arguments)
    assert code == 2
    assert message.lower() in said.lower()
    assert said.startswith("error: ")
    assert said.count("\n") == 1


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Answers an audit without Spark; `result` is what it gives, or the exception it raises."""
    holder: dict[str, Any] = {}

    def audit(config: Any, spark: Any) -> Any:
        holder.update(config=config, spark=spark)
        if isinstance(holder["result"], Exception):
            raise holder["result"]
        return holder["result"]

    monkeypatch.setattr(run, "_audit", audit)
    monkeypatch.setattr("pipeline.report.terminal.show", lambda result, style: None)
    (tmp_path / "in").mkdir()
    holder["arguments"] = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    return holder


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (SimpleNamespace(exit_code=Verdict.PASSED.exit_code), 0),
        (SimpleNamespace(exit_code=Verdict.FAILED.exit_code), 1),
        (SimpleNamespace(exit_code=Verdict.UNKNOWN.exit_code), 3),
        (OutputConflict("the output root belongs to cluster a"), 2),
        (OutputLocked("in use"), 4),
        (AuditError("Spark did not start"), 4),
    ],
)
def test_what_a_run_ends_with(audited: dict[str, Any], result: Any, code: int) -> None:
    audited["result"] = result
    assert cli.run(audited["arguments"]) == code


@pytest.mark.parametrize("place", [".", "out", "a/b"])
def test_nothing_is_written_into_an_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, place: str
) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    for root in (tmp_path, tmp_path / "link"):
        arguments = ("--input", str(tmp_path), "--output", str(root / place))
        code, said = _answer(capsys, *arguments)
        assert code == 2
        assert "where nothing is written: name another folder" in said
    assert [one.name for one in tmp_path.iterdir()] == ["link"]


def test_an_output_that_is_a_file_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "file").write_text("mine")
    arguments = ("--input", str(tmp_path / "in"), "--output", str(tmp_path / "file"))
    code, said = _answer(capsys, *arguments)
    assert (code, "a folder is expected" in said) == (2, True)
    assert (tmp_path / "file").read_text() == "mine"


def test_everything_behind_spark_goes_on(audited: dict[str, Any]) -> None:
    audited["result"] = SimpleNamespace(exit_code=0)
    behind = ("--master", "spark://h:7077", "--conf", "a=b", "--spark")
    assert cli.run([*audited["arguments"], "--topics", "o*", "--spark", *behind]) == 0
    assert audited["spark"] == behind
    assert audited["config"].selection.topics == "o*"


def test_the_sample_decides_when_there_is_no_input(
    audited: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = json.loads((self_check.SAMPLE / "expect.json").read_text())["must"]
    plain = {"severity": "critical", "certainty": "proven", "status": "new"}
    audited["result"] = SimpleNamespace(exit_code=1, examples=[one | plain for one in expected])
    assert cli.run(["--output", str(tmp_path)]) == 0
    assert audited["config"].output == str(tmp_path / "self-check")
    audited["result"] = SimpleNamespace(exit_code=1, examples=[one | plain for one in expected[1:]])
    assert cli.run(["--output", str(tmp_path)]) == 4


def test_an_unforeseen_failure_is_4_and_its_trace_in_the_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("a bug\x1b[2J")

    monkeypatch.setattr(run, "_with_spark", broken)
    (tmp_path / "in").mkdir()
    inputs = ["--input", str(tmp_path / "in")]
    code, said = _answer(capsys, *inputs, "--output", str(tmp_path / "out"))
    assert code == 4
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert "Traceback" in (tmp_path / "out" / "spark.log").read_text()


def test_a_process_that_cannot_even_import_is_4(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemError('broken installation')\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-m", "jobs"], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 4


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--help"], 0), (["audit", "--help"], 0), (["--nope"], 2), (["explain", "zombie_write"], 0)],
)
def test_answers_within_a_second(arguments: list[str], code: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": "/nowhere", "JAVA_HOME": ""}
    command = [sys.executable, "-m", "jobs", *arguments]
    times = []
    for _ in range(3):
        before = os.times()
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        after = os.times()
        assert done.returncode == code
        # Processor time: what else the machine does is not this command's fault.
        times.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    assert min(times) < 1.0


def test_slow_packages_stay_out_until_the_arguments_are_valid() -> None:
    slow = ("pyspark", "pandas", "pyarrow", "rich")
    code = f"import sys, jobs.cli; sys.exit(any(name in sys.modules for name in {slow}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )


def _fake_java(folder: Path, says: str) -> None:
    java_file = folder / "bin" / "java"
    java_file.parent.mkdir(parents=True)
    java_file.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java_file.chmod(0o755)


@pytest.mark.parametrize(
    "says", ['openjdk version "11.0.2"', 'java version "1.8.0_292"', "no such thing"]
)
def test_an_old_java_is_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str
) -> None:
    _fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, said = _answer(capsys, "--output", str(tmp_path / "out"))
    assert code == 2
    assert said.startswith("error: Java 17 or newer is needed")
    assert said.count("\n") == 1


def test_a_missing_java_is_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedEnvironment, match="none on PATH"):
        java.find()


def test_a_new_java_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_java(tmp_path, 'openjdk version "21" 2023-09-19')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.version_of(java.find()) == 21


def test_every_detector_has_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    for code, page in explain.pages().items():
        assert cli.run(["explain", code]) == 0
        printed = capsys.readouterr().out
        assert max(map(len, printed.splitlines())) <= explain.WIDTH
        assert page.split() == printed.split()
        for part in ("\nPromise", "\nRule", "\nNormal", "\nRefuted by"):
            assert part in page, f"{code} says nothing about {part}"


def test_doctor_names_each_gap(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / "00000000000000000000.log").write_bytes(b"")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n2\norders 0 5\norders 1 7\n")
    cli.run(["doctor", "--input", str(tmp_path), "--output", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "orders-1 is absent, its high watermark is 7" in said
    assert "no meta.properties" in said
    assert "no partition of __transaction_state" in said
    assert "orders-0 is absent" not in said


def test_show_takes_the_beginning_of_an_id(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names = (
        "class",
        "severity",
        "certainty",
        "status",
        "topic",
        "partition",
        "producer_id",
        "producer_epoch",
        "transactional_id",
        "group_id",
        "first_offset",
        "last_offset",
        "first_timestamp_ms",
        "last_timestamp_ms",
        "title",
        "explanation",
        "advice",
        "refuted_by",
    )
    plain = dict.fromkeys(names) | {
        "code": "c",
        "class": "x",
        "severity": "major",
        "title": "t",
        "evidence": [],
    }
    file = tmp_path / "runs" / "r1" / "findings.jsonl"
    file.parent.mkdir(parents=True)
    ids = ("abcdef11", "abcdef12", "1234567")
    file.write_text("".join(json.dumps(plain | {"finding_id": one}) + "\n" for one in ids))
    assert cli.run(["show", "12345678"[:6], "--output", str(tmp_path)]) == 0
    assert "finding_id: 1234567" in capsys.readouterr().out
    assert cli.run(["show", "abcdef", "--output", str(tmp_path)]) == 2
    assert "2 findings begin with abcdef" in capsys.readouterr().err
