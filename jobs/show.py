"""`show FINDING_ID`: one finding with its evidence, from the newest run that holds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.errors import AuditError, UsageError
from pipeline.text import sanitise

SHORTEST = 6
EVENTS, LANES = 200, 50
"""Events of a timeline on the screen, and the partitions, ids and groups that they are of."""


def run(finding_id: str, output: str) -> int:
    """Print one finding.

    Args:
        finding_id: the id, or its first six characters or more.
        output: output root.

    Raises:
        UsageError: no run holds it, or several findings begin so.
    """
    if len(finding_id) < SHORTEST:
        raise UsageError(f"write at least {SHORTEST} characters of the finding id")
    for file in _newest_first(output):
        held = list(_findings(file))
        found = [one for one in held if one["finding_id"].startswith(finding_id.lower())]
        if len(found) > 1:
            ids = ", ".join(one["finding_id"][:12] for one in found[:5])
            raise UsageError(f"{len(found)} findings begin with {sanitise(finding_id)}: {ids}")
        if found:
            from pipeline.report import terminal
            from pipeline.report.causes import effects

            cause_id = effects(held).get(found[0]["finding_id"])
            cause = next((one for one in held if one["finding_id"] == cause_id), None)
            pattern = _summary(file).get("application_pattern")
            terminal.show_finding(found[0], output, *_timeline(found[0], file), cause, pattern)
            return 0
    raise UsageError(f"no run in {sanitise(output)} holds a finding {sanitise(finding_id)}")


def _timeline(finding: dict[str, Any], file: Path) -> tuple[list[tuple[str, str, bool]], int]:
    """What happened around it, from the tables of its run, and how much is left out; nothing when they are gone."""
    output, run_id = file.parents[2], file.parent.name
    if not (output / "silver").is_dir():
        return [], 0
    from pipeline.report.facts import Facts
    from pipeline.report.timeline import Timelines
    from pipeline.report.words import instant

    try:
        timelines = Timelines(Facts(str(output), run_id), [finding], EVENTS, LANES)
    except (AuditError, OSError) as error:
        return [("", sanitise(f"the tables of run {run_id} cannot be read: {error}"), False)], 0
    events, left_out = timelines.of(finding)
    return [(instant(one.time_ms), one.words, one.is_accused) for one in events], left_out


def _summary(file: Path) -> dict[str, Any]:
    """What stands beside the findings; nothing where the run did not come to its end."""
    summary = file.parent / "summary.json"
    try:
        return dict(json.loads(summary.read_bytes())) if summary.exists() else {}
    except ValueError:
        raise AuditError(
            f"{sanitise(str(summary))} is damaged; audit the same copy again"
        ) from None


def _newest_first(output: str) -> list[Path]:
    """The runs' files, of a self-check too, by the time of writing."""
    files = [
        *Path(output).glob("runs/*/findings.jsonl"),
        *Path(output).glob("self-check/runs/*/findings.jsonl"),
    ]
    return sorted(files, key=lambda file: (file.stat().st_mtime_ns, str(file)), reverse=True)


def _findings(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError:
                raise AuditError(
                    f"{sanitise(str(file))}:{number}: not a finding, the file is damaged; "
                    "audit the same copy again"
                ) from None
