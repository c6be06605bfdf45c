"""What counts as found, as false accusation and as too sure."""

from __future__ import annotations

from typing import Any

from pipeline.report.expectation import mismatches

EXPECT: dict[str, Any] = {
    "must": [
        {"code": "hanging_transaction", "partition": 1},
        [{"code": "a", "partition": 1}, {"code": "b", "partition": 1}],
    ],
    "may": [{"code": "lso_pinned", "partition": [1, 2]}],
    "never": [{"code": "manual_abort"}],
    "max_certainty_by_class": {"offset_race": {"window": "proven", "*": "consistent_with"}},
}


def _finding(code: str, partition: int = 1, **other: Any) -> dict[str, Any]:
    plain = {"class": "x", "severity": "critical", "certainty": "proven", "status": "new"}
    return {"code": code, "partition": partition} | plain | other


FOUND = [_finding("hanging_transaction"), _finding("b")]


def test_what_is_expected_is_silent() -> None:
    assert mismatches([*FOUND, _finding("lso_pinned", 2)], EXPECT) == []


def test_what_is_missing() -> None:
    assert mismatches(FOUND[1:], EXPECT) == ["missing hanging_transaction 1"]
    assert mismatches(FOUND[:1], EXPECT) == ["missing a 1"]


def test_a_false_accusation() -> None:
    assert mismatches([*FOUND, _finding("lso_pinned", 3)], EXPECT) == [
        "false accusation: lso_pinned x 3"
    ]


def test_harmless_ones_are_allowed() -> None:
    harmless = [
        _finding("z", severity="info"),
        _finding("z", status="resolved"),
        _finding("slow_transaction", severity="minor"),
    ]
    assert mismatches([*FOUND, *harmless], EXPECT) == []
    assert mismatches([*FOUND, _finding("slow_transaction", severity="major")], EXPECT) != []


def test_never_means_never() -> None:
    assert mismatches([*FOUND, _finding("manual_abort", severity="info")], EXPECT) != []


def test_too_sure() -> None:
    race = _finding("offset_race", severity="info", **{"class": "bypass"})
    window = _finding("offset_race", severity="info", **{"class": "window"})
    assert mismatches([*FOUND, race], EXPECT) == [
        "surer than consistent_with: offset_race bypass 1"
    ]
    assert mismatches([*FOUND, window], EXPECT) == []
