"""Which findings people are shown: a number of each code and class, with the full count beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

Finding = dict[str, Any]
CURRENT = ("new", "open")


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
    for one in sorted(findings, key=lambda finding: finding["status"] not in CURRENT):
        key = (one["code"], one["class"])
        seen[key] += 1
        if seen[key] <= limit:
            shown.append(one)
    return Examples(shown, {key: count - limit for key, count in seen.items() if count > limit})


def where(finding: Finding) -> str:
    """`topic-partition offset n`, as far as it applies."""
    parts = [] if finding["topic"] is None else [f"{finding['topic']}-{finding['partition']}"]
    if finding["first_offset"] is not None:
        parts.append(f"offset {finding['first_offset']}")
    return " ".join(parts)


def place(evidence: dict[str, Any]) -> str:
    """One piece of evidence in a line: offset, what it is, broker, file and byte."""
    broker = "" if evidence["broker"] is None else f"broker {evidence['broker']}, "
    file = evidence["file"] or "the coordinator's state"
    at = "" if evidence["position"] is None else f" at byte {evidence['position']}"
    return f"offset {evidence['offset']}: {evidence['what']} ({broker}{file}{at})"
