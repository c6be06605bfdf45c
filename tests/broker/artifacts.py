"""Kafka's broker, tools and Java clients as JARs from a Maven repository, kept in the user's cache.

The Ivy that Spark ships resolves them with their dependencies, as the set-up does for the JARs of
Delta. A folder is named when it is whole; the second time nothing is asked of any repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark
from filelock import FileLock

from jobs import java
from jobs.set_up import IVY_MAIN, ROOT
from pipeline.errors import UnsupportedEnvironment

REPOSITORY = "BROKER_MAVEN_URL"
CACHE = "BROKER_CACHE"
FETCH_SECONDS = 600
_MODULE = """<ivy-module version="2.0">
  <info organisation="audit" module="{name}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconf="default->default">
{dependencies}
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" transitive="false"/>
    <exclude org="org.slf4j" module="slf4j-reload4j"/>
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = """    <dependency org="org.apache.kafka" name="{name}" rev="{version}" transitive="{transitive}"/>"""
_BROKER = {"kafka_2.13": True, "kafka-tools": False, "kafka-tools-api": False}
_CLIENTS = {"kafka-streams-examples": True, "connect-runtime": True, "connect-test-plugins": True}
"""Artifacts, and whether those that they depend on are fetched with them; the first one has to be there."""
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="${{audit.ivy.cache}}"/>
  <resolvers><ibiblio name="central" m2compatible="true" root={root}/></resolvers>
</ivysettings>
"""


class NoArtifacts(Exception):
    """Java, or Kafka's JARs, cannot be had here; the message says why."""


def folder() -> Path:
    """Where JARs are kept: $BROKER_CACHE, else the user's cache."""
    if chosen := os.environ.get(CACHE):
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "kafka-transaction-audit"


def jars(version: str) -> Path:
    """The folder with the JARs of one version of Kafka, fetched when it is not there.

    Args:
        version: Of Kafka, for instance 4.3.1.

    Raises:
        NoArtifacts: no Java, no repository, or it does not serve this version.
    """
    return _whole(f"kafka-{version}", version, _BROKER)


def clients(version: str) -> Path:
    """The same with Kafka Streams, its examples, and Kafka Connect with its test connectors.

    Args:
        version: From 4.0 on: the examples of older ones were not published.

    Raises:
        NoArtifacts: no Java, no repository, or it does not serve this version.
    """
    return _whole(f"clients-{version}", version, _CLIENTS)


def _whole(name: str, version: str, wanted: Mapping[str, bool]) -> Path:
    whole = folder() / name
    if whole.is_dir():
        return whole
    folder().mkdir(parents=True, exist_ok=True)
    with FileLock(f"{whole}.lock"):
        if not whole.is_dir():
            with tempfile.TemporaryDirectory(dir=folder()) as scratch:
                _fetch(version, wanted, Path(scratch))
                shutil.move(Path(scratch) / "jars", whole)
    return whole


def java_path() -> str:
    """The Java that runs brokers.

    Raises:
        NoArtifacts: there is none of version 17 or newer.
    """
    try:
        return java.find()
    except UnsupportedEnvironment as error:
        raise NoArtifacts(str(error)) from None


def _fetch(version: str, wanted: Mapping[str, bool], scratch: Path) -> None:
    module = scratch / "ivy.xml"
    first, *_ = wanted
    dependencies = (
        _DEPENDENCY.format(name=name, version=version, transitive=str(with_others).lower())
        for name, with_others in wanted.items()
    )
    module.write_text(_MODULE.format(name=first, dependencies="\n".join(dependencies)))
    shipped = Path(pyspark.__file__).parent / "jars"
    ivy = [str(next(shipped.glob(f"{name}-*.jar"))) for name in ("ivy", "commons-cli")]
    command = [
        java_path(), f"-Daudit.ivy.cache={folder() / 'ivy'}", "-cp", os.pathsep.join(ivy), IVY_MAIN,
        "-settings", str(_settings(scratch)), "-warn", "-ivy", str(module), "-confs", "default",
        "-types", "jar", "bundle", "-retrieve", str(scratch / "jars" / "[artifact]-[revision].[ext]"),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoArtifacts(
            f"Kafka {version} was not fetched within {FETCH_SECONDS} seconds"
        ) from None
    found = scratch / "jars" / f"{first}-{version}.jar"
    if done.returncode != 0 or not found.is_file():
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        why = next((line for line in said if "not found" in line or "ERROR" in line), "no answer")
        raise NoArtifacts(f"Maven serves no {first} {version} here: {why}")


def _settings(scratch: Path) -> Path:
    root = os.environ.get(REPOSITORY)
    if root is None:
        return ROOT / "conf" / "ivysettings.xml"
    mine = scratch / "ivysettings.xml"
    mine.write_text(_SETTINGS.format(root=quoteattr(root)))
    return mine
