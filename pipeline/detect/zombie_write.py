"""`zombie_write`: data or a marker of an epoch or coordinator that had been fenced.

Promise: once a newer instance has called InitProducerId, nothing of an older epoch enters the log
(KIP-98, KIP-588); once
a newer coordinator wrote a marker, none of an older one follows (Kafka: `ProducerAppendInfo`).

Rule, by order alone: data below an epoch already seen for that producer in the partition, markers included
(`epoch_regressed`); two epochs in one open run, a run that the marker of a later epoch's
transaction closed, or an owner that moved
on while no transaction of the old epoch is left (`after_fence`); a marker whose coordinator epoch goes back
(`stale_coordinator`).

Normal: ABORT with epoch + 1 right after data (the fence itself); any CreateTime; a new producer id that starts at 0;
data whose own transaction never got its marker here (`marker_audit`), before those of a later epoch.

Refuted by: a marker between the two epochs that was removed from the copy.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, here, on_batch, on_marker, on_run, text

CODE = "zombie_write"
NEEDS = ("batch",)
FIXED_IN = {
    "epoch_regressed": "KAFKA-9144 in 2.4.1, 2.5.0; transaction.version 2 in 4.0",
    "after_fence": "KAFKA-9144 in 2.4.1, 2.5.0; KIP-890: verification in 3.6, transaction.version 2 in 4.0",
    "stale_coordinator": "KAFKA-9144 in 2.4.1, 2.5.0",
}
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
    return findings(
        rows,
        code=CODE,
        class_="epoch_regressed",
        severity="critical",
        certainty="proven",
        **on_batch(),
        title="epoch {producer_epoch} after epoch {previous_epoch} in {topic}-{partition}",
        explanation="Producer {producer_id} wrote offsets {offset}..{last_offset} with epoch {producer_epoch} "
        "although epoch {previous_epoch} had been seen in this partition before.",
        advice=_ADVICE,
        refuted_by="nothing short of a damaged header: the order of epochs is in the log",
        evidence=[
            here("previous_offset", "the producer's batch before it"),
            here("offset", "write of the older epoch"),
        ],
    )


def _fenced(rows: DataFrame) -> DataFrame:
    return findings(
        rows,
        code=CODE,
        class_=F.col("zombie"),
        severity="critical",
        certainty="proven",
        **on_run(epoch="min_epoch", end_ms="marker_ms"),
        title="epoch {min_epoch} wrote to {topic}-{partition} after it was fenced",
        explanation=text(
            "Producer {producer_id} wrote from offset {first_offset} on with epoch {min_epoch}, {how}: the newer "
            "instance had been started before.",
            how=_how(),
        ),
        advice=_ADVICE,
        refuted_by="a marker between the two epochs that is missing from the copy",
        evidence=[
            here("first_offset", "write of the fenced epoch"),
            here("marker_offset", "marker that closed the run"),
        ],
    )


def _how() -> Column:
    """Why a run is of a fenced epoch: its marker, its own epochs, or what its owner went on to."""
    closed = text(
        "in a run that reaches epoch {max_epoch} and whose marker at offset {marker_offset} belongs to epoch "
        "{ending_epoch}",
        ending_epoch=F.coalesce(F.col("transaction_epoch"), F.col("marker_epoch")),
    )
    mixed = text("in an open run that reaches epoch {max_epoch}")
    left = text("and no transaction of that epoch is left ({reason})")
    return (
        F.when(F.col("marker_offset").isNotNull(), closed)
        .when(F.col("min_epoch") < F.col("max_epoch"), mixed)
        .otherwise(left)
    )


def _stale(partition_txn: DataFrame) -> DataFrame:
    is_back = F.col("marker_coordinator_epoch") < F.col("coordinator_epoch_before")
    is_operator = F.col("alignment").isin("manual_abort", "context")
    return findings(
        partition_txn.filter(is_back & ~is_operator),
        code=CODE,
        class_="stale_coordinator",
        severity="critical",
        certainty="proven",
        **on_marker(),
        title="marker of an older coordinator in {topic}-{partition}",
        explanation="The marker at offset {marker_offset} carries coordinator epoch "
        "{marker_coordinator_epoch} although {coordinator_epoch_before} had been seen for producer "
        "{producer_id}.",
        advice="A coordinator that had lost its partition still wrote markers: check the brokers' "
        "clocks and leader changes.",
        refuted_by="nothing short of a damaged marker",
        evidence=[here("marker_offset", "marker of the older coordinator")],
    )
