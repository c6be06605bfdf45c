"""How sure a finding can be by what it was read from.

What a tool printed may be cut or changed by a hand, and its checksums cannot be verified again:
nothing from it is `proven`. An export holds no batch headers and no markers, and may lack records.
"""

from __future__ import annotations

from pipeline.spark.inventory import LOG, TEXT, Plan
from pipeline.wire.dump_text import EDITED, ELIDED, OTHER_TOOL
from schemas.gold import CERTAINTIES

TEXT_REASONS = (EDITED, ELIDED, OTHER_TOOL, "bad_record", "no_offsets", "no_headers")
"""Reasons of `Plan.unread` that say something about lines of a text or rows of an export."""


def ceilings(plan: Plan) -> dict[int, str]:
    """Copy -> the highest certainty that its findings can have; copies of logs alone are not in it."""
    edited = {one.name for one in plan.unread if one.reason == EDITED}
    found: dict[int, str] = {}
    for one in plan.replicas:
        if one.source == LOG:
            continue
        is_edited = one.source == TEXT and one.name in edited
        certainty = "suspicion" if is_edited else "proven_if_complete"
        found[one.copy] = capped(found.get(one.copy, "proven"), certainty)
    return found


def capped(certainty: str, ceiling: str | None) -> str:
    """The less sure of two certainties."""
    if ceiling is None:
        return certainty
    return CERTAINTIES[max(CERTAINTIES.index(certainty), CERTAINTIES.index(ceiling))]
