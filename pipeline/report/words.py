"""Words that the terminal, the page and the other files share, so that they say the same."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pipeline.replay.application import told
from pipeline.text import counted

VERDICTS = {
    "passed": "Nothing at or above the threshold",
    "failed": "Something at or above the threshold",
    "unknown": "Nothing failed, but not everything could be judged",
}
SAID_ELSEWHERE = ("gate.findings", "gate.coverage")
"""Expectations whose evidence stands in the findings and in what could not be judged."""
SEVERITIES = {
    "critical": "data lost, duplicated, exposed or blocked now",
    "major": "a promise was broken, effect over or bounded",
    "minor": "a weakness",
    "info": "provenance",
}


OVER = {
    "resolved": "Nothing: it is over. What was advised",
    "not_seen": "No word on it in this run. What was advised",
}
"""Findings of earlier runs, and what stands before their advice: its commands are not to be run as they are."""


def verdict(summary: dict[str, Any]) -> str:
    """The verdict in one sentence; a run can fail by what was checked of the run itself, without a finding.

    Args:
        summary: the content of `summary.json`.
    """
    if summary["verdict"] == "failed" and not summary["gate"]["failing"]:
        return "What was read and what the tables hold do not agree"
    return VERDICTS[summary["verdict"]]


def wrong(expectations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Expectations that failed or could not be told and that nothing else on the page says."""
    return [
        one
        for one in expectations
        if one["outcome"] in ("failed", "unknown") and one["name"] not in SAID_ELSEWHERE
    ]


def above(gate: dict[str, Any]) -> str:
    """How many findings fail the run, and how many causes they have.

    Args:
        gate: `gate` of `summary.json`; that of an earlier version does not tell effects apart.
    """
    failing, effects = gate["failing"], gate.get("effects", 0)
    said = f"{failing} at or above {gate['severity']}, {gate['certainty'].replace('_', ' ')}"
    if effects:
        said += f", of {counted(failing - effects, 'cause')}"
    return said


def read(seen: dict[str, Any]) -> str:
    """What was read, in numbers.

    Args:
        seen: `coverage` of `summary.json`.
    """
    partitions, replicas, segments, size, batches = (
        counted(seen[name], *words)
        for name, words in (
            ("partitions", ("partition",)),
            ("replicas", ("replica",)),
            ("segments", ("segment",)),
            ("bytes", ("byte",)),
            ("batches", ("batch", "batches")),
        )
    )
    said = f"{partitions} ({replicas}), {segments}, {size}, {batches}"
    copies = seen.get("copies", 1)
    apart = "copies of the cluster at several times; the files of a finding's evidence say which it is of"
    return said if copies == 1 else f"{said}, in {copies} {apart}"


def utc(timestamp_ms: int) -> str:
    """A time in UTC; the number itself when no calendar reaches it."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"


def instant(timestamp_ms: int) -> str:
    """A time in UTC to the millisecond."""
    whole = utc(timestamp_ms)
    return f"{whole[:-1]}.{timestamp_ms % 1000:03d}Z" if whole.endswith("Z") else whole


def duration(milliseconds: float) -> str:
    """A span of time in its largest fitting units."""
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 86_400:.3g} d"


def application_of(finding: Mapping[str, Any], pattern: str | None) -> str:
    """The application that the transactional id of a finding tells, and its framework; empty where it tells none.

    Args:
        finding: The finding.
        pattern: `health.application_pattern` of the run.
    """
    return told(finding["transactional_id"] or "", pattern)
