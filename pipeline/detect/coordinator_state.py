"""`coordinator_state`: the coordinator's log breaks its own state machine.

Promise: every record follows legally from the one before (Kafka: `TransactionMetadata.completeTransitionTo`,
`TransactionState.validPreviousStates`).

Rule: an illegal transition; a partition set that shrank; an epoch or producer id that may not
follow; a state that is never
written; an id in the wrong partition; one producer id held by two ids; a timeout changed outside
InitProducerId; Prepare*
that stays although all markers are there (`prepare_with_all_markers`); an epoch bumped twice (`double_epoch_bump`).

Normal: a step written again after a failed append (`repeated_append`); gaps in history that the
cleaner cut; epochs that
jump under transaction.version 0 and 1 (KAFKA-9666).

Refuted by: a record between the two that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, place, text

CODE = "coordinator_state"
NEEDS = ("txn_state",)
FIXED_IN = "KAFKA-19367 in 4.0.1, 4.1.0; KAFKA-15552 in 3.5.2, 3.6.1, 3.7.0; KAFKA-9777 in 2.6.0; KAFKA-16352 in 3.8.0"

STUCK_MS = 60_000
"""How much longer than the last marker the same coordinator has to go on before a missing Complete* counts."""
_TOPIC = "__transaction_state"


def find(
    *,
    coordinator_step: DataFrame,
    shared_producer: DataFrame,
    transaction_partition: DataFrame,
    coordinator_newest: DataFrame,
) -> DataFrame:
    """One finding an offending record, producer id or transaction."""
    return (
        _steps(coordinator_step)
        .unionByName(_shared(shared_producer))
        .unionByName(_stuck(transaction_partition, coordinator_newest))
    )


def _steps(coordinator_step: DataFrame) -> DataFrame:
    rows = coordinator_step.filter(F.col("violation").isNotNull())
    return findings(
        rows,
        code=CODE,
        class_=F.col("violation"),
        severity="major",
        certainty="proven",
        topic=_TOPIC,
        partition=F.col("coordinator_partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("producer_epoch"),
        transactional_id=F.col("transactional_id"),
        first_offset=F.col("offset"),
        last_offset=F.col("offset"),
        first_timestamp_ms=F.col("append_ms"),
        last_timestamp_ms=F.col("append_ms"),
        title=text("{} of transactional id {}", F.col("violation"), F.col("transactional_id")),
        explanation=text(
            "Record at offset {} of __transaction_state-{}: {}.",
            F.col("offset"),
            F.col("coordinator_partition"),
            F.col("explanation"),
        ),
        advice=F.when(
            F.col("violation") == "double_epoch_bump",
            F.lit("KAFKA-19367: upgrade to 4.0.1 or 4.1.0; harmless until the epoch nears 32767."),
        ).otherwise(
            F.lit(
                "Keep a copy of this partition, compare with its other replicas, and restart the "
                "broker that leads it so that "
                "the coordinator loads its state again."
            )
        ),
        refuted_by=F.lit("a record of the id between the two that is not in the copy"),
        evidence=[
            place(
                F.lit(_TOPIC), F.col("coordinator_partition"), F.col("offset"), "offending record"
            )
        ],
    )


def _shared(shared_producer: DataFrame) -> DataFrame:
    return findings(
        shared_producer,
        code=CODE,
        class_="producer_id_shared",
        severity="major",
        certainty="proven",
        topic=_TOPIC,
        partition=F.col("coordinator_partition"),
        producer_id=F.col("producer_id"),
        transactional_id=F.col("one"),
        title=text(
            "producer id {} is held by {} transactional ids", F.col("producer_id"), F.col("ids")
        ),
        explanation=text(
            "Producer id {} was given to {} and to {}: their sequences and transactions mix.",
            F.col("producer_id"),
            F.col("one"),
            F.col("other"),
        ),
        advice=F.lit(
            "KAFKA-15552: duplicate id blocks during the ZooKeeper migration; restart the producers and upgrade."
        ),
        refuted_by=F.lit("nothing short of a damaged record: both records are in the log"),
        evidence=[],
    )


def _stuck(transaction_partition: DataFrame, coordinator_newest: DataFrame) -> DataFrame:
    key = ["copy", "coordinator_partition", "transactional_id", "transaction_offset"]
    prepared = transaction_partition.filter(F.col("state").isin(2, 3))
    grouped = prepared.groupBy(*key).agg(
        F.min((F.col("status") == "present").cast("int")).alias("all_present"),
        F.max("marker_ms").alias("last_marker_ms"),
        F.max("prepare_ms").alias("prepare_ms"),
        F.max("prepare_offset").alias("prepare_offset"),
        F.max("producer_id").alias("producer_id"),
        F.max("prepare_epoch").alias("prepare_epoch"),
        F.max("prepare_leader_epoch").alias("leader_epoch"),
    )
    rows = grouped.filter(F.col("all_present") == 1).join(
        F.broadcast(coordinator_newest),
        ["copy", "coordinator_partition", "leader_epoch"],
        how="inner",
    )
    is_stuck = F.col("newest_ms") > F.greatest("last_marker_ms", "prepare_ms") + F.lit(STUCK_MS)
    return findings(
        rows.filter(is_stuck),
        code=CODE,
        class_="prepare_with_all_markers",
        severity="major",
        certainty="proven",
        topic=_TOPIC,
        partition=F.col("coordinator_partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("prepare_epoch"),
        transactional_id=F.col("transactional_id"),
        first_offset=F.col("prepare_offset"),
        last_offset=F.col("prepare_offset"),
        first_timestamp_ms=F.col("prepare_ms"),
        last_timestamp_ms=F.col("newest_ms"),
        title=text(
            "transactional id {} stays prepared although all markers are written",
            F.col("transactional_id"),
        ),
        explanation=text(
            "Prepare* at offset {}; the last marker was written at {} ms, the same coordinator "
            "went on until {} ms and wrote no "
            "Complete*.",
            F.col("prepare_offset"),
            F.col("last_marker_ms"),
            F.col("newest_ms"),
        ),
        advice=F.lit(
            "Restart the broker that leads this coordinator partition. Fixed causes: KAFKA-9777 "
            "in 2.6.0, KAFKA-16352 in "
            "3.8.0, KAFKA-17877 in 4.0.0."
        ),
        refuted_by=F.lit("a Complete* record of the id that is not in the copy"),
        evidence=[
            place(
                F.lit(_TOPIC), F.col("coordinator_partition"), F.col("prepare_offset"), "Prepare*"
            )
        ],
    )
