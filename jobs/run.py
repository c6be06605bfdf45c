"""The jobs that run the pipeline: arguments, configuration, lock, session, one call, exit code."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs import java, lock, self_check
from jobs.progress import progress
from pipeline.config import Config, load
from pipeline.errors import AuditError, UsageError
from pipeline.spark import options
from pipeline.text import sanitise

if TYPE_CHECKING:
    from pipeline.audit import AuditResult

DEFAULTS = Path(__file__).resolve().parents[1] / "conf" / "audit.yaml"
SMALL_BYTES = 64 << 20
LOG = "spark.log"


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
    given.setdefault("now_ms", time.time_ns() // 1_000_000)
    config = load(conf or str(DEFAULTS), given)
    options.check(spark)
    for path in config.inputs:
        if "://" not in path and not os.path.lexists(path):
            raise UsageError(f"--input {path}: there is no such file or folder")
    java.find()
    sample = not config.inputs
    if sample:
        config = self_check.configure(config)
    with lock.hold(config.output, wait_s):
        result = _audit(config, spark)
    from pipeline.report import terminal

    terminal.show(result, style)
    return self_check.exit_code(result) if sample else result.exit_code


def _audit(config: Config, spark: Sequence[str]) -> AuditResult:
    log = Path(config.output, LOG)
    log.unlink(missing_ok=True)
    try:
        with progress() as say:
            say("starting Spark")
            result = _with_spark(config, spark, log, say)
        os.replace(log, Path(result.output_dir, LOG))
        return result
    except AuditError:
        raise
    except Exception as error:
        with log.open("a", encoding="utf-8", errors="backslashreplace") as sink:
            traceback.print_exc(file=sink)
        reason = sanitise((str(error).strip().splitlines() or [""])[0][:300])
        raise AuditError(
            f"could not finish: {type(error).__name__}: {reason} (all of it: {log})"
        ) from error


def _with_spark(
    config: Config, spark: Sequence[str], log: Path, say: Callable[[str], None]
) -> AuditResult:
    """Start the JVM while the pipeline is imported, then run it."""
    from pipeline.spark import session

    how: dict[str, Any] = {"options": spark, "log": log, "quick": _is_small(config.inputs)}
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(session.launch, **how)
        from pipeline import audit
    started.result()
    return audit.run(session.build(**how), config, say)


def _is_small(inputs: Sequence[str]) -> bool:
    """Whether the JVM had better start fast than run fast."""
    total = 0
    for path in inputs:
        if os.path.isfile(path):
            total += os.path.getsize(path)
        for folder, _, names in os.walk(path):
            for name in names:
                total += os.lstat(os.path.join(folder, name)).st_size
            if total > SMALL_BYTES:
                return False
    return total <= SMALL_BYTES
