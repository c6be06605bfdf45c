"""The three-valued verdict of a run: "could not tell" never looks like "clean"."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What a run concludes about its input."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @property
    def exit_code(self) -> int:
        """The process exit code: 0 passed, 1 failed, 3 unknown."""
        return {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.UNKNOWN: 3}[self]
