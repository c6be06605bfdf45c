"""What the user's own Spark options already decide: the program never overrides those."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.errors import UsageError

DEFAULT_MASTER = "local[*]"
_FLAGS = {
    "spark.master": "--master",
    "spark.driver.memory": "--driver-memory",
    "spark.driver.extraJavaOptions": "--driver-java-options",
    "spark.driver.extraClassPath": "--driver-class-path",
    "spark.jars": "--jars",
    "spark.submit.deployMode": "--deploy-mode",
}
_NOT_A_RUN = frozenset({"--help", "-h", "--version", "--kill", "--status"})


def check(options: Sequence[str]) -> None:
    """Refuse what cannot work, before a JVM is started.

    Raises:
        UsageError: a cluster deploy mode (the driver has to run here: it holds the lock and prints
            the verdict), a program file, or an option that makes spark-submit do something else
            than run.
    """
    if _value("spark.submit.deployMode", options) == "cluster":
        raise UsageError(
            "--deploy-mode cluster is not supported: the driver runs here; leave the option out"
        )
    for option in options:
        if option in _NOT_A_RUN:
            raise UsageError(f"{option} behind --spark does not start a run")
    if options and not options[0].startswith("-"):
        raise UsageError(
            f"behind --spark an option of spark-submit is expected, not {options[0]!r}"
        )


def master_of(options: Sequence[str]) -> str:
    """The master that the run will have."""
    return _value("spark.master", options) or DEFAULT_MASTER


def is_set(name: str, options: Sequence[str]) -> bool:
    """Whether the user decided a setting that has to be known before the JVM starts."""
    return _value(name, options) is not None


def with_jars(options: Sequence[str], jars: str | None) -> list[str]:
    """The options with the Delta JARs added to the user's `--jars`, which replaces them."""
    if jars is None:
        return list(options)
    changed = list(options)
    for at, option in enumerate(changed):
        if option == "--jars" and at + 1 < len(changed):
            changed[at + 1] = f"{changed[at + 1]},{jars}"
        elif option.startswith("--jars="):
            changed[at] = f"{option},{jars}"
    return changed


def _value(name: str, options: Sequence[str]) -> str | None:
    flag = _FLAGS.get(name)
    conf: str | None = None
    for option, value in _pairs(options):
        if option == flag:
            return value
        if option in ("--conf", "-c") and value.partition("=")[0] == name:
            conf = value.partition("=")[2]
    return conf if conf is not None else _defaults(options).get(name)


def _pairs(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, option in enumerate(options):
        name, separator, value = option.partition("=")
        if separator and name.startswith("--"):
            yield name, value
        elif at + 1 < len(options):
            yield option, options[at + 1]


def _defaults(options: Sequence[str]) -> dict[str, str]:
    """Settings of the file that spark-submit itself would read."""
    named = next(
        (value for option, value in _pairs(options) if option == "--properties-file"), None
    )
    folder = os.environ.get("SPARK_CONF_DIR")
    file = Path(named) if named else Path(folder, "spark-defaults.conf") if folder else None
    if file is None or not file.is_file():
        return {}
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        parts = line.strip().replace("=", " ", 1).split(None, 1)
        if len(parts) == 2 and not parts[0].startswith("#"):
            found[parts[0]] = parts[1].strip()
    return found
