"""A hanging transaction and what it holds up are two findings of one cause: every output says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs import cli
from pipeline.report.examples import effects, ordered
from pipeline.report.words import above
from pipeline.spark import session, tables
from tests import stored_output
from tests.stored_output import RUN_ID, finding, summary


def _pair(partition: int, **changed: Any) -> list[dict[str, Any]]:
    cause = finding(partition=partition, **changed)
    held_up = finding(
        partition=partition,
        code="lso_pinned",
        **{"class": "pinned"},
        title="consumers wait",
        **changed,
    )
    return [held_up, cause]


def test_an_effect_stands_behind_all_causes_of_its_severity() -> None:
    found = [*_pair(0), *_pair(1), finding(code="zombie_write", severity="major")]
    assert [one["code"] for one in ordered(found)] == [
        "hanging_transaction", "hanging_transaction", "lso_pinned", "lso_pinned", "zombie_write",
    ]  # fmt: skip
    assert effects(found) == {
        found[0]["finding_id"]: found[1]["finding_id"],
        found[2]["finding_id"]: found[3]["finding_id"],
    }


@pytest.mark.parametrize(
    "other", [{"first_offset": 5}, {"producer_id": 8}, {"partition": 1}, {"status": "resolved"}]
)
def test_a_pin_of_another_transaction_is_no_effect(other: dict[str, Any]) -> None:
    held_up, cause = _pair(0)
    assert effects([held_up, cause | other]) == {}


def test_one_cause_alone() -> None:
    gate = {"severity": "major", "certainty": "proven", "failing": 2, "effects": 1}
    assert above(gate) == "2 at or above major, proven: 1 cause and its 1 lso_pinned"
    assert above(gate | {"effects": 0}) == "2 at or above major, proven"


def test_screen_page_and_summary_count_the_cause_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "build", lambda **_: None)
    monkeypatch.setattr(tables, "local", lambda *_: None)
    monkeypatch.setattr(tables, "replace", lambda *_, **__: None)
    monkeypatch.setattr(tables, "replace_rows", lambda *_, **__: None)
    stored_output.write(tmp_path, stored_output.tables([*_pair(0), *_pair(1)]), summary())
    assert cli.run(["gate", "--output", str(tmp_path), "--now", "2026-11-26T03:00:00Z"]) == 1
    said = "4 at or above major, proven: 2 causes and their 2 lso_pinned"
    screen = " ".join(capsys.readouterr().out.split())
    assert screen.startswith(f"FAILED: {said}")
    directory = tmp_path / "runs" / RUN_ID
    gate = json.loads((directory / "summary.json").read_text())["gate"]
    assert (gate["failing"], gate["effects"]) == (4, 2)
    assert said in (directory / "summary.md").read_text()
    page = (directory / "report.html").read_text()
    assert said in page
    assert page.count("What holds it up") == page.count("What it holds up") == 2
