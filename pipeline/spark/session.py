"""The one place that starts Spark.

The JVM is started by Spark's own `spark-submit` with what must be known before it runs (memory, JVM
flags, class path); everything else is set afterwards, and only where neither the user's options nor
`spark-defaults.conf` set it.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pipeline.errors import AuditError, UnsupportedEnvironment
from pipeline.spark.options import is_set, master_of, with_jars
from pipeline.text import sanitise

ROOT = Path(__file__).resolve().parents[2]
JARS_VARIABLE = "AUDIT_JARS"
"""The Delta JARs, as in a class path, where Python's own environment does not hold them."""

CLASS_ARCHIVE = Path(sys.prefix, "classes.jsa")
"""Loaded classes (class data sharing), made at set-up; a JVM ignores one that does not fit."""

PLANNED_ONCE_BYTES = 64 << 20
FIRST_TIER_BYTES = 2 << 30
"""Rows pass the JVM in binaries: what its second tier compiles did not pay at 340 MB (`benchmarks/`)."""

TEMP_BYTES = 16 << 20
"""Spark unpacks its native libraries there; without room it fails later and names something else."""

_SETTINGS = {
    "spark.app.name": "kafka-transaction-audit",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.codegen.cache.maxEntries": "500",
    "spark.sql.debug.maxToStringFields": "200",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.hadoop.parquet.block.size": str(32 << 20),
}
_ALLOCATOR = frozenset(
    (
        "ARROW_DEFAULT_MEMORY_POOL",
        "MALLOC_ARENA_MAX",
        "MALLOC_TRIM_THRESHOLD_",
        "MALLOC_MMAP_THRESHOLD_",
    )
)
"""What `spark-submit.sh` tells the allocators, so that Python workers of other machines are told the same."""

_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "pipeline.spark.daemon",
}


def build(
    *,
    options: Sequence[str] = (),
    log: Path | None = None,
    input_bytes: int = 0,
    java_flags: Sequence[str] = (),
) -> SparkSession:
    """Start Spark, or return the session that runs.

    Args:
        options: what the user wrote behind `--spark`, for spark-submit.
        log: file that takes everything that Spark and its workers print; None leaves it on standard
            error.
        input_bytes: size of the input. The JVM compiles with its first tier only below `FIRST_TIER_BYTES`, and Spark
            plans once below `PLANNED_ONCE_BYTES`: both begin faster and run slower.
        java_flags: more flags for the JVM of the driver.

    Raises:
        UnsupportedEnvironment: the Delta JARs are missing.
        AuditError: the JVM did not start, and the message names the log; or there is no folder for temporary files.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    if SparkContext._gateway is None:
        _launch(options, log, input_bytes, java_flags)
    master = master_of(options)
    is_local = master.startswith("local")
    conf = SparkConf()
    settings = _SETTINGS | {"spark.master": master, "spark.sql.warehouse.dir": _warehouse()}
    for name in _ALLOCATOR & set(os.environ):
        settings[f"spark.executorEnv.{name}"] = os.environ[name]
    if is_local:
        cores = str(
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 2
        )
        settings |= _LOCAL_SETTINGS | {
            "spark.sql.shuffle.partitions": cores,
            "spark.default.parallelism": cores,
        }
    if input_bytes < PLANNED_ONCE_BYTES:
        # Planning again behind every shuffle pays where there is data; here it is most of the time.
        settings["spark.sql.adaptive.enabled"] = "false"
    # The user's own are in place already; Spark writes those of a session to its log at DEBUG, secrets too.
    own: dict[str, Any] = {k: v for k, v in settings.items() if not conf.contains(k)}
    spark = SparkSession.builder.config(map=own).getOrCreate()
    if not is_local:
        spark.sparkContext.addPyFile(_code_archive())
    return spark


def _launch(
    options: Sequence[str], log: Path | None, input_bytes: int, java_flags: Sequence[str]
) -> None:
    """Start the JVM; the arguments are those of `build`, and so are the errors."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))
    )
    # Workers are started with `-m`, which puts the folder that one stands in first: it may hold a `pipeline` too.
    os.environ["PYTHONSAFEPATH"] = "1"
    is_local = master_of(options).startswith("local")
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    _start(_start_settings(options, is_local, input_bytes, java_flags), options, log)


