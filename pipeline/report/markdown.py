"""`summary.md` for the job pages of CI systems: short, under 1 MB, and nothing in it is live.

Everything that comes out of logs stands in code spans, in which neither Markdown, HTML, links nor
mentions are interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pipeline.report.advice import show
from pipeline.report.causes import CURRENT, Finding, effects
from pipeline.report.examples import examples, named, where
from pipeline.report.words import SAID_ELSEWHERE, above, application_of, read, utc, verdict
from pipeline.text import sanitise

MAX_BYTES = 900_000
MAX_FINDINGS = 100
MAX_OVER = 20
"""Resolved and not seen findings that are named, of each."""


def markdown(summary: dict[str, Any], findings: list[Finding], limit: int, output: str) -> str:
    """The file's text.

    Args:
        summary: The content of `summary.json`.
        findings: All that are shown, most severe first.
        limit: How many findings of one code and class are shown.
        output: Output root.
    """
    lines: list[str] = []
    size = 0
    for line in _lines(summary, findings, limit, output):
        size += len(line.encode("utf-8", "backslashreplace")) + 1
        if size > MAX_BYTES:
            lines.append("\n_Cut here; findings.jsonl and summary.json hold everything._")
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """A code span that holds any text: the fence is longer than every run of backticks in it."""
    shown = sanitise(text)
    if not shown.strip():
        return "` `"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in (shown[0], shown[-1]) or (shown[0] == shown[-1] == " ") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _lines(
    summary: dict[str, Any], findings: list[Finding], limit: int, output: str
) -> Iterator[str]:
    gate = summary["gate"]
    yield f"## Kafka transaction audit: {summary['verdict'].upper()}"
    yield ""
    yield f"{verdict(summary)}. Findings: {above(gate)}."
    yield ""
    yield from _changes(summary)
    doubts = list(_section("Could not be judged", map(code, summary["could_not_judge"])))
    is_unknown = summary["verdict"] == "unknown"
    yield from doubts if is_unknown else ()
    current = [one for one in findings if one["status"] in CURRENT]
    pattern = summary.get("application_pattern")
    yield from _findings(
        current,
        limit,
        lambda one: show(one, output, is_private="redaction" in summary),
        lambda one: application_of(one, pattern),
    )
    yield from _expectations(summary["expectations"])
    yield from () if is_unknown else doubts
    yield from _section("Resolved", _over(findings, "resolved"))
    yield from _section("Not seen: no word on them in this run", _over(findings, "not_seen"))
    yield from _section("Not attempted", _not_attempted(summary["detectors"]))
    yield from _section("Suppressions to look at", _suppressions(summary["suppressions"]))
    yield from _coverage(summary)


def _changes(summary: dict[str, Any]) -> Iterator[str]:
    by_status = summary["counts"]["by_status"]
    said = [f"{by_status[name]} {name.replace('_', ' ')}" for name in by_status]
    earlier = summary["previous_run"]
    since = f" Compared with run {code(earlier)}." if earlier else ""
    yield f"Findings: {', '.join(said) or 'none'}.{since}"
    yield ""


def _findings(
    current: list[Finding],
    limit: int,
    command: Callable[[Finding], str],
    application: Callable[[Finding], str],
) -> Iterator[str]:
    if not current:
        return
    chosen = examples(current, limit)
    caused, by_id = effects(current), {one["finding_id"]: one for one in current}
    yield "### Findings"
    yield ""
    for one in chosen.shown[:MAX_FINDINGS]:
        name = code(f"{one['code']}/{one['class']}")
        sure = f"{one['certainty'].replace('_', ' ')}, {one['status']}"
        at = f" {code(where(one))}" if where(one) else ""
        yield f"- **{one['severity'].upper()}** {name}{at} ({sure})"
        yield f"  {code(one['title'])}"
        if known := application(one):
            yield f"  Application: {code(known)}"
        if one["finding_id"] in caused:
            cause = by_id[caused[one["finding_id"]]]
            yield f"  Of one cause with {code(named(cause))}: begin there"
        elif one["advice"]:
            yield f"  What to do: {code(one['advice'])}"
        yield f"  Details: {code(command(one))}"
    left = len(current) - len(chosen.shown[:MAX_FINDINGS])
    if left:
        yield f"- ... and {left} more in {code('findings.jsonl')}"
    yield ""


def _over(findings: list[Finding], status: str) -> Iterator[str]:
    """What an earlier run found and this one does not, the first of them by name."""
    held = [one for one in findings if one["status"] == status]
    for one in held[:MAX_OVER]:
        name = code(f"{one['code']}/{one['class']}")
        yield f"{one['severity']} {name} {code(one['title'])}"
    if len(held) > MAX_OVER:
        yield f"... and {len(held) - MAX_OVER} more in {code('findings.jsonl')}"


def _expectations(found: list[dict[str, Any]]) -> Iterator[str]:
    wrong = [one for one in found if one["outcome"] in ("failed", "unknown")]
    if not wrong:
        return
    yield "### Expectations that did not pass"
    yield ""
    for one in wrong:
        yield f"- **{one['outcome']}** {code(one['name'])}: {one['promise']}"
        if one["name"] not in SAID_ELSEWHERE:
            yield from (f"  - {code(line)}" for line in one["evidence"])
    yield ""


def _not_attempted(detectors: dict[str, str]) -> Iterator[str]:
    return (
        f"{code(name)}: {code(state)}" for name, state in detectors.items() if state != "judged"
    )


def _suppressions(found: list[dict[str, Any]]) -> Iterator[str]:
    for one in found:
        if one["state"] != "used":
            yield f"{one['state']}: {code(one['code'])} of {code(one['owner'])}, line {one['line']}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    held = list(lines)
    if held:
        yield f"### {title}"
        yield ""
        yield from (f"- {line}" for line in held)
        yield ""


def _coverage(summary: dict[str, Any]) -> Iterator[str]:
    seen = summary["coverage"]
    yield "### Read"
    yield ""
    brokers = ", ".join(str(one) for one in seen["brokers"]) or "unknown"
    yield (f"Broker {brokers}: {read(seen)}.")
    if seen["last_broker_ms"] is not None:
        first = "" if seen["first_broker_ms"] is None else f"{utc(seen['first_broker_ms'])} to "
        yield f"Times: {first}{utc(seen['last_broker_ms'])}."
    if "redaction" in summary:
        yield f"Names: {summary['redaction']['text']}."
    yield ""
    yield f"Run {code(summary['run_id'])}, version {summary['version']}, cluster {code(str(summary['cluster_id']))}, "
    yield f"configuration {code(summary['configuration'][:12])}."
