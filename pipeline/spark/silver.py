"""Silver: replay of producers, coordinators and committed offsets over the bronze of one run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.config import Config
from pipeline.spark import (
    bronze,
    columnar,
    coordinator_rows,
    offset_rows,
    partitions,
    stored,
    tables,
)
from pipeline.spark import coverage as covered
from pipeline.spark.bronze import Ingested
from pipeline.spark.coordinator_times import coordinator_times
from pipeline.spark.plan import Plan
from pipeline.spark.replica_facts import replica_facts, with_frontiers
from pipeline.spark.run import Run, counted, replayed, tasks
from pipeline.spark.stateful import sorted_rows
from pipeline.spark.wraps import may_wrap
from pipeline.text import sanitise
from schemas import bronze as declared
from schemas import silver
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC


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
    newest, first, longest_ms = coordinator_times(output, run_id, starts)
    facts = with_frontiers(facts, first)
    coverage = covered.coverage(plan, facts, newest, counts, config, longest_ms)
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
        partitions.write_partitions(run, wraps)
        partitions.write_events(run, wraps)
        for one in beside:
            one.result()


def write_replicas(run: Run) -> None:
    """`silver.replica`; folders are keys of the facts as they are, and text of the table only here."""
    rows = [tuple(one._replace(log_dir=sanitise(one.log_dir))) for one in run.facts]
    tables.replace_rows(run.spark, rows, silver.REPLICA, run.output, run.run_id, also=run.expired)


def write_coordinator(run: Run) -> None:
    """`silver.coordinator_step`, `transaction` and `owner`: stateful replay per transactional id."""
    logs = covered.coordinator_logs(run.facts, run.counts)
    records = sum(
        segment["record_count"]
        for segment in run.ingested.segments
        if segment["replica_id"] in logs
    )
    shares = columnar.share_count(records, tasks(run))
    files = stored.files(declared.TXN_STATE, run.output, run.run_id)
    source = coordinator_rows.source(files, logs.keys(), run.ingested.keep_from, shares)
    tables.replace(
        columnar.packed(run.spark, [source], shares),
        silver.COORDINATOR,
        run.output,
        run.run_id,
        also=run.expired,
        function=coordinator_rows.packed_replayer(logs),
    )


def write_offsets(run: Run) -> None:
    """`silver.committed_offset`: stateful replay per partition of `__consumer_offsets`."""
    places = {
        one.replica_id: (one.copy, one.partition)
        for one in run.facts
        if one.is_replayed and one.topic == OFFSETS_TOPIC
    }
    if not places:
        tables.replace_rows(
            run.spark, [], silver.COMMITTED_OFFSET, run.output, run.run_id, also=run.expired
        )
        return
    mine = replayed(run, OFFSETS_TOPIC).select("replica_id")
    commits = counted(run, run.bronze(declared.OFFSET_COMMIT))
    markers = counted(run, run.bronze(declared.BATCH)).filter(
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
