"""Sets the checkout up once: environment, Delta JARs, class archive.

Runs on any Python 3.11+ with nothing installed.

`spark-submit.sh` calls it when the stamp in `.venv` does not match `setup.cfg` and
`constraints.txt`. An operating system lock keeps two first starts apart; the stamp is written last,
so an interrupted set-up is simply done again.
"""

from __future__ import annotations

import configparser
import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from jobs import java
from pipeline.errors import AuditError

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "ready"
DELTA = (("delta-spark_4.2_2.13", "4.4.0"), ("delta-storage", "4.4.0"))
IVY_MAIN = "org.apache.ivy.Main"


def main(arguments: Sequence[str]) -> int:
    """Set up, with the tools of a developer too when `--dev` is given.

    Returns:
        0; 2 when Java or Python do not suffice; 4 when something could not be fetched or built.
    """
    is_dev = "--dev" in arguments
    try:
        with (ROOT / ".venv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_ready(is_dev):
                _set_up(java.find(), is_dev)
    except AuditError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: cannot set up in {ROOT}: {error}", file=sys.stderr)
        return 4
    return 0


def is_ready(is_dev: bool) -> bool:
    """Whether the last set-up ended and was made for these versions."""
    lines = STAMP.read_text().split("\n") if STAMP.exists() else []
    return bool(lines) and lines[0] == _wanted() and (not is_dev or "dev" in lines)


def _wanted() -> str:
    """What `cat setup.cfg constraints.txt | cksum` says, as the launcher compares it."""
    done = subprocess.run(
        ["cksum"],
        input=(ROOT / "setup.cfg").read_bytes() + (ROOT / "constraints.txt").read_bytes(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def _set_up(java_path: str, is_dev: bool) -> None:
    _say(f"setting up in {VENV}, once; this takes a few minutes")
    STAMP.unlink(missing_ok=True)
    log = VENV.with_name(".venv.log")
    log.write_bytes(b"")
    if not _works():
        _run("python", [sys.executable, "-m", "venv", "--clear", str(VENV)], log)
    _say("Python packages")
    _run(
        "pip",
        [
            str(PYTHON),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
            "--constraint",
            str(ROOT / "constraints.txt"),
            *requirements(is_dev),
        ],
        log,
    )
    _say("Delta JARs")
    _fetch_jars(java_path, log)
    _say("class archive")
    _archive_classes(log)
    STAMP.write_text(_wanted() + ("\ndev" if is_dev else ""))
    _say("ready")


def requirements(is_dev: bool) -> list[str]:
    """What `setup.cfg` asks for."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    wanted = parser["options"]["install_requires"]
    if is_dev:
        wanted += parser["options.extras_require"]["dev"]
    return wanted.split()


def _works() -> bool:
    if not PYTHON.exists():
        return False
    code = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return (
        subprocess.run([str(PYTHON), "-c", code], capture_output=True, check=False).returncode == 0
    )


def _fetch_jars(java_path: str, log: Path) -> None:
    """Let the Ivy that Spark ships fetch the two JARs from Maven Central alone.

    Spark's own `--packages` looks into the user's Maven cache first, and fails on what lies there
    half fetched.
    """
    jars = VENV / "jars"
    if all((jars / f"{name}-{version}.jar").is_file() for name, version in DELTA):
        return
    shipped = "lib/python3*/site-packages/pyspark/jars"
    tools = [next(VENV.glob(f"{shipped}/{name}-*.jar"), None) for name in ("ivy", "commons-cli")]
    if None in tools:
        raise AuditError(f"{VENV} is not whole, it lacks {shipped}: remove it and start again")
    classpath = os.pathsep.join(map(str, tools))
    for name, version in DELTA:
        _run(
            "Ivy",
            [
                java_path,
                f"-Daudit.ivy.cache={VENV / 'ivy'}",
                "-cp",
                classpath,
                IVY_MAIN,
                "-settings",
                str(ROOT / "conf" / "ivysettings.xml"),
                "-warn",
                "-notransitive",
                "-dependency",
                "io.delta",
                name,
                version,
                "-confs",
                "default,master",
                "-retrieve",
                str(jars / "[artifact]-[revision].[ext]"),
            ],
            log,
        )
        if not (jars / f"{name}-{version}.jar").is_file():
            raise AuditError(f"Ivy fetched no {name} {version}; see {log}")


def _archive_classes(log: Path) -> None:
    """Keep the classes that a small run loads, so that later JVMs start in half the time.

    A Java that cannot do it costs nothing but that time: the log says why, and runs go on without
    the archive.
    """
    archive = VENV / "classes.jsa"
    archive.unlink(missing_ok=True)
    with log.open("ab") as sink:
        subprocess.run(
            [str(PYTHON), "-m", "jobs.archive_classes", str(archive)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=sink,
            stderr=sink,
            check=False,
            timeout=600,
        )


def _run(what: str, command: list[str], log: Path) -> None:
    with log.open("ab") as sink:
        start = sink.tell()
        code = subprocess.run(command, cwd=ROOT, stdout=sink, stderr=sink, check=False).returncode
    if code != 0:
        with log.open("rb") as said:
            said.seek(start)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {code}"
        raise AuditError(f"set-up failed in {what}: {reason} (all of it: {log})")


def _say(line: str) -> None:
    print(f"set-up: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
