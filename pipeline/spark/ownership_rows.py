"""Who holds a producer id, and which partitions its transactions list: what runs are aligned with."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SAME = (
    "coordinator_partition",
    "transactional_id",
    "producer_id",
    "producer_epoch",
    "prepare_epoch",
    "state",
    "outcome",
    "transaction_version",
    "txn_timeout_ms",
    "start_ms",
    "prepare_offset",
    "prepare_ms",
    "complete_offset",
    "complete_ms",
    "prepare_leader_epoch",
    "complete_leader_epoch",
)
"""Columns of a transaction that its promises have too."""


def owner_of(owner: DataFrame) -> DataFrame:
    """One owner a producer id: the id that still holds it, else the one that held it last."""
    best = F.max(
        F.struct(
            F.col("is_current").alias("is_current"),
            F.coalesce(F.col("append_ms"), F.lit(-1)).alias("append_ms"),
            "transactional_id",
            "coordinator_partition",
            F.col("state").alias("state"),
            F.col("producer_epoch").alias("producer_epoch"),
            F.col("transaction_version").alias("version"),
        )
    )
    return (
        owner.groupBy("copy", "producer_id")
        .agg(best.alias("o"))
        .select(
            "copy",
            "producer_id",
            F.col("o.transactional_id").alias("transactional_id"),
            F.col("o.coordinator_partition").alias("coordinator_partition"),
            F.col("o.is_current").alias("owner_is_current"),
            F.col("o.state").alias("owner_state"),
            F.col("o.producer_epoch").alias("owner_epoch"),
            F.col("o.version").alias("owner_version"),
            F.col("o.append_ms").alias("owner_append_ms"),
        )
    )


def promises(transaction: DataFrame) -> DataFrame:
    """One row for each partition that a transaction lists."""
    exploded = transaction.select("*", F.explode("partitions").alias("listed"))
    return exploded.select(
        "copy",
        F.col("listed.topic").alias("topic"),
        F.col("listed.partition").alias("partition"),
        F.col("listed.added_ms").alias("added_ms"),
        F.col("first_step_offset").alias("transaction_offset"),
        *SAME,
        F.coalesce("prepare_leader_epoch", "ongoing_leader_epoch").alias("leader_epoch"),
    )
