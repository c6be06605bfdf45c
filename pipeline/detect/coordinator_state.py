"""`coordinator_state`: the coordinator's log breaks its own state machine.

Promise: every record follows legally from the one before (Kafka: `TransactionMetadata.completeTransitionTo`,
`TransactionState.validPreviousStates`).

Rule: an illegal transition; a partition set that shrank; an epoch or producer id that may not follow; a state that is
never written, or an Empty that lists partitions; an id in the wrong partition; one producer id held by two ids; a
timeout changed outside InitProducerId; Prepare* that stays although all markers are there
(`prepare_with_all_markers`); an epoch bumped twice (`double_epoch_bump`).

Normal: a step written again after a failed append (`repeated_append`); gaps in history that the
cleaner cut; epochs that
jump under transaction.version 0 and 1 (KAFKA-9666).

Refuted by: a record between the two that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import (
    TRANSACTION_STATE,
    by_label,
    findings,
    in_coordinator,
    on,
    on_record,
    text,
)
from pipeline.replay.alive import STUCK_MS

CODE = "coordinator_state"
NEEDS = ("txn_state",)
FIXED_IN = {
    "double_epoch_bump": "KAFKA-19367 in 4.0.1, 4.1.0",
    "producer_id_shared": "KAFKA-15552 in 3.5.2, 3.6.1, 3.7.0",
    "prepare_with_all_markers": "KAFKA-9777 in 2.6.0; KAFKA-16352 in 3.8.0; KAFKA-17877 in 4.0.0",
    "*": "no defect known",
}

_BROKEN = {
    "illegal_transition": "a state that may not follow the one before",
    "partition_set_shrank": "a listed partition disappeared before the end",
    "epoch_rule": "an epoch or producer id that may not follow",
    "impossible_state_on_disk": "a state that is never written",
    "wrong_partition": "a record stands in a partition that its hash does not belong to",
    "timeout_changed": "its timeout changed outside InitProducerId",
    "double_epoch_bump": "its epoch was raised twice at once",
}


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
    return findings(
        coordinator_step.filter(F.col("violation").isNotNull()),
        code=CODE,
        class_=F.col("violation"),
        severity="major",
        certainty="proven",
        **on_record(
            epoch="producer_epoch", offset="offset", first_ms="append_ms", last_ms="append_ms"
        ),
        title=text(
            "transactional id {transactional_id}: {broken}",
            broken=F.coalesce(by_label(F.col("violation"), _BROKEN), F.col("violation")),
        ),
        explanation="Record at offset {offset} of __transaction_state-{coordinator_partition}: {explanation}.",
        advice=F.when(
            F.col("violation") == "double_epoch_bump",
            F.lit(
                "KAFKA-19367: upgrade to 4.0.1 or 4.1.0. No record is lost; each fence uses up two of 32767 epochs."
            ),
        ).otherwise(
            F.lit(
                "Keep a copy of this partition, compare with its other replicas, and restart the "
                "broker that leads it so that the coordinator loads its state again."
            )
        ),
        refuted_by="a record of the id between the two that is not in the copy",
        evidence=[in_coordinator("offset", "offending record")],
    )


def _shared(shared_producer: DataFrame) -> DataFrame:
    return findings(
        shared_producer,
        code=CODE,
        class_="producer_id_shared",
        severity="major",
        certainty="proven",
        topic=TRANSACTION_STATE,
        **on(partition="coordinator_partition", producer_id="producer_id", transactional_id="one"),
        title="producer id {producer_id} is held by {ids} transactional ids",
        explanation="Producer id {producer_id} was given to {one} and to {other}: their sequences and "
        "transactions mix.",
        advice="Give one of the two applications a new transactional.id: an id keeps its producer id over restarts "
        "until it expires or its epochs end. Brokers before 3.5.2, 3.6.1 and 3.7.0 could give a block of producer ids "
        "twice while they moved from ZooKeeper to KRaft (KAFKA-15552); what was given then stays in use.",
        refuted_by="nothing short of a damaged record: both records are in the log",
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
    last = F.greatest("last_marker_ms", "prepare_ms")
    is_stuck = (F.col("newest_ms") > last + F.lit(STUCK_MS)) & (F.col("settled_ms") >= last)
    return findings(
        rows.filter(is_stuck),
        code=CODE,
        class_="prepare_with_all_markers",
        severity="major",
        certainty="proven",
        **on_record(
            epoch="prepare_epoch",
            offset="prepare_offset",
            first_ms="prepare_ms",
            last_ms="newest_ms",
        ),
        title="transactional id {transactional_id} stays prepared although all markers are written",
        explanation=text(
            "Prepare* stands at offset {prepare_offset}. The same coordinator went on for {waited} ms after the last "
            "marker and wrote no Complete*.",
            waited=F.col("newest_ms") - last,
        ),
        advice="Restart the broker that leads this coordinator partition: it sends the markers again on loading and "
        "writes Complete*.",
        refuted_by="a Complete* record of the id that is not in the copy",
        evidence=[in_coordinator("prepare_offset", "Prepare*")],
    )
