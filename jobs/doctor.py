"""`doctor`: what a run needs, each line with its fix; with an input, whether the copy is whole."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jobs import java, lock, set_up
from pipeline.errors import AuditError, UsageError
from pipeline.text import redact, sanitise

LEAST_FREE_BYTES = 1 << 30


def run(inputs: Sequence[str], output: str) -> int:
    """Print one line a check.

    Returns:
        0 when a run can be started and the inputs are whole, 3 when a copy lacks something or
        nothing tells whether it does, 2 when a run cannot start.
    """
    checks = (_java, _python, _packages, _jars, lambda: _disk(output), lambda: _lock(output))
    is_fit = not [check for check in checks if not _line(check)]
    missing = 0
    for path in inputs:
        missing += _copy(path)
    return 2 if not is_fit else 3 if missing else 0


def _line(check: Callable[[], str]) -> bool:
    try:
        print(f"ok     {sanitise(check())}")
    except AuditError as error:
        print(f"wrong  {sanitise(str(error))}")
        return False
    return True


def _java() -> str:
    path = java.find()
    return f"Java {java.version_of(path)} ({path})"


def _python() -> str:
    return f"Python {sys.version.split()[0]} ({sys.executable})"


def _packages() -> str:
    pins = dict(line.split("==") for line in set_up.requirements(is_dev=False) if "==" in line)
    for name, wanted in pins.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            raise UsageError(
                f"{name} {wanted} is not installed; remove .venv and start again"
            ) from None
        if found != wanted:
            raise UsageError(f"{name} is {found}, not {wanted}; remove .venv and start again")
    return "packages: " + ", ".join(f"{name} {wanted}" for name, wanted in pins.items())


def _jars() -> str:
    from pipeline.spark.session import delta_jars

    return "JARs: " + ", ".join(Path(jar).name for jar in delta_jars())


def _disk(output: str) -> str:
    place = Path(output).absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise UsageError(f"{place} cannot be written; choose another --output")
    free = shutil.disk_usage(place).free
    if free < LEAST_FREE_BYTES:
        raise UsageError(
            f"{free >> 20} MiB free at {place}; at least {LEAST_FREE_BYTES >> 20} MiB are wise"
        )
    return f"output {output}: can be written, {free >> 30} GiB free"


def _lock(output: str) -> str:
    if lock.is_held(output):
        raise UsageError(
            f"{output} is in use by {lock.holder(output)}; wait for it or choose another --output"
        )
    return f"output {output}: not in use"


def _copy(path: str) -> int:
    from pipeline.report.completeness import Untold, gaps

    found = gaps(path)
    shown = sanitise(redact(path))
    if isinstance(found, Untold):
        print(f"unsure copy {shown}: cannot be looked over before the run: {sanitise(found.why)}")
        return 1
    state, words = (
        ("wrong", f"{len(found)} gap{'s' * (len(found) > 1)}")
        if found
        else ("ok   ", "holds all it names")
    )
    print(f"{state}  copy {shown}: {words}")
    for gap in found:
        print(sanitise(f"       {gap.folder}: {gap.what}; {gap.fix}"))
    return len(found)
