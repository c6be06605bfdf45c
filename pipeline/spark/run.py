"""One run's handle on its tables and on what the driver knows, and the questions that every replay asks it."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.config import Config
from pipeline.replay.alive import Alive
from pipeline.spark import bronze, tables
from pipeline.spark.bronze import Ingested
from pipeline.spark.partition_input import Coverage
from pipeline.spark.plan import Plan
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.silver_views import view
from schemas.codes import OFFSETS_TOPIC
from schemas.table import Table

_MANY_BATCHES = 100_000
_TASKS_PER_CORE = 8


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
    newest: dict[int, dict[int, Alive]]
    counts: dict[int, int | None]
    expired: tuple[str, ...]

    def bronze(self, table: Table) -> DataFrame:
        """A logical bronze table of this run."""
        return bronze.view(self.spark, table, self.output, self.run_id)

    def silver(self, table: Table) -> DataFrame:
        """A silver table of this run, whatever its physical table."""
        return view(self.spark, table, self.output, self.run_id)


def replayed(run: Run, topic: str | None = None) -> DataFrame:
    """The replayed replicas, of one topic or of all."""
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


def counted(run: Run, rows: DataFrame) -> DataFrame:
    """Drops offsets that a preceding segment of the replica holds already."""
    if not run.ingested.keep_from:
        return rows
    keep = tables.local(
        run.spark, list(run.ingested.keep_from.items()), "segment_id bigint, keep_from bigint"
    )
    joined = rows.join(F.broadcast(keep), "segment_id", how="left")
    counts = F.col("keep_from").isNull() | (F.col("base_offset") >= F.col("keep_from"))
    return joined.filter(counts).drop("keep_from")


def tasks(run: Run) -> int:
    """Tasks for few keys of much work each: more than cores, so that two keys rarely wait for each other."""
    cores = run.spark.sparkContext.defaultParallelism
    batches = sum(segment["batch_count"] for segment in run.ingested.segments)
    return cores if batches < _MANY_BATCHES else cores * _TASKS_PER_CORE
