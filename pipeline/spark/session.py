"""The one place that builds a Spark session."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark import SparkConf
from pyspark.sql import SparkSession

JARS_VARIABLE = "AUDIT_JARS"
"""Colon-separated Delta JARs; the launcher sets it."""

_DEFAULTS = {
    "spark.app.name": "kafka-transaction-audit",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.stats.collect": "false",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.python.worker.reuse": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.codegen.cache.maxEntries": "500",
    "spark.sql.debug.maxToStringFields": "200",
    "spark.sql.parquet.compression.codec": "zstd",
}
_LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=4 -Xss4m",
}


def build() -> SparkSession:
    """Builds or returns the session; a setting that the user gave to spark-submit is never overridden."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf()
    is_local = conf.get("spark.master", "local").startswith("local")
    defaults = dict(_DEFAULTS)
    if is_local:
        defaults |= _LOCAL
        defaults["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 2)
        defaults["spark.default.parallelism"] = str(os.cpu_count() or 2)
    defaults["spark.sql.warehouse.dir"] = Path(tempfile.gettempdir(), "audit-warehouse").as_uri()
    jars = os.environ.get(JARS_VARIABLE, "")
    if jars:
        defaults["spark.jars"] = ",".join(jars.split(":"))
    for name, value in defaults.items():
        if not conf.contains(name):
            conf.set(name, value)
    return SparkSession.builder.config(conf=conf).getOrCreate()
