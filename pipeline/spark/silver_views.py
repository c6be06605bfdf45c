"""The logical tables of silver: parts of a physical table, or made from one when they are read."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from pipeline.spark import stored, tables
from schemas import silver
from schemas.table import Table


def view(spark: SparkSession, table: Table, output: str, run_id: str) -> DataFrame:
    """A logical silver table of one run."""
    if table is silver.LSO:
        return lso(view(spark, silver.PARTITION_TXN, output, run_id))
    if table is silver.PRODUCER_EPOCH:
        return producer_epoch(view(spark, silver.PARTITION_TXN, output, run_id))
    physical = stored.physical(table)
    if not tables.exists(physical, output):
        return tables.empty(spark, table)
    rows = tables.read(spark, physical, output, run_id)
    if physical is not table:
        rows = rows.filter(F.col("kind") == table.name)
    return rows.select(*table.names)


def lso(partition_txn: DataFrame) -> DataFrame:
    """Who held the last stable offset: a run pins from where all earlier-begun runs had ended to its own marker."""
    by_start = Window.partitionBy("replica_id").orderBy("first_offset")
    earlier = F.max(F.coalesce("marker_offset", F.lit(2**62))).over(
        by_start.rowsBetween(Window.unboundedPreceding, -1)
    )
    runs = partition_txn.filter(F.col("is_transactional"))
    pinned = runs.select(
        "*", F.greatest("first_offset", F.coalesce(earlier, F.lit(-1))).alias("pinned_from_offset")
    )
    is_pin = F.col("marker_offset").isNull() | (
        F.col("pinned_from_offset") < F.col("marker_offset")
    )
    return pinned.filter(is_pin & (F.col("pinned_from_offset") < 2**62)).select(
        "copy",
        "topic",
        "partition",
        "replica_id",
        "producer_id",
        "run_number",
        F.col("first_offset").alias("last_stable_offset"),
        "pinned_from_offset",
        F.col("marker_offset").alias("pinned_to_offset"),
    )


def producer_epoch(partition_txn: DataFrame) -> DataFrame:
    """One row a producer epoch and replica, from its runs."""
    return (
        partition_txn.withColumn("producer_epoch", F.coalesce("max_epoch", "marker_epoch"))
        .groupBy("copy", "topic", "partition", "replica_id", "producer_id", "producer_epoch")
        .agg(
            F.min("first_offset").alias("first_offset"),
            F.max("last_offset").alias("last_offset"),
            F.sum("record_count").alias("record_count"),
            F.count(F.lit(1)).alias("run_count"),
            F.max("marker_offset").alias("last_marker_offset"),
        )
        .select(*silver.PRODUCER_EPOCH.names)
    )
