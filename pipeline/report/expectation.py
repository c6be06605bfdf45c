"""Compares findings with what an input is known to hold (`expect.json` beside a recording)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_OVER = frozenset({"resolved", "not_seen", "suppressed"})
_HEALTH = frozenset({"slow_transaction", "fencing_storm", "id_hygiene"})
_CERTAINTIES = ("suspicion", "consistent_with", "proven_if_complete", "proven")


def mismatches(findings: Iterable[dict[str, Any]], expect: dict[str, Any]) -> list[str]:
    """What is missing, what is a false accusation, and what is surer than it may be.

    Args:
        findings: all findings of the run.
        expect: `must` (an entry, or a list of alternatives), `may` and `never`, whose entries name
            fields with their value or a list of values any of which fits; `max_certainty_by_class`:
            code -> class or `*` -> limit.

    Returns:
        One line a mismatch; empty when the findings are as expected.
    """
    given = list(findings)
    must = [entry if isinstance(entry, list) else [entry] for entry in expect.get("must", [])]
    allowed = [*expect.get("may", []), *(entry for entries in must for entry in entries)]
    wrong = [
        f"missing {_name(entries[0])}"
        for entries in must
        if not any(_fits(entry, finding) for entry in entries for finding in given)
    ]
    for finding in given:
        if any(_fits(entry, finding) for entry in expect.get("never", [])):
            wrong.append(f"must not be reported: {_name(finding)}")
        elif not _is_harmless(finding) and not any(_fits(entry, finding) for entry in allowed):
            wrong.append(f"false accusation: {_name(finding)}")
        limits = expect.get("max_certainty_by_class", {}).get(finding["code"], {})
        limit = limits.get(finding["class"], limits.get("*"))
        if limit and _CERTAINTIES.index(finding["certainty"]) > _CERTAINTIES.index(limit):
            wrong.append(f"surer than {limit}: {_name(finding)}")
    return wrong


def _is_harmless(finding: dict[str, Any]) -> bool:
    is_health = finding["code"] in _HEALTH and finding["severity"] == "minor"
    return finding["severity"] == "info" or finding["status"] in _OVER or is_health


def _fits(entry: dict[str, Any], finding: dict[str, Any]) -> bool:
    return all(
        finding.get(field) in value if isinstance(value, list) else finding.get(field) == value
        for field, value in entry.items()
    )


def _name(fields: dict[str, Any]) -> str:
    where: Sequence[str] = (
        "code",
        "class",
        "topic",
        "partition",
        "first_offset",
        "transactional_id",
        "group_id",
    )
    return " ".join(str(fields[field]) for field in where if fields.get(field) is not None)
