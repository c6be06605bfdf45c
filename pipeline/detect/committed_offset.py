"""`committed_offset`: what a group had committed, and where that went wrong.

Promise: a group's committed offset moves forward with what it has processed (KIP-98 for transactional commits; Kafka:
`OffsetMetadataManager`).

Rule: a materialised commit below the one that it replaces (`regressed`); offsets that wait for a transaction's end
(`blocked`: OffsetFetch with requireStable fails), as severe as that transaction; plain and transactional commits in
turn (`mixed`); a committed offset past every replica's log end in a copy of one instant (`beyond_end`).

Normal: a plain commit that rewinds (a reset tool does that: info); a topic deleted and made again, whose offsets were
removed in between; a pending commit that a later plain one overtook.

Refuted by: a tombstone between the two commits that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import CONSUMER_OFFSETS, findings, in_offsets, on, on_commit, text

CODE = "committed_offset"
NEEDS = ("offset_commit",)
FIXED_IN = "no defect by itself"
_LATE = "owner_not_copied_late"
"""Judgement of a run whose owner is not in the copy and whose deadline is long over (hanging_transaction: major)."""


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
        **on_commit(),
        title="{group_id} went back on {topic}-{partition}: {previous_committed_offset} -> {committed_offset}",
        explanation="Group {group_id} had committed {previous_committed_offset} for {topic}-{partition}; the "
        "record at offset {record_offset} of __consumer_offsets-{offsets_partition} committed "
        "{committed_offset}.",
        advice="Ask the application whether it meant to go back. If a consumer started from the lower offset, what "
        "lies between the two was processed twice.",
        refuted_by="a tombstone between the two commits that is not in the copy",
        evidence=[
            in_offsets("previous_record_offset", "higher commit"),
            in_offsets("record_offset", "lower commit"),
        ],
    )


_HANGS = "End the transaction as the finding hanging_transaction of this producer in __consumer_offsets says."
_LEGAL = (
    "Nothing yet: nothing shows that the transaction is over its time. Its coordinator ends it at its timeout "
    "(transaction.timeout.ms); audit a later copy."
)


def _blocked(committed_offset: DataFrame, partition_txn: DataFrame) -> DataFrame:
    pending = committed_offset.filter(F.col("outcome") == "pending")
    is_run = (F.col("topic") == CONSUMER_OFFSETS) & F.col("is_open")
    runs = partition_txn.filter(is_run).select(
        "copy",
        F.col("partition").alias("offsets_partition"),
        "producer_id",
        (F.col("judgement") == _LATE).alias("is_late"),
        F.when(F.col("judgement") == _LATE, F.lit("owner_not_copied"))
        .otherwise(F.col("judgement"))
        .alias("judgement"),
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
        severity=F.when(is_hanging, F.lit("critical"))
        .when(F.col("is_late"), F.lit("major"))
        .otherwise(F.lit("info")),
        certainty=F.when(F.col("is_late"), F.lit("consistent_with")).otherwise(F.lit("proven")),
        **on_commit(),
        **on(transactional_id="transactional_id"),
        title="{group_id} cannot fetch {topic}-{partition}: offset {committed_offset} is pending",
        explanation=text(
            "Producer {producer_id} committed offset {committed_offset} for group {group_id} inside a transaction "
            "that is still open{hangs}. OffsetFetch with requireStable answers UNSTABLE_OFFSET_COMMIT until it ends.",
            hangs=F.when(is_hanging, text(" and will not end by itself ({judgement})")).otherwise(
                F.lit("")
            ),
        ),
        advice=F.when(is_hanging | F.col("is_late"), F.lit(_HANGS)).otherwise(F.lit(_LEGAL)),
        refuted_by="the marker, in a file that was copied too early",
        evidence=[in_offsets("record_offset", "pending commit")],
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
        **on(
            topic="topic", partition="partition", group_id="group_id", first_offset="record_offset"
        ),
        title="{group_id} commits {topic}-{partition} with and without transactions",
        explanation="Plain and transactional commits took turns {turns:time|times}, first at offset {record_offset}.",
        advice="Commit the offsets of a partition in one way only, inside transactions or without them: a plain commit "
        "overtakes a pending one.",
        refuted_by="nothing: both kinds of record are in the log",
        evidence=[in_offsets("record_offset", "first turn")],
    )


def _beyond_end(last_committed: DataFrame) -> DataFrame:
    return findings(
        last_committed,
        code=CODE,
        class_="beyond_end",
        severity="minor",
        certainty="proven",
        **on(
            topic="topic", partition="partition", group_id="group_id", first_offset="record_offset"
        ),
        title="{group_id} committed {committed_offset} on {topic}-{partition}, which ends at {log_end_offset}",
        explanation="The committed offset {committed_offset} lies past the log end {log_end_offset} of every "
        "replica: the log lost its tail or was made again.",
        advice="Look for an unclean leader election or a deleted topic; reset the group before it reads again.",
        refuted_by="a replica with a later end that is not in the copy",
        evidence=[in_offsets("record_offset", "commit")],
    )
