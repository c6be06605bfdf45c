"""`zombie_write`: data or a marker of an epoch or coordinator that had been fenced.

Promise: once a newer instance has called InitProducerId, nothing of an older epoch enters the log
(KIP-98, KIP-588); once
a newer coordinator wrote a marker, none of an older one follows (Kafka: `ProducerAppendInfo`).

Rule, by order alone: data below an epoch already seen for that producer in the partition, markers included
(`epoch_regressed`); two epochs in one open run, a run that the marker of a later epoch's
transaction closed, or an owner that moved
on while no transaction of the old epoch is left (`after_fence`); a marker whose coordinator epoch goes back
(`stale_coordinator`).

Normal: ABORT with epoch + 1 right after data (the fence itself); any CreateTime; a new producer id that starts at 0.

Refuted by: a marker between the two epochs that was removed from the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, place, text

CODE = "zombie_write"
NEEDS = ("batch",)
FIXED_IN = "KAFKA-9144: 2.3.2, 2.4.1, 2.5.0; verification: 3.6; transaction.version 2: 4.0"
_ADVICE = (
    "Find the old instance and stop it; treat its records at these offsets as not written by the application. Unique "
    "transactional ids per instance and transaction.version 2 (4.0) close the hole."
)


def find(*, partition_txn: DataFrame, sequence_event: DataFrame) -> DataFrame:
    """One finding an offending batch or marker."""
    regressed = sequence_event.filter(F.col("kind") == "epoch_regressed")
    known = regressed.select("replica_id", "producer_id", F.col("offset").alias("first_offset"))
    fenced = partition_txn.filter(F.col("zombie").isNotNull()).join(
        F.broadcast(known), ["replica_id", "producer_id", "first_offset"], how="left_anti"
    )
    return _regressed(regressed).unionByName(_fenced(fenced)).unionByName(_stale(partition_txn))


def _regressed(rows: DataFrame) -> DataFrame:
    where = (F.col("topic"), F.col("partition"))
    return findings(
        rows,
        code=CODE,
        class_="epoch_regressed",
        severity="critical",
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("producer_epoch"),
        first_offset=F.col("offset"),
        last_offset=F.col("last_offset"),
        first_timestamp_ms=F.col("timestamp_ms"),
        last_timestamp_ms=F.col("timestamp_ms"),
        title=text(
            "epoch {} after epoch {} in {}-{}",
            F.col("producer_epoch"),
            F.col("previous_epoch"),
            *where,
        ),
        explanation=text(
            "Producer {} wrote offsets {}..{} with epoch {} although epoch {} had been seen in this partition before.",
            F.col("producer_id"),
            F.col("offset"),
            F.col("last_offset"),
            F.col("producer_epoch"),
            F.col("previous_epoch"),
        ),
        advice=F.lit(_ADVICE),
        refuted_by=F.lit("nothing short of a damaged header: the order of epochs is in the log"),
        evidence=[
            place(*where, F.col("previous_offset"), "the producer's batch before it"),
            place(*where, F.col("offset"), "write of the older epoch"),
        ],
    )


def _fenced(rows: DataFrame) -> DataFrame:
    where = (F.col("topic"), F.col("partition"))
    return findings(
        rows,
        code=CODE,
        class_=F.col("zombie"),
        severity="critical",
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("min_epoch"),
        transactional_id=F.col("transactional_id"),
        first_offset=F.col("first_offset"),
        last_offset=F.col("last_offset"),
        first_timestamp_ms=F.col("before_ms"),
        last_timestamp_ms=F.col("marker_ms"),
        title=text("epoch {} wrote to {}-{} after it was fenced", F.col("min_epoch"), *where),
        explanation=text(
            "Producer {} wrote from offset {} on with epoch {}, in a run that reaches epoch {} "
            "and whose marker at offset {} "
            "belongs to epoch {}: the newer instance had been started before.",
            F.col("producer_id"),
            F.col("first_offset"),
            F.col("min_epoch"),
            F.col("max_epoch"),
            F.col("marker_offset"),
            F.coalesce(F.col("transaction_epoch"), F.col("marker_epoch")),
        ),
        advice=F.lit(_ADVICE),
        refuted_by=F.lit("a marker between the two epochs that is missing from the copy"),
        evidence=[
            place(*where, F.col("first_offset"), "write of the fenced epoch"),
            place(*where, F.col("marker_offset"), "marker that closed the run"),
        ],
    )


def _stale(partition_txn: DataFrame) -> DataFrame:
    is_back = F.col("marker_coordinator_epoch") < F.col("coordinator_epoch_before")
    is_operator = F.col("alignment").isin("manual_abort", "context")
    rows = partition_txn.filter(is_back & ~is_operator)
    where = (F.col("topic"), F.col("partition"))
    return findings(
        rows,
        code=CODE,
        class_="stale_coordinator",
        severity="critical",
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("marker_epoch"),
        transactional_id=F.col("transactional_id"),
        first_offset=F.col("marker_offset"),
        last_offset=F.col("marker_offset"),
        first_timestamp_ms=F.col("marker_ms"),
        last_timestamp_ms=F.col("marker_ms"),
        title=text("marker of an older coordinator in {}-{}", *where),
        explanation=text(
            "The marker at offset {} carries coordinator epoch {} although {} had been seen for producer {}.",
            F.col("marker_offset"),
            F.col("marker_coordinator_epoch"),
            F.col("coordinator_epoch_before"),
            F.col("producer_id"),
        ),
        advice=F.lit(
            "A coordinator that had lost its partition still wrote markers: check the brokers' "
            "clocks and leader changes."
        ),
        refuted_by=F.lit("nothing short of a damaged marker"),
        evidence=[place(*where, F.col("marker_offset"), "marker of the older coordinator")],
    )
