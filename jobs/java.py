"""Finding a Java that Spark can use; set-up runs it before anything is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from pipeline.errors import UnsupportedEnvironment

OLDEST = 17


def find() -> str:
    """The `java` that Spark will run: of JAVA_HOME, else of PATH.

    Returns:
        Its path.

    Raises:
        UnsupportedEnvironment: there is none, it does not run, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME ({home}) holds none" if home else "there is none on PATH"
        raise UnsupportedEnvironment(
            f"Java {OLDEST} or newer is needed: {where}; install a JDK or set JAVA_HOME"
        )
    version = version_of(java)
    if version < OLDEST:
        raise UnsupportedEnvironment(
            f"Java {OLDEST} or newer is needed: {java} is {version}; install a JDK or set JAVA_HOME"
        )
    return java


def version_of(java: str) -> int:
    """The major version of a `java`, 8 for 1.8.

    Raises:
        UnsupportedEnvironment: it does not run or says no version.
    """
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedEnvironment(
            f"Java {OLDEST} or newer is needed: {java} does not run ({error})"
        ) from None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if found is None:
        raise UnsupportedEnvironment(
            f"Java {OLDEST} or newer is needed: {java} does not say its version"
        )
    return int(found[1])
