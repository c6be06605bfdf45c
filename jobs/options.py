"""The options of the command line, in groups that jobs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from pipeline.config_sections import parse_time

Options = tuple[Callable[[Any], Any], ...]


class Time(click.ParamType):
    """A point in time with an offset or Z, as milliseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See `pipeline.config.parse_time`."""
        try:
            return value if isinstance(value, int) else parse_time(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


READING: Options = (
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="PATH",
        help="Copied log directory, partition or file; repeatable.",
    ),
    click.option(
        "--as-of",
        "as_of_ms",
        type=Time(),
        help="The moment the verdict is about, if earlier than the logs' end.",
    ),
    click.option(
        "--copy-started",
        "copy_started_ms",
        type=Time(),
        help="When the copy of running brokers was begun.",
    ),
    click.option(
        "--kafka-version",
        metavar="V",
        help="Version of the brokers: leaves out defects it has fixed.",
    ),
    click.option("--cluster-id", metavar="ID", help="Cluster of an input without meta.properties."),
    click.option(
        "--keep-runs",
        type=int,
        metavar="N",
        help="How many runs stay in the output.  [default: 30]",
    ),
)
"""What is read, and what the files cannot say."""

SELECTION: Options = (
    click.option(
        "--topics", "selection__topics", metavar="GLOB", help="Look at these user topics only."
    ),
    click.option(
        "--transactional-id",
        "selection__transactional_id",
        metavar="GLOB",
        help="Show and gate these only.",
    ),
    click.option("--group", "selection__group", metavar="GLOB", help="Show and gate these only."),
    click.option(
        "--producer-id",
        "selection__producer_id",
        type=int,
        metavar="N",
        help="Show and gate this one only.",
    ),
    click.option(
        "--since",
        "selection__since_ms",
        type=Time(),
        help="Show and gate what ends at or after this.",
    ),
    click.option(
        "--until", "selection__until_ms", type=Time(), help="Show and gate what begins before this."
    ),
)
"""What is looked at, shown and gated."""

POLICY: Options = (
    click.option(
        "--fail-on",
        "gate__severity",
        type=click.Choice(["critical", "major", "minor", "info"]),
        help="Findings of this severity or worse fail.  [default: major]",
    ),
    click.option(
        "--certainty",
        "gate__certainty",
        type=click.Choice(["proven", "proven_if_complete", "consistent_with", "suspicion"]),
        help="Findings as sure as this or surer fail.  [default: proven]",
    ),
    click.option(
        "--suppressions",
        metavar="FILE",
        help="Faults that somebody answers for.  [default: what --conf names; conf/audit.yaml: conf/suppressions.yaml]",
    ),
)
"""What fails."""

PAGE: Options = (
    click.option(
        "--html-assets",
        "report__html_assets",
        type=click.Choice(["inline", "dir"]),
        help="Style and script of the page: inside it, or files beside it.  [default: inline]",
    ),
)
"""How the page is made."""

COMMON: Options = (
    click.option(
        "--output", metavar="DIR", help="Where tables and files go.  [default: ./audit-output]"
    ),
    click.option("--now", "now_ms", type=Time(), help="Use this instead of the clock."),
    click.option("--run-id", metavar="ID", help="Name of the run; the same name replaces it."),
    click.option("--conf", metavar="FILE", help="Settings.  [default: conf/audit.yaml]"),
    click.option(
        "--format",
        "style",
        type=click.Choice(["text", "json"]),
        default="text",
        help="What is printed.",
    ),
    click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=0.0,
        metavar="SECONDS",
        help="Wait for another run.",
    ),
)
"""Where everything is, and how a job behaves."""
