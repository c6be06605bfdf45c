"""Defects of Kafka that leave what a class describes, for its advice: only those that the brokers may still have.

A class tells what the log shows and stands whatever the brokers' version is. The defects below are its known causes; a
log that proves a release which has the fix is not said to suffer from them (`pipeline.replay.version_bounds`).

Releases are those whose history holds the fix: 2.6.0 (KAFKA-9777), 3.8.0 (KAFKA-16352), 4.0.0 (KAFKA-17877),
2.2.2 and 2.3.0 (KAFKA-8351), 2.8.2, 3.0.2, 3.1.1 and 3.2.0 (KAFKA-13727), 3.0.2, 3.1.2, 3.2.1 and 3.3.0
(KAFKA-14055), 2.4.1 and 2.5.0 (KAFKA-9144).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pipeline.replay.version_bounds import Version


class Defect(NamedTuple):
    """A defect that is fixed.

    Attributes:
        name: Its issue.
        fixed_in: Releases that brought the fix, as people read them.
        since: First version from which every release has it.
    """

    name: str
    fixed_in: str
    since: Version


_PURGATORY = Defect("KAFKA-9777", "2.6.0", (2, 6))
_PENDING = Defect("KAFKA-16352", "3.8.0", (3, 8))
_ANSWERED = Defect("KAFKA-17877", "4.0.0", (4, 0))
_CLEANED = (
    Defect("KAFKA-8351", "2.2.2, 2.3.0", (2, 3)),
    Defect("KAFKA-13727", "2.8.2, 3.0.2, 3.1.1, 3.2.0", (3, 2)),
    Defect("KAFKA-14055", "3.0.2, 3.1.2, 3.2.1, 3.3.0", (3, 3)),
)
_FORGOTTEN = Defect("KAFKA-9144", "2.4.1, 2.5.0", (2, 5))

CAUSES: Mapping[tuple[str, str], tuple[Defect, ...]] = {
    ("hanging_transaction", "prepare_stuck"): (_PURGATORY, _PENDING, _ANSWERED),
    ("coordinator_state", "prepare_with_all_markers"): (_PURGATORY, _PENDING, _ANSWERED),
    ("marker_audit", "missing"): _CLEANED,
    ("marker_audit", "early_completion"): (_ANSWERED,),
    ("visibility", "aborted_exposed"): _CLEANED[1:2],
    ("zombie_write", "stale_coordinator"): (_FORGOTTEN,),
}
"""Class -> defects that are known to leave it, oldest first."""


def told(code: str, label: str, bound: Version | None) -> str:
    """The known causes of a class that a lower bound does not exclude, as a sentence; empty where there is none."""
    held = [one for one in CAUSES.get((code, label), ()) if bound is None or bound < one.since]
    if not held:
        return ""
    named = "; ".join(f"{one.name} (fixed in {one.fixed_in})" for one in held)
    return f"Known causes in older brokers: {named}."
