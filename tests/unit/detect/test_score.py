"""The matcher of `expect.json`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.score import complaints, matches


def finding(code: str = "marker_audit", **fields: Any) -> dict[str, Any]:
    plain = {"class": "torn", "severity": "critical", "certainty": "proven", "status": "new"}
    return {"code": code, **plain, **fields}


@pytest.mark.parametrize(
    ("wanted", "is_match"),
    [
        ({"code": "marker_audit"}, True),
        ({"code": "marker_audit", "class": ["missing", "torn"]}, True),
        ({"code": "marker_audit", "class": "missing"}, False),
        ({"code": "marker_audit", "partition": 1}, False),
        ([{"code": "other"}, {"code": "marker_audit"}], True),
        ([{"code": "other"}], False),
    ],
)
def test_an_entry_matches_when_all_its_fields_do(wanted: Any, is_match: bool) -> None:
    assert matches(finding(), wanted) is is_match


MUST = {"must": [{"code": "marker_audit"}], "exit": [1]}
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any], int]] = {
    "as expected": ([finding()], MUST, 0),
    "missed": ([], MUST, 1),
    "false accusation": ([finding(), finding("zombie_write")], MUST, 1),
    "it may be there": (
        [finding(), finding("zombie_write")], {**MUST, "may": [{"code": "zombie_write"}]}, 0
    ),
    "information accuses nobody": ([finding(), finding("x", severity="info")], MUST, 0),
    "it is over": ([finding(), finding("x", status="resolved")], MUST, 0),
    "health": ([finding(), finding("slow_transaction", severity="minor")], MUST, 0),
    "health that is major": ([finding(), finding("slow_transaction", severity="major")], MUST, 1),
    "never, not even as information": (
        [finding(), finding("x", severity="info")], {**MUST, "never": [{"code": "x"}]}, 1
    ),
    "too sure": (
        [finding()], {**MUST, "max_certainty_by_class": {"marker_audit": {"*": "suspicion"}}}, 1
    ),
    "sure enough": (
        [finding()],
        {**MUST, "max_certainty_by_class": {"marker_audit": {"*": "suspicion", "torn": "proven"}}},
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_complaints(name: str) -> None:
    findings, expect, count = CASES[name]
    assert len(complaints(findings, expect, 1)) == count
    assert len(complaints(findings, expect, 0)) == count + 1
