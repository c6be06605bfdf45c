"""Figure 16 of `docs/reliability.md`: recall and precision of each detector over planted faults."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.score import Finding, is_loud, matches


@dataclass
class Tally:
    """Counts by detector; a test adds each planted history, the last test of its module prints them.

    Attributes:
        planted: Faults planted.
        found: Faults of them that were found.
        true: Findings that a planted fault explains.
        false: Findings that none explains.
    """

    planted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    true: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        code: str,
        wanted: list[dict[str, object]],
        findings: list[Finding],
        allowed: list[dict[str, object]],
    ) -> bool:
        """Count one history; answers whether its fault was found.

        Args:
            code: detector of the planted fault.
            wanted: how it may be told.
            findings: what was told.
            allowed: what the fault explains.
        """
        is_found = any(matches(one, wanted) for one in findings)
        self.planted[code] += 1
        self.found[code] += is_found
        for one in findings:
            if is_loud(one):
                is_true = any(matches(one, other) for other in allowed)
                (self.true if is_true else self.false)[one["code"]] += 1
        return is_found

    def lines(self) -> list[str]:
        """One line a detector: recall, then precision."""
        said = []
        for code in sorted(self.planted | self.true | self.false):
            told = self.true[code] + self.false[code]
            recall = f"{self.found[code]} of {self.planted[code]} faults found"
            said.append(f"{code:26} {recall:24} {self.true[code]} of {told} findings true")
        return said
