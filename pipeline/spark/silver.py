"""Silver: replay of producers, coordinators and committed offsets over the bronze of one run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.config import Config
from pipeline.spark import (
    bronze,
    coordinator_rows,
    history,
    offset_rows,
    partition_input,
    partition_rows,
    stored,
    tables,
)
from pipeline.spark import coverage as covered
from pipeline.spark.bronze import Ingested
from pipeline.spark.coordinator_times import coordinator_times
from pipeline.spark.ownership_rows import owner_of, promises
from pipeline.spark.partition_input import Coverage
from pipeline.spark.plan import Plan
from pipeline.spark.replica_facts import ReplicaFacts, replica_facts, with_frontiers
from pipeline.spark.silver_views import view
from pipeline.spark.stateful import sorted_rows
from pipeline.spark.wraps import may_wrap
from pipeline.text import sanitise
from schemas import bronze as declared
from schemas import silver
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC
from schemas.table import Table

_MANY_BATCHES = 100_000
_SHARES_PER_CORE = 8


class Run(NamedTuple):
    """One run's handle on its tables and on what the driver knows."""

    spark: SparkSession
    plan: Plan
    ingested: Ingested
    output: str
    run_id: str
    config: Config
    facts: list[ReplicaFacts]
    coverage: Coverage
    newest: dict[int, dict[int, int]]
    counts: dict[int, int | None]
    expired: tuple[str, ...]

    def bronze(self, table: Table) -> DataFrame:
        """A logical bronze table of this run."""
        return bronze.view(self.spark, table, self.output, self.run_id)

    def silver(self, table: Table) -> DataFrame:
        """A silver table of this run, whatever its physical table."""
        return view(self.spark, table, self.output, self.run_id)


def facts_of(
    spark: SparkSession,
    plan: Plan,
    ingested: Ingested,
    config: Config,
    run_id: str,
    expired: tuple[str, ...] = (),
) -> Run:
    """Replica facts and coverage, from the segments and the times of the coordinators' records.

    Args:
        spark: The session.
        plan: What was found.
        ingested: What was read.
        config: The configuration.
        run_id: The run.
        expired: Runs whose rows every write of this run removes.
    """
    output = config.output
    damaged = {
        row["replica_id"]
        for row in ingested.unreadable
        if not row["is_tail"] and not row["reason"].startswith("sidecar")
    }
    facts = replica_facts(plan, ingested.segments, damaged)
    counts = {
        copy: covered.partition_count(plan, copy, TXN_TOPIC, config.transaction_state_partitions)
        for copy in {one.copy for one in facts}
    }
    starts = {
        one.replica_id: one.history_start_offset
        for one in facts
        if one.is_replayed and one.topic == TXN_TOPIC
    }
    newest, first = coordinator_times(output, run_id, starts)
    facts = with_frontiers(facts, first)
    coverage = covered.coverage(plan, facts, newest, counts, config)
    return Run(
        spark, plan, ingested, output, run_id, config, facts, coverage, newest, counts, expired
    )


def build(run: Run, stage: Callable[[str], None]) -> None:
    """All silver tables of the run, and the segments: independent writes overlap.

    Args:
        run: The run.
        stage: Told what is being done.
    """
    with ThreadPoolExecutor(3) as pool:
        beside = [
            pool.submit(
                bronze.write_segments, run.spark, run.ingested, run.output, run.run_id, run.expired
            ),
            pool.submit(write_replicas, run),
            pool.submit(write_offsets, run),
        ]
        write_coordinator(run)
        stage("replaying producers and aligning markers")
        wraps = may_wrap(run.output, run.run_id)
        write_partitions(run, wraps)
        write_events(run, wraps)
        for one in beside:
            one.result()


def write_replicas(run: Run) -> None:
    """`silver.replica`; folders are keys of the facts as they are, and text of the table only here."""
    rows = [tuple(one._replace(log_dir=sanitise(one.log_dir))) for one in run.facts]
    tables.replace_rows(run.spark, rows, silver.REPLICA, run.output, run.run_id, also=run.expired)


def _replayed(run: Run, topic: str | None = None) -> DataFrame:
    rows = [
        (
            one.replica_id,
            one.copy,
            one.topic,
            one.partition,
            one.history_start_offset,
            one.topic == OFFSETS_TOPIC,
        )
        for one in run.facts
        if one.is_replayed and (topic is None or one.topic == topic)
    ]
    ddl = "replica_id bigint, copy int, topic string, partition int, history_start_offset bigint, is_offsets boolean"
    return F.broadcast(tables.local(run.spark, rows, ddl))


