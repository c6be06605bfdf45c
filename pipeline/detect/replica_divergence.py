"""`replica_divergence`: two replicas of one partition hold different histories.

Promise: what lies below the high watermark is the same on every replica and is never lost (Kafka replication protocol,
KIP-101, KIP-279).

Rule: the same offset with another CRC or leader epoch (`same_offset_other_bytes`), or a tail that
the replica of the newer
leader epoch does not have (`lost_tail`), at or above every replica's cleaner offset. Critical
where the offset lies below the
high watermark of the replica with the older leader epoch, or its tail was acknowledged otherwise.

Normal: a follower that lags; a tail above the high watermark that a clean election truncated
(`uncommitted_tail`, info).

Refuted by: a copy of the older replica that was taken before it truncated its tail.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, place, text

CODE = "replica_divergence"
NEEDS = ("replica",)
FIXED_IN = "unclean.leader.election.enable=false; KAFKA-17076 in 4.0.0"


def find(*, divergence: DataFrame) -> DataFrame:
    """One finding a pair of replicas.

    Args:
        divergence: copy, topic, partition, broker_id, other_broker_id, class, offset, last_offset,
        high_watermark, is_acknowledged,
            older_epoch, newer_epoch.
    """
    where = (F.col("topic"), F.col("partition"))
    is_lost = F.col("is_acknowledged")
    return findings(
        divergence,
        code=CODE,
        class_=F.when(is_lost, F.col("class")).otherwise(F.lit("uncommitted_tail")),
        severity=F.when(is_lost, F.lit("critical")).otherwise(F.lit("info")),
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        first_offset=F.col("offset"),
        last_offset=F.col("last_offset"),
        title=text(
            "replicas {} and {} of {}-{} differ from offset {} on",
            F.col("broker_id"),
            F.col("other_broker_id"),
            *where,
            F.col("offset"),
        ),
        explanation=text(
            "Broker {} (leader epoch {}) and broker {} (leader epoch {}) hold different batches "
            "from offset {} on; the older "
            "replica's high watermark is {}.",
            F.col("broker_id"),
            F.col("newer_epoch"),
            F.col("other_broker_id"),
            F.col("older_epoch"),
            F.col("offset"),
            F.col("high_watermark"),
        ),
        advice=F.when(
            is_lost,
            F.lit(
                "Keep the older replica's files: they hold acknowledged records that the leader lost. Turn "
                "unclean.leader.election.enable off and write the lost records again."
            ),
        ).otherwise(F.lit("None: what was not replicated was not acknowledged under acks=all.")),
        refuted_by=F.lit("a copy in which the older replica had been truncated before"),
        evidence=[place(*where, F.col("offset"), "first offset that differs")],
    )
