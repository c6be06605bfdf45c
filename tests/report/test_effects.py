"""Findings of one cause, such as a hanging transaction and what it holds up: every output says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs import cli
from pipeline.report.causes import effects
from pipeline.report.examples import ordered, where
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
    found = [*_pair(0), *_pair(1), finding(code="zombie_write", severity="major", partition=2)]
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


HANGING = {"first_offset": 4, "last_offset": 9}


@pytest.mark.parametrize(
    ("other", "is_one"),
    [
        ({"code": "write_outside_transaction", "class": "after_completion", "first_offset": 4}, True),
        ({"code": "zombie_write", "class": "after_fence", "first_offset": 7}, True),
        ({"code": "zombie_write", "class": "after_fence", "first_offset": 10}, False),
        ({"code": "zombie_write", "class": "after_fence", "first_offset": 7, "partition": 1}, False),
        ({"code": "duplicate_batch", "class": "exact", "first_offset": 7}, False),
        ({"code": "marker_audit", "class": "missing", "first_offset": 389}, True),
        ({"code": "marker_audit", "class": "missing", "first_offset": 389, "last_timestamp_ms": 1}, False),
        ({"code": "committed_offset", "class": "blocked", "first_offset": 7}, False),
    ],
)  # fmt: skip
def test_what_lies_in_an_open_transaction_has_its_cause(
    other: dict[str, Any], is_one: bool
) -> None:
    held = finding(**other)
    cause = finding(**HANGING)
    assert effects([held, cause]) == ({held["finding_id"]: cause["finding_id"]} if is_one else {})


def test_blocked_commits_wait_for_the_open_transaction_in_the_offsets_topic() -> None:
    cause = finding(topic="__consumer_offsets", partition=3, **HANGING)
    blocked = {"code": "committed_offset", "class": "blocked", "topic": "in", "first_offset": 5}
    held, stranger = finding(**blocked, group_id="g"), finding(**blocked, producer_id=8)
    assert effects([held, stranger, cause]) == {held["finding_id"]: cause["finding_id"]}


def test_an_old_instance_is_one_cause_wherever_it_wrote() -> None:
    zombie = {"code": "zombie_write", "class": "epoch_regressed"}
    first, second = finding(**zombie), finding(**zombie, partition=1)
    other = finding(**zombie, partition=2, producer_epoch=1)
    assert effects([first, second, other]) == {second["finding_id"]: first["finding_id"]}


def test_a_decision_that_nobody_carried_out_is_one_cause_in_all_partitions() -> None:
    stuck = [finding(partition=one, **{"class": "prepare_stuck"}) for one in (0, 1)]
    held_up = finding(partition=1, code="lso_pinned", **{"class": "pinned"})
    first = stuck[0]["finding_id"]
    assert effects([*stuck, held_up]) == dict.fromkeys(
        (stuck[1]["finding_id"], held_up["finding_id"]), first
    )
    strays = [finding(partition=one, **{"class": "not_in_transaction"}) for one in (0, 1)]
    assert effects(strays) == {}


def test_a_marker_that_is_missing_everywhere_is_one_cause() -> None:
    missing = [
        finding(code="marker_audit", partition=one, **{"class": "missing"}) for one in (0, 1)
    ]
    later = finding(code="marker_audit", partition=1, first_offset=9, **{"class": "missing"})
    assert effects([*missing, later]) == {missing[1]["finding_id"]: missing[0]["finding_id"]}


def test_two_promises_broken_by_the_same_bytes_have_one_cause() -> None:
    early = [
        finding(code=code, **{"class": "early_completion"})
        for code in ("offset_race", "marker_audit")
    ]
    assert effects(early) == {early[0]["finding_id"]: early[1]["finding_id"]}


def test_one_cause_alone() -> None:
    gate = {"severity": "major", "certainty": "proven", "failing": 2, "effects": 1}
    assert above(gate) == "2 at or above major, proven, of 1 cause"
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
    said = "4 at or above major, proven, of 2 causes"
    screen = " ".join(capsys.readouterr().out.split())
    assert screen.startswith(f"FAILED: {said}")
    directory = tmp_path / "runs" / RUN_ID
    gate = json.loads((directory / "summary.json").read_text())["gate"]
    assert (gate["failing"], gate["effects"]) == (4, 2)
    assert said in (directory / "summary.md").read_text()
    page = (directory / "report.html").read_text()
    assert said in page
    assert page.count("Of one cause with") == page.count("Of the same cause") == 2


def test_a_commit_is_named_by_where_its_record_lies() -> None:
    commit = finding(code="committed_offset", group_id="g", topic="in", first_offset=13)
    assert where(commit) == "in-0 (__consumer_offsets offset 13)"
    assert where(commit | {"topic": "__consumer_offsets"}) == "__consumer_offsets-0 offset 13"
    assert where(commit | {"group_id": None}) == "in-0 offset 13"
