"""The jobs that run the pipeline: arguments, configuration, lock, session, one call, exit code."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from jobs import explain, java, lock, self_check
from jobs.progress import Progress, progress
from pipeline.config import Config, load
from pipeline.errors import AuditError, UsageError
from pipeline.spark import options
from pipeline.text import sanitise

if TYPE_CHECKING:
    from pipeline.audit import AuditResult

DEFAULTS = Path(__file__).resolve().parents[1] / "conf" / "audit.yaml"
LOG = "spark.log"
_CAUSE = re.compile(r"(?:Caused by: )?(?:[\w$]+\.)*([\w$]*(?:Error|Exception)): (?!Traceback)(.+)")
"""Where a trace of Java or Python names an exception."""


def run(
    given: dict[str, Any], conf: str | None, style: str, wait_s: float, spark: Sequence[str]
) -> int:
    """Run one job.

    Args:
        given: settings of the command line by their name in the configuration.
        conf: configuration file, or None for the bundled one.
        style: `text` or `json`.
        wait_s: how long to wait for another run on the same output, in seconds.
        spark: options for spark-submit.

    Returns:
        The exit code.
    """
    config = _configured(given, conf)
    options.check(spark)
    for path in config.inputs:
        if "://" not in path and not os.path.lexists(path):
            raise UsageError(f"--input {path}: there is no such file or folder")
    _check_output(config)
    java.find()
    sample = not config.inputs
    if sample:
        config = self_check.configure(config)
    with lock.hold(config.output, wait_s):
        result = _audit(config, spark)
    _show(result, style)
    return self_check.exit_code(result) if sample else result.exit_code


def _check_output(config: Config) -> None:
    """Nothing is written into an input, and a run needs a folder.

    Raises:
        UsageError: the output lies in an input, or is a file.
    """
    output = Path(config.output).resolve()
    for path in config.inputs:
        if "://" not in path and output.is_relative_to(Path(path).resolve()):
            raise UsageError(
                f"--output {config.output} lies in --input {path}, where nothing is written: "
                "name another folder"
            )
    if output.exists() and not output.is_dir():
        raise UsageError(f"--output {config.output}: a folder is expected, this is a file")


def again(
    what: Callable[[Config], AuditResult], given: dict[str, Any], conf: str | None, wait_s: float
) -> AuditResult:
    """Does something with a run that its tables hold already.

    Args:
        what: Takes the configuration.
        given: as `run`.
        conf: as `run`.
        wait_s: as `run`.
    """
    config = _configured(given, conf)
    if not Path(config.output, "gold").is_dir():
        raise UsageError(f"--output {config.output}: no finished run in it; audit something first")
    with lock.hold(config.output, wait_s):
        try:
            return what(config)
        except AuditError:
            raise
        except Exception as error:
            log = Path(config.output, LOG)
            raise _could_not_finish(error, log) from error


def report(given: dict[str, Any], conf: str | None, style: str, wait_s: float) -> int:
    """Render the files of a run again.

    Returns:
        0.
    """

    def render(config: Config) -> AuditResult:
        from pipeline import rejudge

        return rejudge.report(config)

    result = again(render, given, conf, wait_s)
    _show(result, style)
    return 0


def gate(
    given: dict[str, Any], conf: str | None, style: str, wait_s: float, spark: Sequence[str]
) -> int:
    """Judge a run again with the policy of now.

    Returns:
        The exit code of its verdict.
    """
    options.check(spark)

    def judge(config: Config) -> AuditResult:
        from pipeline import rejudge
        from pipeline.spark import session

        def start() -> Any:
            java.find()
            return session.build(options=spark, log=Path(config.output, LOG))

        return rejudge.gate(config, start, sys.argv[1:])

    result = again(judge, given, conf, wait_s)
    _show(result, style)
    return result.exit_code


def _configured(given: dict[str, Any], conf: str | None) -> Config:
    given.setdefault("now_ms", time.time_ns() // 1_000_000)
    return load(conf or str(DEFAULTS), given, list(explain.pages()))


def _show(result: AuditResult, style: str) -> None:
    from pipeline.report import terminal

    try:
        terminal.show(result, style)
        sys.stdout.flush()
    except BrokenPipeError:
        # As `... | head -1` does: the verdict stands, its exit code too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _audit(config: Config, spark: Sequence[str]) -> AuditResult:
    log = Path(config.output, LOG)
    log.unlink(missing_ok=True)
    pressed = threading.Event()
    try:
        with progress() as say:
            say("starting Spark")
            result = _with_spark(config, spark, log, say, pressed)
        os.replace(log, Path(result.output_dir, LOG))
        return result
    except AuditError:
        raise
    except Exception as error:
        if pressed.is_set():
            raise KeyboardInterrupt from error
        raise _could_not_finish(error, log) from error


def _could_not_finish(error: Exception, log: Path) -> AuditError:
    """One line for the terminal; the whole trace is in the log, where there is room for it."""
    where = f"all of it: {sanitise(str(log))}"
    try:
        with log.open("a", encoding="utf-8", errors="backslashreplace") as sink:
            traceback.print_exception(error, file=sink)
    except OSError as second:
        where = f"{sanitise(str(log))} cannot be written: {second.strerror or second}"
    return AuditError(f"could not finish: {_reason(error)} ({where})")


def _reason(error: Exception) -> str:
    """The innermost cause: Spark's errors carry the traces of its JVM and workers in their text."""
    lines = str(error).strip().splitlines() or [""]
    causes = [found for line in lines[1:] if (found := _CAUSE.match(line))]
    if causes:
        return sanitise(f"{causes[-1][1]}: {causes[-1][2]}"[:300])
    return sanitise(f"{type(error).__name__}: {lines[0]}"[:300])


def _with_spark(
    config: Config, spark: Sequence[str], log: Path, say: Progress, pressed: threading.Event
) -> AuditResult:
    """Start Spark while the pipeline is imported, then run it.

    Great Expectations, which judges at the end, takes longest to import: that goes on beside the work.
    """
    from pipeline.spark import session

    how: dict[str, Any] = {
        "options": spark,
        "log": log,
        "input_bytes": _size(config.inputs, session.FIRST_TIER_BYTES),
    }
    with ThreadPoolExecutor(1) as pool:
        imported = pool.submit(import_module, "pipeline.audit")
        pool.submit(import_module, "pipeline.gate.checkpoint")
        running = session.build(**how)
        imported.result()
        from pipeline import audit

        with _interrupt_noted(pressed):
            return audit.run(running, config, say)


@contextmanager
def _interrupt_noted(pressed: threading.Event) -> Iterator[None]:
    """Ctrl-C makes Spark cancel its jobs, whose errors may come out before the interrupt does: note that it came."""
    cancel = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        pressed.set()
        if callable(cancel):
            cancel(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, cancel)


def _size(inputs: Sequence[str], enough: int) -> int:
    """Bytes of the input, counted until there are enough; what lies in another storage may have any size."""
    total = 0
    for path in inputs:
        if "://" in path:
            return enough
        if os.path.isfile(path):
            total += os.path.getsize(path)
        for folder, _, names in os.walk(path):
            for name in names:
                total += os.lstat(os.path.join(folder, name)).st_size
            if total > enough:
                return total
    return total
