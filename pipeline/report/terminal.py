"""One screen for a person: verdict, findings with what to do, coverage, where the rest is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from rich.console import Console
from rich.text import Text

from pipeline.report import advice
from pipeline.report.causes import CURRENT, effects
from pipeline.report.examples import named, ordered, place, where
from pipeline.report.words import OVER, above, application_of, read, utc, verdict, wrong
from pipeline.text import counted, sanitise

WIDTH = 80
SHOWN = 5
"""Findings on the screen; the files hold all of them."""

_COLOURS = {
    "passed": "green",
    "failed": "red",
    "unknown": "yellow",
    "critical": "red",
    "major": "yellow",
    "minor": "cyan",
    "info": "dim",
}
_CHANGES = ("new", "open", "resolved", "not_seen")


class Result(Protocol):
    """What the screen needs of a run; `pipeline.audit.AuditResult` lies above this layer."""

    @property
    def summary(self) -> dict[str, Any]:
        """The content of `summary.json`."""

    @property
    def examples(self) -> list[dict[str, Any]]:
        """Findings, most severe first."""

    @property
    def output_dir(self) -> str:
        """Folder of the run's files."""


class _Console(Console):
    """A console that leaves it to the process what a reader who went away means."""

    def on_broken_pipe(self) -> None:
        """Let the error through; rich would end the process with 1, which means findings here."""
        raise BrokenPipeError


def console(stream: TextIO | None = None) -> Console:
    """A console that interprets nothing; colours on a terminal only, none with NO_COLOR."""
    out = stream or sys.stdout
    width = None if out.isatty() else WIDTH
    return _Console(
        file=out,
        width=width,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )


def show(result: Result, style: str) -> None:
    """Print a run's result.

    Args:
        result: the run.
        style: `text` for a person, `json` for a script (the content of `summary.json`).
    """
    if style == "json":
        print(json.dumps(result.summary, indent=1, sort_keys=True))
    else:
        render(result, console())


def render(result: Result, target: Console) -> None:
    """Write one screen about a run."""
    summary = result.summary
    current = [one for one in ordered(result.examples) if one["status"] in CURRENT]
    worth = [one for one in current if one["severity"] != "info"]
    _verdict(target, summary)
    said_above = ""
    caused, by_id = effects(current), {one["finding_id"]: one for one in current}
    for finding in worth[:SHOWN]:
        cause = by_id.get(caused.get(finding["finding_id"], ""))
        _finding(target, finding, said_above, cause)
        said_above = finding["advice"] if cause is None else said_above
    rest = len(worth) - SHOWN
    if rest > 0:
        _line(target, f"... and {rest} more in findings.jsonl", "dim")
    _counts(target, summary, current)
    _doubts(target, summary)
    _gate(target, summary)
    _coverage(target, summary)
    _line(target, f"Run       {summary['run_id']}, {summary['timing']['elapsed_s']} s")
    _line(target, f"Version   {summary['version']}, configuration {summary['configuration'][:12]}")
    _line(target, f"Report    {result.output_dir}/report.html")
    if worth:
        _command(
            target, f"Next      {advice.show(worth[0], str(Path(result.output_dir).parents[1]))}"
        )
        _command(target, f"          ./spark-submit.sh explain {worth[0]['code']}")


def show_finding(
    finding: dict[str, Any],
    output: str,
    timeline: Sequence[tuple[str, str, bool]] = (),
    left_out: int = 0,
    cause: dict[str, Any] | None = None,
    pattern: str | None = None,
) -> None:
    """Print everything about one finding.

    Args:
        finding: the finding.
        output: output root.
        timeline: time, what happened, and whether the finding is about that.
        left_out: further events of the same producer, transactional id or group.
        cause: the finding that it comes with.
        pattern: what tells the application of an id (`health.application_pattern`).
    """
    target = console()
    _finding(target, finding)
    if cause is not None:
        _line(target, f"  cause: one with {named(cause)}: begin there")
        _command(target, f"         {advice.show(cause, output)}")
    for name in ("explanation", "refuted_by"):
        _line(target, f"  {name.replace('_', ' ')}: {finding[name]}")
    for name in (
        "finding_id",
        "status",
        "producer_id",
        "producer_epoch",
        "transactional_id",
        "group_id",
        "first_offset",
        "last_offset",
    ):
        if finding[name] is not None:
            _line(target, f"  {name}: {finding[name]}")
    if application := application_of(finding, pattern):
        _line(target, f"  application: {application}")
    for name in ("first_timestamp_ms", "last_timestamp_ms"):
        if finding[name] is not None:
            _line(target, f"  {name}: {finding[name]} ({utc(finding[name])})")
    _line(target, "  evidence:")
    for one in finding["evidence"]:
        _line(target, f"    {place(one)}")
    if timeline:
        _line(target, "  timeline (> what the finding is about; times of data are the clients'):")
    for time, words, is_accused in timeline:
        _line(
            target, f"  {'>' if is_accused else ' '} {time}  {words}", "bold" if is_accused else ""
        )
    if left_out:
        more = counted(left_out, "more event")
        _line(
            target,
            f"    ... and {more} of the same producer, transactional id or group, further away",
        )