def end(spark: SparkSession) -> None:
    """Stop Spark and wait until its JVM is gone."""
    gateway = SparkContext._gateway
    spark.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None


def delta_jars() -> list[str]:
    """The Delta JARs of this installation.

    Raises:
        UnsupportedEnvironment: there are none.
    """
    places = os.environ.get(JARS_VARIABLE) or str(Path(sys.prefix, "jars"))
    entries = [Path(entry) for entry in places.split(os.pathsep)]
    jars = sorted(
        str(jar)
        for entry in entries
        for jar in (entry.glob("delta-*.jar") if entry.is_dir() else [entry])
    )
    if not jars or not all(Path(jar).is_file() for jar in jars):
        raise UnsupportedEnvironment(
            f"no Delta JARs in {places}; start with ./spark-submit.sh, which fetches them"
        )
    return jars


def _start_settings(
    options: Sequence[str], is_local: bool, input_bytes: int, java_flags: Sequence[str]
) -> dict[str, str]:
    jars = delta_jars()
    tier = ("-XX:TieredStopAtLevel=1",) if input_bytes < FIRST_TIER_BYTES else ()
    sharing = (f"-XX:SharedArchiveFile={CLASS_ARCHIVE}",) if CLASS_ARCHIVE.exists() else ()
    log4j = f"-Dlog4j2.configurationFile={(ROOT / 'conf' / 'log4j2.properties').as_uri()}"
    temp = f"-Djava.io.tmpdir={_temp()}"
    flags = (
        "-XX:+UseParallelGC", "-Xss4m", "-Xlog:disable", log4j, temp, *tier, *sharing, *java_flags,
    )  # fmt: skip
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.driver.extraJavaOptions": " ".join(shlex.quote(flag) for flag in flags),
    }
    if not is_local:
        settings["spark.jars"] = ",".join(jars)
    return {name: value for name, value in settings.items() if not is_set(name, options)}


def _start(settings: dict[str, str], options: Sequence[str], log: Path | None) -> None:
    """Start the JVM with its output in the log; the user's options come last and win."""
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(
        [*with_jars(options, settings.get("spark.jars")), "pyspark-shell"]
    )
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    try:
        if log is None:
            gateway = launch_gateway(conf)
        else:
            with log.open("ab") as sink:
                gateway = launch_gateway(conf, {"stdout": sink, "stderr": subprocess.STDOUT})
    except PySparkRuntimeError:
        where = f"; the reason is in {log}" if log else ""
        raise AuditError(f"Spark did not start{where}") from None
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _temp() -> str:
    """The folder for temporary files; a JVM would take `/tmp` whatever `TMPDIR` says.

    Raises:
        AuditError: There is none, or Spark's own libraries would not find room in it.
    """
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        raise AuditError(
            f"no folder for temporary files ({error.strerror}); TMPDIR names one"
        ) from None
    free = shutil.disk_usage(folder).free
    if free < TEMP_BYTES:
        raise AuditError(
            f"no room for temporary files: {sanitise(folder)} has {free >> 10} KiB left of the "
            f"{TEMP_BYTES >> 20} MiB that Spark needs at least; TMPDIR names another folder"
        )
    return folder


def _warehouse() -> str:
    folder = tempfile.mkdtemp(prefix="audit-warehouse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder).as_uri()


def _code_archive() -> str:
    """The project's modules as a zip that executors on other machines import from."""
    folder = tempfile.mkdtemp(prefix="audit-code-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder, "audit-code.zip")
    with ZipFile(archive, "w") as target:
        for package in ("pipeline", "schemas"):
            for file in sorted((ROOT / package).rglob("*.py")):
                target.write(file, file.relative_to(ROOT))
    return str(archive)
