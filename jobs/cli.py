"""The command line: checked completely before Spark, or anything else that is slow, is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from jobs import doctor, explain, show
from jobs import run as job
from jobs.options import COMMON, PAGE, POLICY, READING, SELECTION, Options
from pipeline.config import Stage
from pipeline.errors import AuditError
from pipeline.text import nearest, sanitise
from pipeline.version import VERSION

SPARK = "--spark"
STAGES: tuple[Stage, ...] = ("ingest", "replay", "detect", "audit")
_HELP_OF_STAGE = {
    "ingest": "Read the files into the bronze tables and stop.",
    "replay": "Read and replay producers, coordinators and offsets, and stop.",
    "detect": "Read, replay and look for faults.",
    "audit": "All of it, with a verdict (the default).",
}
_FINISHED = {
    "gate": "Judge a finished run again with other settings; no log is read.",
    "report": "Write page, junit.xml and summary.md of a finished run again.",
}


class NobodyReads(Exception):
    """The output was closed by its reader, as `... | head -1` does."""


class Jobs(click.Group):
    """A group whose default command is `audit`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `audit` where no job is named."""
        wants_help = bool(args) and args[0] in ("--help", "-h", "--version")
        if not wants_help and (not args or args[0].startswith("-")):
            args = ["audit", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the job; what a reader who went away means is not left to click, which would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise NobodyReads from error

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


@click.version_option(VERSION, "--version", message="kafka-transaction-audit %(version)s")
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


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Settings by their dotted name, without those that were not given."""
    return {
        key.replace("__", "."): value for key, value in values.items() if value not in (None, ())
    }


def _stage(name: Stage) -> None:
    def command(conf: str | None, style: str, wait: float, **values: Any) -> int:
        given = _given(values) | {"stage": name}
        return job.run(given, conf, style, wait, click.get_current_context().obj)

    for option in reversed((*READING, *SELECTION, *POLICY, *PAGE, *COMMON)):
        command = option(command)
    cli.command(name, help=_HELP_OF_STAGE[name])(command)


for _name in STAGES:
    _stage(_name)


def _finished(name: str, own: Options) -> None:
    def command(conf: str | None, style: str, wait: float, **values: Any) -> int:
        given = _given(values)
        if name == "report":
            return job.report(given, conf, style, wait)
        return job.gate(given, conf, style, wait, click.get_current_context().obj)

    for option in reversed((*SELECTION, *own, *COMMON)):
        command = option(command)
    cli.command(name, help=_FINISHED[name])(command)


_finished("gate", (*POLICY, *PAGE))
_finished("report", PAGE)


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
    except NobodyReads:
        raise BrokenPipeError from None
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted; the same command goes on where it matters", 4)


def _fail(message: str, code: int) -> int:
    print("error: " + sanitise(" ".join(message.split())), file=sys.stderr)
    return code
