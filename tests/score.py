"""Findings against a recording's `expect.json`: what is missed, accused falsely or claimed too much.

`must`: each entry has to match a finding (all its fields equal; a list as value means any of; a
list as entry means alternatives). `may`: allowed. `never`: no finding may match, at any severity.
Any other finding above `info` that is not over is a false accusation; statements about health are
none while they are `minor`. `exit`: allowed exit codes. `max_certainty_by_class`: a ceiling.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Finding = dict[str, Any]
HEALTH = ("slow_transaction", "fencing_storm", "id_hygiene")
OVER = ("resolved", "not_seen", "suppressed")
CERTAINTIES = ("suspicion", "consistent_with", "proven_if_complete", "proven")


def expected(recording: Path) -> dict[str, Any]:
    """A recording's `expect.json`."""
    loaded: dict[str, Any] = json.loads((recording / "expect.json").read_text())
    return loaded


def findings_of(run_folder: Path) -> list[Finding]:
    """`findings.jsonl` of one run."""
    lines = (run_folder / "findings.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def matches(finding: Finding, wanted: Any) -> bool:
    """Whether a finding is what an entry describes."""
    if isinstance(wanted, list):
        return any(matches(finding, one) for one in wanted)
    return all(
        finding.get(name) in value if isinstance(value, list) else finding.get(name) == value
        for name, value in wanted.items()
    )


def is_loud(finding: Finding) -> bool:
    """Whether it accuses anybody."""
    is_health = finding["severity"] == "minor" and finding["code"] in HEALTH
    return finding["severity"] != "info" and finding.get("status") not in OVER and not is_health


def complaints(
    findings: list[Finding], expect: dict[str, Any], exit_code: int | None = None
) -> list[str]:
    """What is wrong with the findings, one line each; nothing when all is as expected.

    Args:
        findings: All of a run.
        expect: Content of `expect.json`.
        exit_code: The run's; None is not looked at.
    """
    must, allowed = expect["must"], [*expect["must"], *expect.get("may", [])]
    wrong = [
        f"missed: {json.dumps(wanted)}"
        for wanted in must
        if not any(matches(one, wanted) for one in findings)
    ]
    never = expect.get("never", [])
    for one in findings:
        is_extra = is_loud(one) and not any(matches(one, wanted) for wanted in allowed)
        if is_extra or any(matches(one, wanted) for wanted in never):
            wrong.append(f"false: {told(one)}")
        ceiling = expect.get("max_certainty_by_class", {}).get(one["code"])
        if ceiling is not None:
            most = ceiling.get(one["class"], ceiling["*"])
            if CERTAINTIES.index(one["certainty"]) > CERTAINTIES.index(most):
                wrong.append(f"too sure: {told(one)}")
    if exit_code is not None and exit_code not in expect.get("exit", [exit_code]):
        wrong.append(f"exit code {exit_code} is none of {expect['exit']}")
    return wrong


def told(finding: Finding) -> str:
    """A finding in one line."""
    names = ("code", "class", "severity", "certainty", "topic", "partition", "producer_id",
             "transactional_id", "first_offset", "reason")  # fmt: skip
    return " ".join(f"{finding[name]}" for name in names if finding.get(name) is not None)
