"""`silver.partition_history` and `sequence_event`: producers of data partitions, aligned with the coordinators."""

from __future__ import annotations

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.spark import (
    columnar,
    history,
    partition_input,
    partition_packs,
    partition_rows,
    producer_rows,
    stored,
    tables,
)
from pipeline.spark.ownership_rows import owner_of, promises
from pipeline.spark.parquet import Function
from pipeline.spark.run import Run, counted, replayed, tasks
from pipeline.spark.stateful import sorted_rows
from schemas import bronze, silver
from schemas.table import Table


def _batches(run: Run) -> DataFrame:
    """Batches of producers in replayed replicas, with what the windows ask of their replica."""
    batches = counted(run, run.bronze(bronze.BATCH)).filter(F.col("producer_id") >= 0)
    place = replayed(run).select("replica_id", "history_start_offset", "is_offsets")
    return batches.join(place, "replica_id", how="inner")


def _with_history(batches: DataFrame, wraps: bool) -> DataFrame:
    """Adds each batch's history (`history.with_history`) and `event`."""
    return history.with_history(batches, wraps).withColumn("event", history.event_kind())


def write_partitions(run: Run, wraps: bool) -> None:
    """`silver.partition_txn` and `transaction_partition`: runs, then alignment per data partition.

    Args:
        run: The run.
        wraps: Some sequence may have wrapped: the runs are made by the window functions, which follow it. Else they
            are made of arrays, which is the same several times faster.
    """
    rows, function = _by_windows(run) if wraps else _by_arrays(run)
    tables.replace(
        rows,
        silver.PARTITION_HISTORY,
        run.output,
        run.run_id,
        also=run.expired,
        function=function,
    )


def _by_arrays(run: Run) -> tuple[DataFrame, Function]:
    count = tasks(run)
    places = partition_packs.places(run.facts, run.ingested.segments, count)

    def files(table: Table) -> list[str]:
        return stored.files(table, run.output, run.run_id)

    sources = [
        producer_rows.source(files(bronze.BATCH), places, run.ingested.keep_from),
        partition_packs.source(files(silver.TRANSACTION), places, count),
    ]
    owners = partition_packs.Owners(files(silver.OWNER))
    return columnar.packed(run.spark, sources, count), partition_packs.aligner(
        places, owners, run.coverage
    )


def _by_windows(run: Run) -> tuple[DataFrame, Function]:
    place = replayed(run).select("replica_id", "copy", "topic", "partition")
    runs = history.runs(_with_history(_batches(run), True)).join(place, "replica_id", how="inner")
    owners = owner_of(run.silver(silver.OWNER))
    owned = runs.join(owners, ["copy", "producer_id"], how="left")
    promised = promises(run.silver(silver.TRANSACTION))
    rows = owned.withColumn("kind", F.lit(partition_input.RUN)).unionByName(
        promised.withColumn("kind", F.lit(partition_input.PROMISE)), allowMissingColumns=True
    )
    sorted_by_key = sorted_rows(
        rows, keys=partition_input.KEYS, order=("kind",), partitions=tasks(run)
    )
    return sorted_by_key, partition_rows.aligner(run.coverage)


def write_events(run: Run, wraps: bool) -> None:
    """`silver.sequence_event`: details of irregular steps, only for producers that have any."""
    counts = stored.pieces(silver.PARTITION_TXN, run.output, run.run_id, ("irregular_count",))
    if not any(pc.any(pc.greater(rows["irregular_count"], 0)).as_py() for rows in counts):
        if tables.exists(silver.SEQUENCE_EVENT, run.output):
            tables.replace_rows(
                run.spark, [], silver.SEQUENCE_EVENT, run.output, run.run_id, also=run.expired
            )
        return
    irregular = (
        run.silver(silver.PARTITION_TXN)
        .filter(F.col("irregular_count") > 0)
        .select("replica_id", "producer_id")
        .distinct()
    )
    theirs = _batches(run).join(
        F.broadcast(irregular), ["replica_id", "producer_id"], how="left_semi"
    )
    events = history.sequence_events(_with_history(theirs, wraps))
    place = replayed(run).select("replica_id", "copy", "topic", "partition")
    rows = events.join(place, "replica_id", how="inner").select(
        "copy",
        "topic",
        "partition",
        "replica_id",
        "producer_id",
        F.col("base_offset").alias("offset"),
        "last_offset",
        "kind",
        "producer_epoch",
        F.coalesce("first_sequence", F.lit(-1)).alias("first_sequence"),
        F.coalesce("last_sequence", F.lit(-1)).alias("last_sequence"),
        F.col("max_epoch_before").alias("previous_epoch"),
        F.col("reached.last_sequence").alias("previous_sequence"),
        F.col("previous.last_offset").alias("previous_offset"),
        "other_offset",
        F.col("previous.partition_leader_epoch").alias("previous_leader_epoch"),
        F.col("partition_leader_epoch").alias("leader_epoch"),
        "is_transactional",
        F.col("max_timestamp_ms").alias("timestamp_ms"),
    )
    tables.replace(
        rows.coalesce(1), silver.SEQUENCE_EVENT, run.output, run.run_id, also=run.expired
    )
