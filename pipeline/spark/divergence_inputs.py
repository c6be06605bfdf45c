"""What `replica_divergence` takes: where two replicas of a partition part."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.replay.lineage import Lineage, may_be_of_two_topics
from pipeline.spark import tables
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.run import Run
from pipeline.spark.tables import Held
from schemas import bronze, silver

_DIVERGENCE = (
    "copy int, topic string, partition int, broker_id int, other_broker_id int, class string, offset bigint, "
    "last_offset bigint, high_watermark bigint, is_acknowledged boolean, older_epoch int, newer_epoch int, "
    "other_id bigint"
)

_PAIR = (
    "main_id bigint, other_id bigint, copy int, topic string, partition int, broker_id int, other_broker_id int, "
    "floor bigint, main_end bigint, high_watermark bigint, older_epoch int, newer_epoch int"
)
_STRANGER = "other_id bigint, is_same_topic boolean"
_BATCH = (
    "replica_id",
    "base_offset",
    "last_offset",
    "crc",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "is_control",
    "max_timestamp_ms",
)
_KEY = (
    "copy",
    "topic",
    "partition",
    "broker_id",
    "other_broker_id",
    "other_id",
    "high_watermark",
    "older_epoch",
    "newer_epoch",
)


def divergence(run: Run) -> Held:
    """First offset at which each other replica differs from the one that is replayed."""
    groups: dict[tuple[int, str, int], list[ReplicaFacts]] = defaultdict(list)
    for one in run.facts:
        groups[one.copy, one.topic, one.partition].append(one)
    pairs = []
    nameless: dict[int, int] = {}
    for members in groups.values():
        main = next(one for one in members if one.is_replayed)
        for other in members:
            if other is main or other.topic_id != main.topic_id:
                continue
            if main.topic_id is None:
                nameless[other.replica_id] = main.replica_id
            floor = max(main.history_start_offset, other.history_start_offset)
            pairs.append(
                (
                    main.replica_id,
                    other.replica_id,
                    main.copy,
                    main.topic,
                    main.partition,
                    main.broker_id,
                    other.broker_id,
                    floor,
                    main.log_end_offset,
                    other.high_watermark or 0,
                    other.max_leader_epoch,
                    main.max_leader_epoch,
                )
            )
    if not pairs:
        return Held(tables.local(run.spark, [], f"{_DIVERGENCE}, is_same_topic boolean"), True)
    found = tables.localise(_first_differences(run, pairs))
    strangers = [] if found.is_empty or not nameless else _strangers(run, nameless)
    if not strangers:
        return found._replace(rows=found.rows.withColumn("is_same_topic", F.lit(True)))
    told = F.broadcast(tables.local(run.spark, strangers, _STRANGER))
    is_same = F.coalesce("is_same_topic", F.lit(True)).alias("is_same_topic")
    rows = found.rows.join(told, "other_id", how="left").select(*found.rows.columns, is_same)
    return Held(rows, found.is_empty)


def _first_differences(run: Run, pairs: list[tuple[Any, ...]]) -> DataFrame:
    differing = _differing(_batches(run), F.broadcast(tables.local(run.spark, pairs, _PAIR)))
    first = (
        differing.groupBy(*_KEY)
        .agg(
            F.min("base_offset").alias("offset"),
            F.max("last_offset").alias("last_offset"),
            F.max("is_other").alias("has_other"),
        )
        .join(F.broadcast(_lost_commits(run, differing)), "other_id", how="left")
    )
    is_acknowledged = (F.col("offset") < F.col("high_watermark")) | F.coalesce(
        F.col("lost_commit"), F.lit(False)
    )
    return first.select(
        "copy",
        "topic",
        "partition",
        "broker_id",
        "other_broker_id",
        F.when(F.col("has_other"), F.lit("same_offset_other_bytes"))
        .otherwise(F.lit("lost_tail"))
        .alias("class"),
        "offset",
        "last_offset",
        "high_watermark",
        is_acknowledged.alias("is_acknowledged"),
        "older_epoch",
        "newer_epoch",
        "other_id",
    )


def _strangers(run: Run, nameless: dict[int, int]) -> list[tuple[int, bool]]:
    """Replicas without a topic id that may be of another topic of the same name than the one that is replayed."""
    batches = _batches(run)
    ids = tables.local(run.spark, list(nameless.items()), "replica_id bigint, main_id bigint")
    bytes_of = ["base_offset", "crc", "partition_leader_epoch"]
    mine = batches.select(F.col("replica_id").alias("main_id"), *bytes_of)
    theirs = batches.select("replica_id", *bytes_of).join(F.broadcast(ids), "replica_id")
    both = theirs.join(mine, ["main_id", *bytes_of], how="left_semi").select("replica_id")
    shared = {row["replica_id"] for row in both.distinct().collect()}
    of_either = [(one,) for one in {*nameless, *nameless.values()}]
    spans = batches.join(
        F.broadcast(tables.local(run.spark, of_either, "replica_id bigint")), "replica_id"
    )
    epoch = F.col("partition_leader_epoch")
    lineages = {
        row[0]: Lineage(*row[1:])
        for row in spans.groupBy("replica_id")
        .agg(F.min("base_offset"), F.min(epoch), F.max(epoch), F.min("max_timestamp_ms"))
        .collect()
    }
    return [
        (other, False)
        for other, main in nameless.items()
        if other in lineages
        and main in lineages
        and may_be_of_two_topics(lineages[main], lineages[other], has_shared=other in shared)
    ]


def _batches(run: Run) -> DataFrame:
    """One row a batch offset of a replica; records of the internal topics stand for their batches."""
    batches = run.bronze(bronze.BATCH).select(*_BATCH)
    for table in (bronze.TXN_STATE, bronze.OFFSET_COMMIT):
        batches = batches.unionByName(_entry_rows(run, table.name).select(*_BATCH))
    return batches.dropDuplicates(["replica_id", "base_offset"])


def _differing(batches: DataFrame, pair: DataFrame) -> DataFrame:
    """Batches of the other replica that the main one lacks (behind its end) or holds otherwise (`is_other`)."""
    theirs = batches.join(pair, batches["replica_id"] == pair["other_id"], how="inner").filter(
        F.col("base_offset") >= F.col("floor")
    )
    mine = batches.select(
        F.col("replica_id").alias("main_id"),
        "base_offset",
        F.col("crc").alias("main_crc"),
        F.col("partition_leader_epoch").alias("main_epoch"),
    )
    compared = theirs.join(mine, ["main_id", "base_offset"], how="left")
    is_tail = F.col("base_offset") >= F.col("main_end")
    is_other = F.col("main_crc").isNotNull() & (
        (F.col("crc") != F.col("main_crc"))
        | (F.col("partition_leader_epoch") != F.col("main_epoch"))
    )
    return compared.withColumn("is_other", is_other).filter(is_tail | F.col("is_other"))


def _lost_commits(run: Run, differing: DataFrame) -> DataFrame:
    """Other replicas that alone hold data of a transaction whose COMMIT the main one has."""
    key = ["copy", "topic", "partition", "producer_id", "transaction_epoch"]
    tail_data = (
        differing.filter(F.col("is_transactional") & ~F.col("is_control"))
        .withColumn("transaction_epoch", F.col("producer_epoch"))
        .select("other_id", *key)
        .distinct()
    )
    emptied = (
        run.silver(silver.PARTITION_TXN)
        .filter(
            F.col("first_offset").isNull()
            & (F.col("marker_type") == 1)
            & F.col("alignment").isin("aligned", "resent")
        )
        .select(*key)
        .distinct()
    )
    return (
        tail_data.join(emptied, key, how="inner")
        .select("other_id", F.lit(True).alias("lost_commit"))
        .distinct()
    )


def _entry_rows(run: Run, kind: str) -> DataFrame:
    rows = tables.read(run.spark, bronze.ENTRY, run.output, run.run_id).filter(
        F.col("kind") == kind
    )
    return rows.withColumn("is_control", F.lit(False)).withColumn(
        "is_transactional", F.coalesce(F.col("is_transactional"), F.lit(False))
    )
