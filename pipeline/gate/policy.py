"""Which findings fail a run: thresholds by severity and certainty, and what is suppressed."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pipeline.config_sections import Gate
from pipeline.suppressions import Suppression
from pipeline.text import sanitise
from schemas.gold import CERTAINTIES, SEVERITIES

Finding = dict[str, Any]
CURRENT = ("new", "open")


def is_failing(finding: Finding, gate: Gate) -> bool:
    """Whether a finding is new or open, and at or above the thresholds that hold for it."""
    if finding["status"] not in CURRENT:
        return False
    severity, certainty = thresholds(finding, gate)
    return (
        severity != "none"
        and SEVERITIES.index(finding["severity"]) <= SEVERITIES.index(severity)
        and CERTAINTIES.index(finding["certainty"]) <= CERTAINTIES.index(certainty)
    )


def thresholds(finding: Finding, gate: Gate) -> tuple[str, str]:
    """Severity (`none`: never fails) and certainty from which on a finding fails."""
    for rule in gate.rules:
        has_topic = rule.topic is None or (
            finding["topic"] is not None and fnmatch.fnmatchcase(finding["topic"], rule.topic)
        )
        if has_topic and fnmatch.fnmatchcase(finding["code"], rule.code):
            return rule.severity or gate.severity, rule.certainty or gate.certainty
    return gate.severity, gate.certainty


def suppress(
    findings: Iterable[Finding], suppressions: Sequence[Suppression], now_ms: int | None
) -> tuple[list[Finding], list[dict[str, Any]]]:
    """Gives current findings that a suppression takes the status `suppressed`.

    Args:
        findings: Of this run, with their status.
        suppressions: In the order of the file.
        now_ms: The clock; without one every suppression counts as expired.

    Returns:
        The findings in the same order, and for each suppression what became of it: `used`,
        `expired`, `shadowed` (all that it fits was taken by entries before it) or `unused`.
    """
    taken = [0] * len(suppressions)
    fitting = [0] * len(suppressions)
    result = []
    for finding in findings:
        fits = [
            number
            for number, one in enumerate(suppressions)
            if finding["status"] in CURRENT and one.fits(finding)
        ]
        for number in fits:
            fitting[number] += 1
        holder = next((one for one in fits if not suppressions[one].is_expired(now_ms)), None)
        if holder is None:
            result.append(finding)
        else:
            taken[holder] += 1
            result.append({**finding, "status": "suppressed"})
    reported = [
        {
            "code": sanitise(one.code),
            "line": one.line,
            "state": _state(one.is_expired(now_ms), taken[number], fitting[number]),
            "count": taken[number],
            "reason": sanitise(one.reason),
            "owner": sanitise(one.owner),
            "expires": _last_day(one.expires_ms),
        }
        for number, one in enumerate(suppressions)
    ]
    return result, reported


def _state(is_expired: bool, taken: int, fitting: int) -> str:
    if is_expired:
        return "expired"
    if taken:
        return "used"
    return "shadowed" if fitting else "unused"


def _last_day(expires_ms: int) -> str:
    return datetime.fromtimestamp(expires_ms / 1000 - 1, UTC).strftime("%Y-%m-%d")
