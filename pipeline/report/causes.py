"""Which findings tell one cause: what one broken thing leaves in several places, or breaks several promises.

Each finding stays, with its own id; people begin with the one whose advice ends the cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from schemas.codes import OFFSETS_TOPIC
from schemas.gold import SEVERITIES

Finding = dict[str, Any]
CURRENT = ("new", "open")
_HANGING = "hanging_transaction"
_FIRST = (_HANGING, "zombie_write", "write_outside_transaction", "marker_audit")
"""Codes whose advice is taken before that of others for the same bytes."""
_DECIDED = ("prepare_stuck", "past_deadline")
"""Classes of hanging transactions that the coordinator has to end, everywhere at once."""


def effects(findings: Iterable[Finding]) -> dict[str, str]:
    """Finding id -> finding id of what causes it; current findings only, and causes have no cause.

    Args:
        findings: Of one run. Certainty plays no part: findings of one cause may differ in it.
    """
    held = sorted((one for one in findings if one["status"] in CURRENT), key=_order)
    at: dict[Any, list[Finding]] = defaultdict(list)
    open_in: dict[Any, list[Finding]] = defaultdict(list)
    same: dict[Any, Finding] = {}
    found: dict[str, str] = {}
    for one in held:
        place = _place(one)
        cause = next((other for other in at[place] if other["code"] != one["code"]), None)
        cause = cause or next((other for other in open_in[_run(one)] if _holds(other, one)), None)
        for key in _same(one):
            cause = cause or same.get(key)
        if cause is not None:
            root: str = cause["finding_id"]
            found[one["finding_id"]] = found.get(root, root)
        for key in _same(one):
            same.setdefault(key, one)
        if place is not None:
            at[place].append(one)
        if one["code"] == _HANGING:
            open_in[_run(one)].append(one)
    return found


def _order(finding: Finding) -> tuple[int, int]:
    code = finding["code"]
    rank = _FIRST.index(code) if code in _FIRST else len(_FIRST)
    return rank, SEVERITIES.index(finding["severity"])


def _place(finding: Finding) -> tuple[Any, ...] | None:
    """The same bytes of the same producer; those of coordinator findings are a record's."""
    key = tuple(finding[name] for name in ("topic", "partition", "producer_id", "first_offset"))
    is_prepare = (finding["code"], finding["class"]) == ("marker_audit", "missing")
    return None if None in key or is_prepare else key


def _run(finding: Finding) -> tuple[Any, ...]:
    """Where an open transaction that explains a finding may be: a group's offsets stand in `__consumer_offsets`."""
    is_commit = finding["code"] == "committed_offset"
    return OFFSETS_TOPIC if is_commit else finding["topic"], finding["producer_id"]


def _holds(hanging: Finding, other: Finding) -> bool:
    """An open transaction is why: what lies in it was written outside one, waits for it, or lacks its marker."""
    code, name, at = other["code"], other["class"], other["first_offset"]
    is_here = hanging["partition"] == other["partition"]
    if (code, name) == ("marker_audit", "missing"):
        ended, began = other["last_timestamp_ms"], hanging["first_timestamp_ms"]
        return is_here and (ended is None or began is None or ended >= began)
    if at is None or not hanging["first_offset"] <= at <= hanging["last_offset"]:
        return False
    if code == "committed_offset":
        return bool(name == "blocked")
    return is_here and code in ("write_outside_transaction", "zombie_write")


def _same(finding: Finding) -> list[tuple[Any, ...]]:
    """What makes findings of one detector one cause: an old instance, one decision that no broker carried out."""
    code, name = finding["code"], finding["class"]
    who = (finding["producer_id"], finding["producer_epoch"])
    if code == "zombie_write" and finding["producer_id"] is not None:
        return [(code, name == "stale_coordinator", *who)]
    if finding["transactional_id"] is None:
        return []
    if code == _HANGING and name in _DECIDED:
        return [(code, name, finding["transactional_id"], *who)]
    if (code, name) == ("marker_audit", "missing") and finding["first_offset"] is not None:
        return [(code, name, finding["transactional_id"], finding["first_offset"])]
    return []