def _counted(run: Run, rows: DataFrame) -> DataFrame:
    """Drops offsets that a preceding segment of the replica holds already."""
    if not run.ingested.keep_from:
        return rows
    keep = tables.local(
        run.spark, list(run.ingested.keep_from.items()), "segment_id bigint, keep_from bigint"
    )
    joined = rows.join(F.broadcast(keep), "segment_id", how="left")
    counts = F.col("keep_from").isNull() | (F.col("base_offset") >= F.col("keep_from"))
    return joined.filter(counts).drop("keep_from")


def write_coordinator(run: Run) -> None:
    """`silver.coordinator_step`, `transaction` and `owner`: stateful replay per transactional id."""
    logs = covered.coordinator_logs(run.facts, run.counts)
    states = _counted(run, run.bronze(declared.TXN_STATE))
    mine = _replayed(run, TXN_TOPIC).select("replica_id")
    rows = states.join(mine, "replica_id", how="left_semi").select(*coordinator_rows.INPUT)
    tables.replace(
        sorted_rows(
            rows,
            keys=("replica_id", "transactional_id"),
            order=("base_offset",),
            partitions=_shares(run),
        ),
        silver.COORDINATOR,
        run.output,
        run.run_id,
        also=run.expired,
        function=coordinator_rows.replayer(logs),
    )


def write_offsets(run: Run) -> None:
    """`silver.committed_offset`: stateful replay per partition of `__consumer_offsets`."""
    places = {
        one.replica_id: (one.copy, one.partition)
        for one in run.facts
        if one.is_replayed and one.topic == OFFSETS_TOPIC
    }
    mine = _replayed(run, OFFSETS_TOPIC).select("replica_id")
    commits = _counted(run, run.bronze(declared.OFFSET_COMMIT))
    markers = _counted(run, run.bronze(declared.BATCH)).filter(
        F.col("is_control") & (F.col("producer_id") >= 0)
    )
    shaped = commits.select(
        *[
            F.lit(False).alias(name)
            if name == "is_control"
            else F.lit(None).cast("int").alias(name)
            if name == "control_type"
            else F.col(name)
            for name in offset_rows.INPUT
        ]
    ).unionByName(
        markers.select(
            *[name for name in offset_rows.INPUT if name in markers.columns],
        ),
        allowMissingColumns=True,
    )
    rows = shaped.join(mine, "replica_id", how="left_semi").select(*offset_rows.INPUT)
    tables.replace(
        sorted_rows(rows, keys=("replica_id",), order=("base_offset",)),
        silver.COMMITTED_OFFSET,
        run.output,
        run.run_id,
        also=run.expired,
        function=offset_rows.materialiser(places),
    )


def batches_with_history(run: Run, wraps: bool) -> DataFrame:
    """Batches of producers in replayed replicas with their history (`history.with_history`) and `event`."""
    batches = _counted(run, run.bronze(declared.BATCH)).filter(F.col("producer_id") >= 0)
    place = _replayed(run).select("replica_id", "history_start_offset", "is_offsets")
    joined = batches.join(place, "replica_id", how="inner")
    with_history = history.with_history(joined, wraps)
    return with_history.withColumn("event", history.event_kind())


def write_partitions(run: Run, wraps: bool) -> None:
    """`silver.partition_txn` and `transaction_partition`: runs by windows, then alignment per data partition."""
    place = _replayed(run).select("replica_id", "copy", "topic", "partition")
    runs = history.runs(batches_with_history(run, wraps)).join(place, "replica_id", how="inner")
    owners = owner_of(view(run.spark, silver.OWNER, run.output, run.run_id))
    owned = runs.join(owners, ["copy", "producer_id"], how="left")
    promised = promises(view(run.spark, silver.TRANSACTION, run.output, run.run_id))
    rows = owned.withColumn("kind", F.lit(partition_input.RUN)).unionByName(
        promised.withColumn("kind", F.lit(partition_input.PROMISE)), allowMissingColumns=True
    )
    tables.replace(
        sorted_rows(rows, keys=partition_input.KEYS, order=("kind",), partitions=_shares(run)),
        silver.PARTITION_HISTORY,
        run.output,
        run.run_id,
        also=run.expired,
        function=partition_rows.aligner(run.coverage),
    )


def _shares(run: Run) -> int | None:
    """Tasks for few keys of much work each: more than cores, so that two keys rarely wait for each other."""
    if sum(segment["batch_count"] for segment in run.ingested.segments) < _MANY_BATCHES:
        return None
    return run.spark.sparkContext.defaultParallelism * _SHARES_PER_CORE


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
    batches = batches_with_history(run, wraps).join(
        F.broadcast(irregular), ["replica_id", "producer_id"], how="left_semi"
    )
    events = history.sequence_events(batches)
    place = _replayed(run).select("replica_id", "copy", "topic", "partition")
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
