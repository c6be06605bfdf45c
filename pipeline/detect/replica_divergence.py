"""`replica_divergence`: two replicas of one partition hold different histories.

Promise: what lies below the high watermark is the same on every replica and is never lost (Kafka replication protocol,
KIP-101, KIP-279).

Rule: the same offset with another CRC or leader epoch (`same_offset_other_bytes`), or a tail that
the replica of the newer
leader epoch does not have (`lost_tail`), at or above every replica's cleaner offset. Critical
where the offset lies below the
high watermark of the replica with the older leader epoch, or its tail was acknowledged otherwise.

Normal: a follower that lags; a tail above the high watermark that a clean election truncated
(`uncommitted_tail`, info). Without topic ids (brokers before 2.8), a directory that was left of a deleted topic of the
same name (`other_incarnation`, info): no batch is in both replicas, and their leader epochs do not follow each other.

Refuted by: a copy of the older replica that was taken before it truncated its tail.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, here, on, text

CODE = "replica_divergence"
NEEDS = ("replica",)
FIXED_IN = {
    "lost_tail": "unclean.leader.election.enable=false; KAFKA-17076 in 4.0.0",
    "*": "unclean.leader.election.enable=false",
}

_STALE = (
    "Nothing shows that these directories ever held the same topic. If it was deleted and made anew, take the old "
    "directory out of the copy, and out of the broker's log.dirs; if not, the older replica's files hold lost records."
)


def find(*, divergence: DataFrame) -> DataFrame:
    """One finding a pair of replicas.

    Args:
        divergence: copy, topic, partition, broker_id, other_broker_id, class, offset, last_offset,
        high_watermark, is_acknowledged,
            older_epoch, newer_epoch, is_same_topic.
    """
    is_other = ~F.col("is_same_topic")
    is_lost = F.col("is_acknowledged") & ~is_other
    return findings(
        divergence,
        code=CODE,
        class_=F.when(is_other, F.lit("other_incarnation"))
        .when(is_lost, F.col("class"))
        .otherwise(F.lit("uncommitted_tail")),
        severity=F.when(is_lost, F.lit("critical")).otherwise(F.lit("info")),
        certainty=F.when(is_other, F.lit("consistent_with")).otherwise(F.lit("proven")),
        **on(
            topic="topic", partition="partition", first_offset="offset", last_offset="last_offset"
        ),
        title="replicas {broker_id} and {other_broker_id} of {topic}-{partition} differ from offset {offset} on",
        explanation="Broker {broker_id} (leader epoch {newer_epoch}) and broker {other_broker_id} (leader "
        "epoch {older_epoch}) hold different batches from offset {offset} on; the older replica's high "
        "watermark is {high_watermark}.",
        advice=F.when(
            is_lost,
            text(
                "Save {topic}-{partition} of broker {other_broker_id} before that broker runs again: as a follower it "
                "truncates what differs. These files hold acknowledged records that the leader lost: write them again "
                "from there, and set unclean.leader.election.enable=false."
            ),
        )
        .when(is_other, F.lit(_STALE))
        .otherwise(
            F.lit("Nothing to do: what was not replicated was not acknowledged under acks=all.")
        ),
        refuted_by="a copy in which the older replica had been truncated before",
        evidence=[here("offset", "first offset that differs")],
    )
