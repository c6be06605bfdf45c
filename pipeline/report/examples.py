"""Which findings people are shown: a number of each code and class, with the full count beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from pipeline.report.causes import CURRENT, Finding, effects
from schemas.codes import OFFSETS_TOPIC
from schemas.gold import SEVERITIES


class Examples(NamedTuple):
    """Findings to show.

    Attributes:
        shown: Current ones first, most severe first.
        left_out: (code, class) -> how many more there are.
    """

    shown: list[Finding]
    left_out: dict[tuple[str, str], int]


def examples(findings: Iterable[Finding], limit: int) -> Examples:
    """The first `limit` findings of each code and class, new and open ones before the others.

    Args:
        findings: Most severe first.
        limit: How many of one code and class.
    """
    seen: Counter[tuple[str, str]] = Counter()
    shown = []
    for one in ordered(findings):
        key = (one["code"], one["class"])
        seen[key] += 1
        if seen[key] <= limit:
            shown.append(one)
    return Examples(shown, {key: count - limit for key, count in seen.items() if count > limit})


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Current ones first, then by severity; of one severity the effects of others last; else the order as it was."""
    held = list(findings)
    caused = effects(held)

    def rank(one: Finding) -> tuple[bool, int, bool]:
        is_over = one["status"] not in CURRENT
        return is_over, SEVERITIES.index(one["severity"]), one["finding_id"] in caused

    return sorted(held, key=rank)


def named(finding: Finding) -> str:
    """Code, class and place of a finding, for a reference to it."""
    return f"{finding['code']}/{finding['class']} {where(finding)}".rstrip()


def where(finding: Finding) -> str:
    """`topic-partition offset n`, as far as it applies; of a commit, whose record lies elsewhere, where that is."""
    parts = [] if finding["topic"] is None else [f"{finding['topic']}-{finding['partition']}"]
    if finding["first_offset"] is not None:
        is_commit = finding["group_id"] is not None and finding["topic"] != OFFSETS_TOPIC
        at = f"offset {finding['first_offset']}"
        parts.append(f"({OFFSETS_TOPIC} {at})" if is_commit else at)
    return " ".join(parts)


def place(evidence: dict[str, Any]) -> str:
    """One piece of evidence in a line: offset, what it is, broker, file and byte."""
    broker = "" if evidence["broker"] is None else f"broker {evidence['broker']}, "
    file = evidence["file"] or "the coordinator's state"
    at = "" if evidence["position"] is None else f" at byte {evidence['position']}"
    return f"offset {evidence['offset']}: {evidence['what']} ({broker}{file}{at})"
