"""Kafka's own `kafka-dump-log` as the yardstick: finds its JARs and prints files with it.

The JARs (`kafka_2.13` and `kafka-tools`) come from Maven Central: by `mvn` when it is there, else
by the dependency resolver of Spark. Nothing of them becomes part of this project.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

VERSION = "4.1.0"
MAIN_CLASSES = ("kafka.tools.DumpLogSegments", "org.apache.kafka.tools.DumpLogSegments")
COORDINATOR_TOPIC = "__transaction_state"
OFFSETS_TOPIC = "__consumer_offsets"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>benchmark</groupId><artifactId>peer</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>{version}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
<version>{version}</version></dependency></dependencies></project>
"""


class PeerError(RuntimeError):
    """The peer could not be fetched or failed on a file."""


def jars(folder: Path, version: str = VERSION) -> Path:
    """Return the folder of the peer's JARs, filled on the first call (needs the network then).

    Raises:
        PeerError: neither `mvn` nor Spark could fetch them.
    """
    target = folder / f"jars-{version}"
    if (target / f"kafka_2.13-{version}.jar").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    if shutil.which("mvn"):
        (folder / "pom.xml").write_text(_POM.format(version=version))
        command = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies",
                   f"-DoutputDirectory={target}"]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise PeerError(f"mvn could not fetch Kafka {version}: {run.stdout[-500:]}")
        return target
    _fetch_with_spark(folder, target, version)
    return target


def _fetch_with_spark(folder: Path, target: Path, version: str) -> None:
    packages = f"org.apache.kafka:kafka_2.13:{version},org.apache.kafka:kafka-tools:{version}"
    empty = folder / "empty.py"
    empty.write_text("")
    command = ["spark-submit", "--packages", packages, "--conf", f"spark.jars.ivy={folder / 'ivy'}",
               str(empty)]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = list((folder / "ivy" / "jars").glob("*.jar"))
    if run.returncode or not found:
        raise PeerError(f"spark-submit could not fetch Kafka {version}: {run.stderr[-500:]}")
    for jar in found:
        name = jar.name.removeprefix("org.apache.kafka_") if "kafka" in jar.name else jar.name
        shutil.copy(jar, target / name)


def main_class(jar_folder: Path) -> str:
    """Return the class of `kafka-dump-log` in these JARs (it moved between versions)."""
    for name in MAIN_CLASSES:
        probe = ["java", "-cp", f"{jar_folder}/*", name, "--version"]
        run = subprocess.run(probe, capture_output=True, text=True, check=False)
        if "ClassNotFoundException" not in run.stderr:
            return name
    raise PeerError(f"no DumpLogSegments in {jar_folder}")


def print_files(
    jar_folder: Path, files: Sequence[Path], *, headers_only: bool = False
) -> dict[str, float]:
    """Print files one after the other to nowhere, as one would by hand, one JVM a file.

    Args:
        headers_only: the coordinator's files too without their records.

    Returns:
        Seconds for each file.

    Raises:
        PeerError: the tool ended with an error.
    """
    name, seconds = main_class(jar_folder), {}
    for file in files:
        topic = file.parent.name.rpartition("-")[0]
        decoder = {
            COORDINATOR_TOPIC: "--transaction-log-decoder",
            OFFSETS_TOPIC: "--offsets-decoder",
        }
        extra = [decoder[topic]] if topic in decoder and not headers_only else []
        command = ["java", "-Xmx256m", "-cp", f"{jar_folder}/*", name, "--files", str(file), *extra]
        started = time.monotonic()
        run = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
        )
        if run.returncode:
            raise PeerError(f"kafka-dump-log failed on {file}: {run.stderr[-500:]}")
        seconds[f"{file.parent.name}/{file.name}"] = time.monotonic() - started
    return seconds
