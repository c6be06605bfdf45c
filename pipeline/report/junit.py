"""`junit.xml`: one test case a detector and one an expectation, with names that stay the same.

What failed is a failure, what could not be judged an error, what was not asked or has no input is skipped.
Only what was judged and found in order passes. What changed since the run before stands in each detector's output.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from pipeline.report.causes import Finding
from pipeline.report.examples import examples, place, where
from pipeline.report.words import application_of
from pipeline.text import counted, sanitise
from schemas.gold import STATUSES

_NAME = "kafka-transaction-audit"
_CHANGES = ("new", "resolved", "not_seen")
MAX_CHANGES = 100
"""Findings of one detector that are named as changed."""
MAX_TEXT = 200_000
"""Characters of one case's text; readers of such files hold all of them in memory."""


def junit(
    summary: dict[str, Any], failing: Iterable[Finding], limit: int, shown: Iterable[Finding] = ()
) -> str:
    """The file's text.

    Args:
        summary: The content of `summary.json`.
        failing: Findings that fail the run.
        limit: How many findings of one code and class are shown.
        shown: All findings, of which each detector's case names what changed since the run before.
    """
    changed = _changed(summary, shown)
    by_code: dict[str, list[Finding]] = defaultdict(list)
    for one in failing:
        by_code[one["code"]].append(one)
    detectors = TestSuite("detectors")
    required = set(summary["gate"].get("require") or ())
    pattern = summary.get("application_pattern")
    for code, state in summary["detectors"].items():
        case = _detector(code, state, by_code.pop(code, []), code in required, limit, pattern)
        detectors.add_testcase(_with_changes(case, changed.get(code)))
    for code, findings in sorted(by_code.items()):
        case = _detector(code, "judged", findings, False, limit, pattern)
        detectors.add_testcase(_with_changes(case, changed.get(code)))
    expectations = TestSuite("expectations")
    for one in summary["expectations"]:
        expectations.add_testcase(_expectation(one))
    root = JUnitXml(_NAME)
    for suite in (detectors, expectations):
        for name, value in _provenance(summary):
            suite.add_property(name, sanitise(value))
        root.add_testsuite(suite)
    root.update_statistics()
    return str(root.tostring().decode("utf-8"))


def _provenance(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("run_id", "version", "verdict", "cluster_id", "configuration"):
        yield name, str(summary[name])
    yield "previous_run", str(summary["previous_run"] or "none")
    by_status = summary["counts"]["by_status"]
    yield from ((name, str(by_status.get(name, 0))) for name in STATUSES)
    yield "inputs", _text([" ".join(summary["input"]["paths"])])
    yield "input_fingerprint", str(summary["input"]["fingerprint"])
    yield "command_line", _text([" ".join(summary["command_line"])])


def _changed(summary: dict[str, Any], shown: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Detector -> its findings that are new, resolved or not seen; nothing in the first run of an output."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for one in shown if summary["previous_run"] else ():
        if one["status"] in _CHANGES:
            found[one["code"]].append(one)
    return found


def _with_changes(case: TestCase, changed: list[Finding] | None) -> TestCase:
    """What changed as the case's output: it neither fails nor passes anything."""
    if changed:
        order = sorted(changed, key=lambda one: _CHANGES.index(one["status"]))
        lines = [
            f"{one['status'].replace('_', ' ')}: {one['code']}/{one['class']} {one['title']} "
            f"[{one['finding_id'][:12]}]"
            for one in order[:MAX_CHANGES]
        ]
        if len(order) > MAX_CHANGES:
            lines.append(f"... and {len(order) - MAX_CHANGES:,} more in findings.jsonl")
        case.system_out = _text(lines)
    return case


def _case(name: str, suite: str) -> TestCase:
    return TestCase(sanitise(name), f"{_NAME}.{suite}", 0.0)


def _detector(
    code: str,
    state: str,
    failing: list[Finding],
    is_required: bool,
    limit: int,
    pattern: str | None,
) -> TestCase:
    case = _case(code, "detectors")
    if failing:
        failure = Failure(
            _text([f"{counted(len(failing), 'finding')} at or above the threshold"]),
            code,
        )
        failure.text = _text(_findings(failing, limit, pattern))
        case.result = [failure]
    elif state != "judged":
        case.result = [
            Error(_text([state]), "not judged") if is_required else Skipped(_text([state]))
        ]
    return case


def _findings(failing: list[Finding], limit: int, pattern: str | None) -> Iterable[str]:
    chosen = examples(failing, limit)
    for one in chosen.shown:
        yield f"{one['severity'].upper()} {one['code']}/{one['class']} {where(one)} [{one['finding_id']}]"
        yield f"  {one['title']} ({one['certainty']}, {one['status']})"
        if application := application_of(one, pattern):
            yield f"  application: {application}"
        yield f"  {one['explanation']}"
        if one["advice"]:
            yield f"  -> {one['advice']}"
        yield from (f"  {place(item)}" for item in one["evidence"])
    for (code, name), count in chosen.left_out.items():
        yield f"... and {count} more {code}/{name} in findings.jsonl"


def _expectation(one: dict[str, Any]) -> TestCase:
    case = _case(one["name"], "expectations")
    said = f"{one['promise']}: {counted(one['offences'], 'offence')}"
    if one["outcome"] == "failed":
        failure = Failure(_text([said]), one["name"])
        failure.text = _text(one["evidence"])
        case.result = [failure]
    elif one["outcome"] == "not_asked":
        case.result = [Skipped(_text([f"not asked: {one['promise']}"]))]
    elif one["outcome"] != "passed":
        error = Error(_text([f"could not be judged: {one['promise']}"]), one["name"])
        error.text = _text(one["evidence"])
        case.result = [error]
    return case


def _text(lines: Iterable[str]) -> str:
    """Lines that any XML reader accepts: each sanitised, together of bounded length."""
    whole = "\n".join(sanitise(line) for line in lines)
    return whole if len(whole) <= MAX_TEXT else whole[:MAX_TEXT] + "\n... cut, see findings.jsonl"
