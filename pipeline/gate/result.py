"""What the gate says: one outcome an expectation, and the verdict they make together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from pipeline.verdict import Verdict

Outcome = Literal["passed", "failed", "unknown", "not_asked"]
EVIDENCE_SHOWN = 20


class Checked(NamedTuple):
    """One expectation.

    Attributes:
        name: Stable name.
        promise: What is expected, in one sentence.
        outcome: passed, failed, unknown (it could not be judged, or it crashed) or not_asked.
        offences: How many things offend it.
        evidence: The first of them.
    """

    name: str
    promise: str
    outcome: Outcome
    offences: int = 0
    evidence: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As it stands in `summary.json`."""
        return {**self._asdict(), "evidence": list(self.evidence)}


class GateResult(NamedTuple):
    """All expectations of a run."""

    checks: tuple[Checked, ...]

    @property
    def verdict(self) -> Verdict:
        """Failed when one failed; passed only when all that were asked did."""
        return verdict_of(one.outcome for one in self.checks)


def verdict_of(outcomes: Iterable[str]) -> Verdict:
    """Failed goes before unknown; no outcome at all is unknown, and so is a word that is none."""
    found = list(outcomes)
    if "failed" in found:
        return Verdict.FAILED
    judged = [one for one in found if one != "not_asked"]
    if judged and all(one == "passed" for one in judged):
        return Verdict.PASSED
    return Verdict.UNKNOWN
