"""The command line: checked completely before Spark, or anything else that is slow, is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from jobs import doctor, explain, show
from jobs import run as job
from pipeline.config import Stage, parse_time
from pipeline.errors import AuditError
from pipeline.text import nearest, sanitise

SPARK = "--spark"
STAGES: tuple[Stage, ...] = ("ingest", "replay", "detect", "audit")
_HELP_OF_STAGE = {
    "ingest": "Read the files into the bronze tables and stop.",
    "replay": "Read and replay producers, coordinators and offsets, and stop.",
    "detect": "Read, replay and look for faults.",
    "audit": "All of it, with a verdict (the default).",
}


class Time(click.ParamType):
    """A point in time with an offset or Z, as milliseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See `pipeline.config.parse_time`."""
        try:
            return value if isinstance(value, int) else parse_time(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Jobs(click.Group):
    """A group whose default command is `audit`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `audit` where no job is named."""
        wants_help = bool(args) and args[0] in ("--help", "-h", "--version")
        if not wants_help and (not args or args[0].startswith("-")):
            args = ["audit", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of `audit` too: they are what most people look for."""
        super().format_options(ctx, formatter)
        records = [option.get_help_record(ctx) for option in self.commands["audit"].params]
        with formatter.section("Options of audit, and of ingest, replay and detect"):
            formatter.write_dl([record for record in records if record is not None])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the job that was probably meant."""
        if args[0] not in self.commands:
            known = ", ".join(self.commands)
            raise click.UsageError(
                f"no job {sanitise(args[0])!r}{nearest(args[0], list(self.commands))}: {known}"
            )
        return super().resolve_command(ctx, args)


OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="PATH",
        help="Copied log directory, partition or file; repeatable.",
    ),
    click.option(
        "--output", metavar="DIR", help="Where tables and files go.  [default: ./audit-output]"
    ),
    click.option("--as-of", "as_of_ms", type=Time(), help="The moment the verdict is about."),
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
    click.option("--now", "now_ms", type=Time(), help="Use this instead of the clock."),
    click.option(
        "--keep-runs",
        type=int,
        metavar="N",
        help="How many runs stay in the output.  [default: 30]",
    ),
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


@click.group(
    cls=Jobs,
    epilog="Behind --spark, options of spark-submit: --spark --master spark://host:7077 --conf k=v",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def cli() -> None:
    """Audit copied Kafka log directories: duplicates, zombies, hanging transactions, torn markers.

    ./spark-submit.sh [JOB] [OPTIONS] [--spark OPTIONS OF SPARK-SUBMIT]

    Without a job: audit. Without --input: the bundled sample.

    Exit codes: 0 passed, 1 findings, 2 wrong usage, 3 could not tell, 4 could not finish.
    """


def _stage(name: Stage) -> None:
    def command(conf: str | None, style: str, wait: float, **values: Any) -> int:
        given = {
            key.replace("__", "."): value
            for key, value in values.items()
            if value not in (None, ())
        }
        return job.run(given | {"stage": name}, conf, style, wait, click.get_current_context().obj)

    for option in reversed(OPTIONS):
        command = option(command)
    cli.command(name, help=_HELP_OF_STAGE[name])(command)


for _name in STAGES:
    _stage(_name)


@cli.command(
    "doctor",
    help="Check Java, Python, JARs, disk and lock; with --input the completeness of a copy.",
)
@click.option("--input", "inputs", multiple=True, metavar="PATH", help="A copy to look over.")
@click.option(
    "--output",
    default="./audit-output",
    metavar="DIR",
    help="The output to look over.",
    show_default=True,
)
def _doctor(inputs: tuple[str, ...], output: str) -> int:
    return doctor.run(inputs, output)


@cli.command(
    "explain", help="A detector: promise, rule, when the same picture is normal, what refutes it."
)
@click.argument("code")
def _explain(code: str) -> int:
    return explain.run(code)


@cli.command("show", help="One finding with its evidence; the first characters of its id suffice.")
@click.argument("finding_id")
@click.option(
    "--output",
    default="./audit-output",
    metavar="DIR",
    help="Where it was found.",
    show_default=True,
)
def _show(finding_id: str, output: str) -> int:
    return show.run(finding_id, output)


def run(arguments: Sequence[str]) -> int:
    """Answer one command line.

    Returns:
        The exit code; see the help text.
    """
    at = arguments.index(SPARK) if SPARK in arguments else len(arguments)
    try:
        code = cli.main(
            list(arguments[:at]),
            "spark-submit.sh",
            standalone_mode=False,
            obj=tuple(arguments[at + 1 :]),
        )
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except AuditError as error:
        return _fail(str(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted; the same command goes on where it matters", 4)


def _fail(message: str, code: int) -> int:
    print("error: " + sanitise(" ".join(message.split())), file=sys.stderr)
    return code
