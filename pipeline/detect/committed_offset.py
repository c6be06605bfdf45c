"""`committed_offset`: what a group had committed, and where that went wrong.

Promise: a group's committed offset moves forward with what it has processed (KIP-98 for transactional commits; Kafka:
`OffsetMetadataManager`).

Rule: a materialised commit below the one that it replaces (`regressed`); offsets that wait for a transaction's end
(`blocked`: OffsetFetch with requireStable fails); plain and transactional commits in turn (`mixed`); a committed offset
past every replica's log end in a copy of one instant (`beyond_end`).

Normal: a plain commit that rewinds (a reset tool does that: info); a topic deleted and made again, whose offsets were
removed in between; a pending commit that a later plain one overtook.

Refuted by: a tombstone between the two commits that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, place, text

CODE = "committed_offset"
NEEDS = ("offset_commit",)
FIXED_IN = "no defect by itself"
_TOPIC = "__consumer_offsets"


def find(
    *, committed_offset: DataFrame, partition_txn: DataFrame, last_committed: DataFrame
) -> DataFrame:
    """One finding a record, or a group and partition for `mixed`."""
    return (
        _regressed(committed_offset)
        .unionByName(_blocked(committed_offset, partition_txn))
        .unionByName(_mixed(committed_offset))
        .unionByName(_beyond_end(last_committed))
    )


def _regressed(committed_offset: DataFrame) -> DataFrame:
    is_lower = F.col("committed_offset") < F.col("previous_committed_offset")
    rows = committed_offset.filter((F.col("outcome") == "materialised") & is_lower)
    return findings(
        rows,
        code=CODE,
        class_="regressed",
        severity=F.when(F.col("is_transactional"), F.lit("minor")).otherwise(F.lit("info")),
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("producer_epoch"),
        group_id=F.col("group_id"),
        first_offset=F.col("record_offset"),
        last_offset=F.col("record_offset"),
        first_timestamp_ms=F.col("commit_timestamp_ms"),
        last_timestamp_ms=F.col("append_ms"),
        title=text(
            "{} went back on {}-{}: {} -> {}",
            F.col("group_id"),
            F.col("topic"),
            F.col("partition"),
            F.col("previous_committed_offset"),
            F.col("committed_offset"),
        ),
        explanation=text(
            "Group {} had committed {} for {}-{}; the record at offset {} of __consumer_offsets-{} committed {}.",
            F.col("group_id"),
            F.col("previous_committed_offset"),
            F.col("topic"),
            F.col("partition"),
            F.col("record_offset"),
            F.col("offsets_partition"),
            F.col("committed_offset"),
        ),
        advice=F.lit(
            "Ask the application whether it meant to go back; what lies between the two was processed twice."
        ),
        refuted_by=F.lit("a tombstone between the two commits that is not in the copy"),
        evidence=[
            place(
                F.lit(_TOPIC),
                F.col("offsets_partition"),
                F.col("previous_record_offset"),
                "higher commit",
            ),
            place(
                F.lit(_TOPIC), F.col("offsets_partition"), F.col("record_offset"), "lower commit"
            ),
        ],
    )


def _blocked(committed_offset: DataFrame, partition_txn: DataFrame) -> DataFrame:
    pending = committed_offset.filter(F.col("outcome") == "pending")
    runs = partition_txn.filter((F.col("topic") == _TOPIC) & F.col("is_open")).select(
        "copy",
        F.col("partition").alias("offsets_partition"),
        "producer_id",
        "judgement",
        "transactional_id",
    )
    rows = pending.join(F.broadcast(runs), ["copy", "offsets_partition", "producer_id"], how="left")
    is_hanging = F.col("judgement").isin(
        "orphan_producer", "not_in_transaction", "epoch_mismatch", "prepare_stuck", "past_deadline"
    )
    return findings(
        rows,
        code=CODE,
        class_="blocked",
        severity=F.when(is_hanging, F.lit("critical")).otherwise(F.lit("info")),
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("producer_epoch"),
        transactional_id=F.col("transactional_id"),
        group_id=F.col("group_id"),
        first_offset=F.col("record_offset"),
        last_offset=F.col("record_offset"),
        first_timestamp_ms=F.col("commit_timestamp_ms"),
        last_timestamp_ms=F.col("append_ms"),
        title=text(
            "{} cannot fetch {}-{}: offset {} is pending",
            F.col("group_id"),
            F.col("topic"),
            F.col("partition"),
            F.col("committed_offset"),
        ),
        explanation=text(
            "Producer {} committed offset {} for group {} inside a transaction that is still open "
            "({}). OffsetFetch with "
            "requireStable answers UNSTABLE_OFFSET_COMMIT until it ends.",
            F.col("producer_id"),
            F.col("committed_offset"),
            F.col("group_id"),
            F.col("judgement"),
        ),
        advice=F.lit(
            "See the hanging_transaction of this producer in __consumer_offsets; an open one ends by itself."
        ),
        refuted_by=F.lit("the marker, in a file that was copied too early"),
        evidence=[
            place(
                F.lit(_TOPIC), F.col("offsets_partition"), F.col("record_offset"), "pending commit"
            )
        ],
    )


def _mixed(committed_offset: DataFrame) -> DataFrame:
    is_turn = F.col("is_transactional") != F.col("previous_is_transactional")
    rows = (
        committed_offset.filter((F.col("outcome") == "materialised") & is_turn)
        .groupBy("copy", "group_id", "topic", "partition")
        .agg(
            F.count(F.lit(1)).alias("turns"),
            F.min("record_offset").alias("record_offset"),
            F.min("offsets_partition").alias("offsets_partition"),
        )
    )
    return findings(
        rows,
        code=CODE,
        class_="mixed",
        severity="info",
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        group_id=F.col("group_id"),
        first_offset=F.col("record_offset"),
        title=text(
            "{} commits {}-{} with and without transactions",
            F.col("group_id"),
            F.col("topic"),
            F.col("partition"),
        ),
        explanation=text(
            "Plain and transactional commits took turns {} times, first at offset {}.",
            F.col("turns"),
            F.col("record_offset"),
        ),
        advice=F.lit(
            "One of the two ways should commit a partition; a plain commit overtakes a pending one."
        ),
        refuted_by=F.lit("nothing: both kinds of record are in the log"),
        evidence=[
            place(F.lit(_TOPIC), F.col("offsets_partition"), F.col("record_offset"), "first turn")
        ],
    )


def _beyond_end(last_committed: DataFrame) -> DataFrame:
    return findings(
        last_committed,
        code=CODE,
        class_="beyond_end",
        severity="minor",
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        group_id=F.col("group_id"),
        first_offset=F.col("record_offset"),
        title=text(
            "{} committed {} on {}-{}, which ends at {}",
            F.col("group_id"),
            F.col("committed_offset"),
            F.col("topic"),
            F.col("partition"),
            F.col("log_end_offset"),
        ),
        explanation=text(
            "The committed offset {} lies past the log end {} of every replica: the log lost its "
            "tail or was made again.",
            F.col("committed_offset"),
            F.col("log_end_offset"),
        ),
        advice=F.lit(
            "Look for an unclean leader election or a deleted topic; reset the group before it reads again."
        ),
        refuted_by=F.lit("a replica with a later end that is not in the copy"),
        evidence=[
            place(F.lit(_TOPIC), F.col("offsets_partition"), F.col("record_offset"), "commit")
        ],
    )
