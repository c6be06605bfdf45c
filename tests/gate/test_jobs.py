"""`gate` and `report` on a finished run: no log is read, and Spark starts only when a judgement changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from jobs import cli
from pipeline.spark import session, tables
from tests import stored_output
from tests.stored_output import RUN_ID, finding, summary

NOW = "2026-11-26T03:00:00Z"


class Written(list[tuple[str, Any]]):
    """What would have been written with Spark."""


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Stands in for Spark and keeps what is written."""
    written = Written()
    monkeypatch.setattr(session, "build", lambda **_: "session")
    monkeypatch.setattr(tables, "local", lambda _, rows, ddl: rows)
    monkeypatch.setattr(
        tables, "replace", lambda rows, table, *_, **__: written.append((table.name, rows))
    )
    monkeypatch.setattr(
        tables,
        "replace_rows",
        lambda _, rows, table, *__, **___: written.append((table.name, rows)),
        raising=False,
    )
    return written


def _read(root: Path, name: str) -> Any:
    text = (root / "runs" / RUN_ID / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else text


def _run(root: Path, *arguments: str) -> int:
    return cli.run([*arguments, "--output", str(root), "--now", NOW])


def test_the_same_policy_changes_nothing_and_starts_no_spark(
    tmp_path: Path, spark: Written
) -> None:
    stored_output.write(tmp_path, stored_output.tables([finding()]), summary())
    assert _run(tmp_path, "gate") == 1
    assert [name for name, _ in spark] == ["finding", "run"]
    stored_output.write(
        tmp_path, stored_output.tables([finding()]), _read(tmp_path, "summary.json")
    )
    spark.clear()
    assert _run(tmp_path, "gate") == 1
    assert spark == []


def test_a_milder_policy_passes_and_is_written_back(tmp_path: Path, spark: Written) -> None:
    stored_output.write(tmp_path, stored_output.tables([finding(severity="major")]), summary())
    assert _run(tmp_path, "gate", "--fail-on", "critical") == 0
    about = _read(tmp_path, "summary.json")
    assert about["verdict"] == "passed"
    assert about["gate"]["severity"] == "critical"
    assert about["judged_by"]["command_line"][0] == "spark-submit.sh"
    ((_, row),) = [one for one in spark if one[0] == "run"]
    assert json.loads(row[0][-1])["verdict"] == "passed"


def test_a_suppression_takes_and_gives_back(tmp_path: Path, spark: Written) -> None:
    stored_output.write(tmp_path, stored_output.tables([finding()]), summary())
    file = tmp_path / "s.yaml"
    file.write_text(
        "suppressions:\n  - {code: hanging_transaction, scope: {topic: orders}, reason: r, owner: o, "
        "expires: 2026-11-26}\n"
    )
    assert _run(tmp_path, "gate", "--suppressions", str(file)) == 0
    assert '"status": "suppressed"' in _read(tmp_path, "findings.jsonl")
    assert "suppressed" in _read(tmp_path, "report.html")
    stored_output.write(
        tmp_path,
        stored_output.tables([finding(status="suppressed")]),
        _read(tmp_path, "summary.json"),
    )
    assert (
        cli.run(
            [
                "gate",
                "--output",
                str(tmp_path),
                "--suppressions",
                str(file),
                "--now",
                "2026-11-27T00:00:00Z",
            ]
        )
        == 1
    )
    about = _read(tmp_path, "summary.json")
    assert about["suppressions"][0]["state"] == "expired"
    assert '"status": "new"' in _read(tmp_path, "findings.jsonl")


def test_what_the_run_before_had_is_open_again(tmp_path: Path, spark: Written) -> None:
    earlier = "20261125T020000Z-0123abcd"
    stored_output.write(
        tmp_path, stored_output.tables([finding()]), summary(run_id=earlier), 1, earlier
    )
    stored_output.write(
        tmp_path, stored_output.tables([finding(status="suppressed")]), summary(), 2
    )
    assert _run(tmp_path, "gate") == 1
    assert '"status": "open"' in _read(tmp_path, "findings.jsonl")


def test_report_writes_the_same_again(tmp_path: Path, spark: Written) -> None:
    stored_output.write(tmp_path, stored_output.tables([finding()]), summary())
    _run(tmp_path, "gate")
    names = ("report.html", "junit.xml", "summary.md")
    before = {name: _read(tmp_path, name) for name in names}
    stored_output.write(
        tmp_path, stored_output.tables([finding()]), _read(tmp_path, "summary.json")
    )
    for name in names:
        (tmp_path / "runs" / RUN_ID / name).unlink()
    assert _run(tmp_path, "report") == 0
    assert {name: _read(tmp_path, name) for name in names} == before
    assert _run(tmp_path, "report", "--html-assets", "dir") == 0
    assert "report.css" in _read(tmp_path, "report.html")


def test_one_figure_everywhere(
    tmp_path: Path, spark: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [finding(first_offset=number) for number in range(40)]
    stored_output.write(tmp_path, stored_output.tables(found), summary())
    assert _run(tmp_path, "gate", "--format", "json") == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == _read(tmp_path, "summary.json")
    assert printed["gate"]["failing"] == 40
    page, notes = _read(tmp_path, "report.html"), _read(tmp_path, "summary.md")
    assert "40 at or above" in page
    assert page.count('<details class="finding critical ') == 32
    assert "8 hanging_transaction/orphan_producer" in page
    assert "40 at or above" in notes
    assert "... and 8 more in" in notes
    case = ElementTree.fromstring(_read(tmp_path, "junit.xml")).find(
        ".//testcase[@name='hanging_transaction']"
    )
    assert case is not None
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == "40 findings at or above the threshold"
    assert "and 8 more hanging_transaction/orphan_producer" in str(failure.text)
    assert len(_read(tmp_path, "findings.jsonl").splitlines()) == 40


def test_what_is_not_judged_never_passes_in_junit(tmp_path: Path, spark: Written) -> None:
    about = summary(could_not_judge=["orders-7 is absent"])
    about["detectors"]["offset_race"] = "not attempted: needs x"
    stored_output.write(tmp_path, stored_output.tables(), about)
    assert _run(tmp_path, "gate") == 3
    root = ElementTree.fromstring(_read(tmp_path, "junit.xml"))
    said = {case.get("name"): [one.tag for one in case] for case in root.iter("testcase")}
    assert said["gate.coverage"] == ["error"]
    assert said["offset_race"] == ["skipped"]
    assert said["gate.freshness"] == ["skipped"]
    assert said["hanging_transaction"] == []
    assert len(said) == len(about["detectors"]) + 20


def test_show_tells_the_timeline(
    tmp_path: Path, spark: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    one = finding()
    stored_output.write(tmp_path, stored_output.tables([one]), summary())
    _run(tmp_path, "gate")
    capsys.readouterr()
    assert cli.run(["show", one["finding_id"][:12], "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "> 2026-11-26 02:00:00.000Z  data orders-0 offsets 0 to 0" in said
    assert "COMMIT marker orders-0 offset 1" in said
    assert "payments-1: CompleteCommit" in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gate"], "no finished run in it"),
        (["report"], "no finished run in it"),
        (["gate", "--fail-on", "all"], "'all' is not one of"),
        (["gate", "--input", "x"], "No such option"),
        (["report", "--fail-on", "major"], "No such option"),
    ],
)
def test_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.run([*arguments, "--output", str(tmp_path / "none")]) == 2
    assert message in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    import configparser

    parser = configparser.ConfigParser()
    parser.read(Path(__file__).resolve().parents[2] / "setup.cfg")
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"kafka-transaction-audit {parser['metadata']['version']}\n"
