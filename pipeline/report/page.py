"""`report.html`: one page for a person, readable without its style sheet and without its script."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.config import Config
from pipeline.report import health as checklist
from pipeline.report.advice import pieces, show
from pipeline.report.causes import CURRENT, Finding, effects
from pipeline.report.examples import examples, named, place, where
from pipeline.report.facts import Facts
from pipeline.report.pictures import pictures
from pipeline.report.timeline import Timelines
from pipeline.report.timeline_plot import plot
from pipeline.report.words import (
    OVER,
    SEVERITIES,
    above,
    application_of,
    instant,
    utc,
    verdict,
    wrong,
)
from pipeline.text import plural, sanitise
from schemas.gold import SEVERITIES as ORDER

TEMPLATES = Path(__file__).with_name("templates")
PLOTS = 200
"""Findings that get a timeline plot: the first ones."""
CHANGES = 8
"""New, open, resolved and not seen findings that are named at the top, of each."""
BEGIN = 3
"""Findings whose advice stands beside the verdict."""
BRINGS = 8
"""Findings of one cause that are named beside it."""
FULL = 500
"""Findings that are shown with all they have; further ones get a line each."""


_HEADINGS = {
    "new": "New",
    "open": "Open before and now",
    "resolved": "Resolved",
    "not_seen": "Not seen",
}


class Shown(NamedTuple):
    """A finding as the page shows it.

    Attributes:
        finding: The finding, every text sanitised.
        where: Topic, partition and offset.
        times: First and last time in UTC.
        command: What prints it on a terminal.
        advice: The advice in pieces: whether it is a command that is safe to copy into a shell, and its text.
        evidence: Its evidence, a line each.
        plot: Its timeline as a picture.
        events: Its timeline in words, a line each.
        left_out: Further events of the same producer, transactional id or group.
        is_full: With all it has, or one line.
        number: Its place in the order of severity.
        cause: Finding id and name of the one that it comes with; empty of a cause.
        brings: Those that come with it, the first of them.
        brings_more: How many more come with it.
    """

    finding: Finding
    where: str
    times: str
    command: str
    advice: list[tuple[bool, str]]
    evidence: list[str]
    plot: Markup | None
    events: list[tuple[str, str, bool]]
    left_out: int
    is_full: bool
    number: int
    cause: tuple[str, str] | None
    brings: list[tuple[str, str]]
    brings_more: int


def page_files(
    output: str, summary: dict[str, Any], findings: list[Finding], config: Config
) -> dict[str, str]:
    """`report.html`, and its style and script beside it where the settings ask for that: name -> text.

    Args:
        output: Output root, which holds the tables.
        summary: The content of `summary.json`.
        findings: All that are shown, most severe first.
        config: The settings.
    """
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    is_inline = config.report.html_assets == "inline"
    facts = Facts(output, summary["run_id"])
    page = render(
        summary, findings, facts, config, style if is_inline else "", script if is_inline else ""
    )
    beside = {} if is_inline else {"report.css": style, "report.js": script}
    return {**beside, "report.html": page}


def render(
    summary: dict[str, Any],
    findings: list[Finding],
    facts: Facts,
    config: Config,
    style: str,
    script: str,
) -> str:
    """The page's text; without style and script it names the files beside it."""
    chosen = examples(findings, config.max_examples)
    with_plot = [one for one in chosen.shown if one["status"] in CURRENT][:PLOTS]
    timelines = Timelines(facts, with_plot)
    plotted = {one["finding_id"] for one in with_plot}
    related = _related(chosen.shown)
    shown = [
        _shown(
            number,
            one,
            timelines if one["finding_id"] in plotted else None,
            related,
            show(one, facts.output, is_private="redaction" in summary),
        )
        for number, one in enumerate(chosen.shown)
    ]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"utc": utc, "spaced": _spaced}
    pattern = config.health.application_pattern
    environment.filters["application"] = lambda finding: application_of(finding, pattern)
    template = environment.get_template("page.html.j2")
    return template.render(
        summary=summary,
        verdict=verdict(summary),
        above=above(summary["gate"]),
        severities=[(name, SEVERITIES[name]) for name in ORDER],
        shown=shown,
        left_out=sorted((code, name, count) for (code, name), count in chosen.left_out.items()),
        facets=_facets(shown),
        over=OVER,
        checks=[one["name"] for one in wrong(summary["expectations"])],
        begin=_begin(shown, summary["gate"]["failing"] - summary["gate"].get("effects", 0)),
        changes=_changes(shown, summary),
        total=len(findings),
        pictures=pictures(facts, config.report, summary["coverage"]["last_broker_ms"]),
        health=checklist.health(facts, findings, config),
        cannot_see=checklist.CANNOT_SEE,
        not_attempted=_not_attempted(summary["detectors"]),
        style=Markup(style),
        script=Markup(script),
        docs=config.report.docs_url,
        plural=plural,
    )