def _verdict(target: Console, summary: dict[str, Any]) -> None:
    answer = summary["verdict"]
    said = verdict(summary)
    if answer == "failed" and summary["gate"]["failing"]:
        said = above(summary["gate"])
    _line(target, f"{answer.upper()}: {said[0].lower()}{said[1:]}", f"bold {_COLOURS[answer]}")


def _finding(
    target: Console,
    finding: dict[str, Any],
    advice_above: str = "",
    cause: dict[str, Any] | None = None,
) -> None:
    sure = f"{finding['certainty']}, {finding['status']}"
    head = f"{finding['code']}/{finding['class']}  {where(finding)}  {sure}"
    _line(target, f"{finding['severity'].upper():9} {head}", _COLOURS[finding["severity"]])
    _line(target, f"          {finding['title']}")
    if cause is not None:
        _line(target, f"          -> of one cause with {named(cause)}: begin there")
    elif finding["advice"]:
        again = finding["advice"] == advice_above
        heading = f"{OVER[finding['status']]}: " if finding["status"] in OVER else ""
        _line(target, f"          -> {heading}" + ("as above" if again else finding["advice"]))


def _counts(target: Console, summary: dict[str, Any], current: list[dict[str, Any]]) -> None:
    by_severity = summary["counts"]["by_severity"]
    parts = [
        f"{by_severity[name]} {name}"
        for name in ("critical", "major", "minor", "info")
        if by_severity.get(name)
    ]
    by_status = summary["counts"]["by_status"]
    if by_status.get("suppressed"):
        parts.append(f"{by_status['suppressed']} suppressed")
    _line(target, f"Findings  {', '.join(parts) or 'none'}")
    if summary["previous_run"]:
        changes = [f"{by_status.get(name, 0)} {name.replace('_', ' ')}" for name in _CHANGES]
        _line(target, f"Changed   since run {summary['previous_run']}: {', '.join(changes)}")


def _doubts(target: Console, summary: dict[str, Any]) -> None:
    for reason in summary["could_not_judge"][:SHOWN]:
        _line(target, f"No word   {reason}", "yellow")
    rest = len(summary["could_not_judge"]) - SHOWN
    if rest > 0:
        _line(target, f"          ... and {rest} more in summary.json", "yellow")
    by_state: dict[str, list[str]] = {}
    for code, state in summary["detectors"].items():
        if state != "judged":
            by_state.setdefault(state, []).append(code)
    for state, codes in by_state.items():
        _line(target, f"No word   {', '.join(codes)}: {state}", "dim")


def _coverage(target: Console, summary: dict[str, Any]) -> None:
    seen = summary["coverage"]
    brokers = ", ".join(str(broker) for broker in seen["brokers"]) or "unknown"
    _line(
        target,
        f"Read      broker {brokers}: {read(seen)}",
    )
    if seen["last_broker_ms"] is not None:
        first = "" if seen["first_broker_ms"] is None else f"{utc(seen['first_broker_ms'])} to "
        _line(target, f"Times     {first}{utc(seen['last_broker_ms'])}")
    if "redaction" in summary:
        _line(target, f"Names     {summary['redaction']['text']}")


def _gate(target: Console, summary: dict[str, Any]) -> None:
    for one in wrong(summary.get("expectations", [])):
        first = f": {one['evidence'][0]}" if one["evidence"] else ""
        _line(target, f"Gate      {one['name']} {one['outcome']}{first}", "yellow")
    for one in summary.get("suppressions", ()):
        if one["state"] != "used":
            words = f"line {one['line']}, {one['code']} of {one['owner']}"
            _line(target, f"Suppress  {one['state']}: {words}, until {one['expires']}", "yellow")


def _line(target: Console, text: str, style: str = "") -> None:
    """One logical line, wrapped under its own text; words are whole, for copying."""
    indent = len(text) - len(text.lstrip())
    hang = indent or (10 if text[9:10] == " " else 0)
    hang += 2 * text.startswith("  > ")
    line = " " * indent
    for word in sanitise(text.strip()).split(" "):
        if line.strip() and len(line) + len(word) > target.width:
            _put(target, line, style)
            line = " " * hang
        line += word + " "
    _put(target, line, style)


def _command(target: Console, text: str) -> None:
    """One line that is never wrapped: a command is copied whole."""
    _put(target, sanitise(text), "")


def _put(target: Console, line: str, style: str) -> None:
    target.print(Text(line.rstrip(), style=style), overflow="ignore", no_wrap=True, crop=False)
