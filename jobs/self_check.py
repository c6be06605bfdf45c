"""The run without an input: a recording of a real incident, and what it is known to hold."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import Config
from pipeline.errors import SelfCheckFailed
from pipeline.report.expectation import mismatches
from pipeline.text import sanitise

if TYPE_CHECKING:
    from pipeline.audit import AuditResult

SAMPLE = Path(__file__).resolve().parents[1] / "tests" / "recordings" / "06-hanging-transaction-3.9"


def configure(config: Config) -> Config:
    """The sample as input, and an output root of its own beside those of real clusters."""
    return config.model_copy(
        update={"inputs": (str(SAMPLE / "logs"),), "output": str(Path(config.output, "self-check"))}
    )


def exit_code(result: AuditResult) -> int:
    """0 when the findings are exactly the known ones.

    Raises:
        SelfCheckFailed: they are not.
    """
    expected = json.loads((SAMPLE / "expect.json").read_text(encoding="utf-8"))
    wrong = mismatches(result.examples, expected)
    if wrong:
        raise SelfCheckFailed("self-check failed: " + "; ".join(sanitise(line) for line in wrong))
    print(
        "self-check passed: the bundled sample holds exactly these findings. Audit your own: "
        "./spark-submit.sh --input PATH",
        file=sys.stderr,
    )
    return 0