class _Related(NamedTuple):
    """Finding id -> id and name of its cause, and of all that it brings."""

    causes: dict[str, tuple[str, str]]
    brings: dict[str, list[tuple[str, str]]]


def _related(findings: list[Finding]) -> _Related:
    names = {one["finding_id"]: named(one) for one in findings}
    found = _Related({}, defaultdict(list))
    for effect, cause in effects(findings).items():
        found.causes[effect] = (cause, names[cause])
        found.brings[cause].append((effect, names[effect]))
    return found


def _shown(
    number: int,
    finding: Finding,
    timelines: Timelines | None,
    related: _Related,
    command: str,
) -> Shown:
    is_full = number < FULL
    brings = related.brings.get(finding["finding_id"], [])
    events, left_out = timelines.of(finding) if timelines is not None else ([], 0)
    times = [
        utc(finding[name])
        for name in ("first_timestamp_ms", "last_timestamp_ms")
        if finding[name] is not None
    ]
    return Shown(
        finding,
        where(finding),
        " to ".join(dict.fromkeys(times)),
        command,
        pieces(finding, with_commands=finding["status"] not in OVER),
        [place(one) for one in finding["evidence"]] if is_full else [],
        plot(events, finding),
        [(instant(one.time_ms), one.words, one.is_accused) for one in events],
        left_out,
        is_full,
        number,
        related.causes.get(finding["finding_id"]),
        brings[:BRINGS],
        max(len(brings) - BRINGS, 0),
    )


def _begin(shown: list[Shown], causes: int) -> list[Shown]:
    """Where a reader in a hurry begins: the worst causes, each with its advice; effects end with them."""
    held_up = effects([one.finding for one in shown])
    current = [one for one in shown if one.finding["status"] in CURRENT and one.finding["advice"]]
    first = [one for one in current if one.finding["finding_id"] not in held_up]
    return first[: min(BEGIN, causes)]


def _changes(
    shown: list[Shown], summary: dict[str, Any]
) -> list[tuple[str, list[tuple[Finding, str]], int]]:
    """What is different from the run before: heading, the first findings, and how many more there are."""
    found: list[tuple[str, list[tuple[Finding, str]], int]] = []
    if not summary["previous_run"]:
        return found
    counted = summary["counts"]["by_status"]
    for status, heading in _HEADINGS.items():
        held = [(one.finding, one.where) for one in shown if one.finding["status"] == status]
        if held:
            first = held[:CHANGES]
            found.append((heading, first, max(counted.get(status, 0) - len(first), 0)))
    return found


def _facets(shown: list[Shown]) -> dict[str, list[tuple[str, int]]]:
    """Values to filter by, with how many findings have each."""
    return {
        name: sorted(
            Counter(
                str(one.finding[name]) for one in shown if one.finding[name] is not None
            ).items()
        )
        for name in ("code", "severity", "status", "topic")
    }


def _not_attempted(detectors: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Why detectors did not run, with those that share a reason."""
    found: dict[str, list[str]] = {}
    for code, state in detectors.items():
        if state != "judged":
            found.setdefault(state.removeprefix("not attempted: "), []).append(code)
    return sorted(found.items())


def _visible(value: Any) -> Any:
    """Every text that goes into the page, but for what this package made as markup."""
    return sanitise(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _spaced(word: str) -> str:
    return word.replace("_", " ")
