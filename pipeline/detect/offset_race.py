"""`offset_race`: how open the race of KAFKA-17507 stood, and what points to it.

Promise: a transactional offset commit is materialised by its own transaction's marker (KIP-98). In the old group
coordinator a marker's completion ran asynchronously, so that the next transaction of the same producer could be
mixed up with it (KAFKA-17507).

Rule, one class a rung: a marker and the producer's next transactional offset batch within `race_window_ms` under one
leader epoch (`window`: one finding per group and producer with the distribution); a commit stamped before that
marker (`bypass`); a marker behind its transaction's Complete*, so that the next transaction could begin before the
group coordinator had read the end of this one (`early_completion`). A window is not an event: the log is always right,
only the broker's memory was wrong until it read the log again.

Normal: windows of a few milliseconds on any busy group, on immune brokers too.

Refuted by: brokers at 3.9.1, 4.0.0 or later (`--kafka-version`), or the new group coordinator.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, place, text

CODE = "offset_race"
NEEDS = ("offset_commit",)
FIXED_IN = "3.9.1, 4.0.0; KAFKA-17877 in 4.0.0"
_TOPIC = "__consumer_offsets"
_ADVICE = (
    "Upgrade to 3.9.1 or 4.0.0. Where a group seems to have resumed too early or too "
    "late, compare with the committed offsets "
    "of this audit: the log is right, and a restart of the group's coordinator makes the broker read it again."
)


def find(*, race_scope: DataFrame, early_marker: DataFrame, race_window_ms: int) -> DataFrame:
    """Windows by group and producer, and each record or marker that stands on a higher rung."""
    is_window = F.col("race_ms").between(0, race_window_ms - 1)
    rows = race_scope.filter(F.col("is_transactional") & is_window)
    bypassing = race_scope.filter(F.col("is_transactional") & F.col("is_before_marker"))
    return _windows(rows).unionByName(_bypasses(bypassing)).unionByName(_early(early_marker))


def _windows(rows: DataFrame) -> DataFrame:
    by_batch = rows.groupBy("copy", "offsets_partition", "group_id", "producer_id").agg(
        F.countDistinct("record_offset").alias("count"),
        F.min("race_ms").alias("shortest"),
        F.expr("percentile_approx(race_ms, 0.5)").alias("median"),
        F.max("race_ms").alias("longest"),
        F.sum((F.col("race_ms") <= 10).cast("int")).alias("within_10"),
        F.min("append_ms").alias("first_ms"),
        F.max("append_ms").alias("last_ms"),
        F.max("producer_epoch").alias("producer_epoch"),
    )
    return findings(
        by_batch,
        code=CODE,
        class_="window",
        severity="info",
        certainty="proven",
        topic=_TOPIC,
        partition=F.col("offsets_partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("producer_epoch"),
        group_id=F.col("group_id"),
        first_timestamp_ms=F.col("first_ms"),
        last_timestamp_ms=F.col("last_ms"),
        title=text(
            "{} commits of group {} came within {} ms of the previous marker",
            F.col("count"),
            F.col("group_id"),
            F.col("longest"),
        ),
        explanation=text(
            "Producer {} sent {} offset records for group {} shortly after its previous marker: "
            "shortest {} ms, median {} ms, "
            "longest {} ms, {} within 10 ms. On brokers before 3.9.1 this is when KAFKA-17507 can "
            "happen; it does not say that "
            "it did.",
            F.col("producer_id"),
            F.col("count"),
            F.col("group_id"),
            F.col("shortest"),
            F.col("median"),
            F.col("longest"),
            F.col("within_10"),
        ),
        advice=F.lit(_ADVICE),
        refuted_by=F.lit("brokers at 3.9.1, 4.0.0 or later, or the new group coordinator"),
        evidence=[],
    )


def _bypasses(rows: DataFrame) -> DataFrame:
    return findings(
        rows,
        code=CODE,
        class_="bypass",
        severity="major",
        certainty="consistent_with",
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
            "offset of {} on {}-{} was committed before the previous marker",
            F.col("group_id"),
            F.col("topic"),
            F.col("partition"),
        ),
        explanation=text(
            "Record at offset {} commits {} (before: {}), {} ms after the producer's previous marker.",
            F.col("record_offset"),
            F.col("committed_offset"),
            F.col("previous_committed_offset"),
            F.col("race_ms"),
        ),
        advice=F.lit(_ADVICE),
        refuted_by=F.lit("brokers at 3.9.1, 4.0.0 or later"),
        evidence=[
            place(F.lit(_TOPIC), F.col("offsets_partition"), F.col("record_offset"), "commit")
        ],
    )


def _early(rows: DataFrame) -> DataFrame:
    return findings(
        rows,
        code=CODE,
        class_="early_completion",
        severity="major",
        certainty="consistent_with",
        topic=_TOPIC,
        partition=F.col("partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("marker_epoch"),
        transactional_id=F.col("transactional_id"),
        first_offset=F.col("marker_offset"),
        last_offset=F.col("marker_offset"),
        first_timestamp_ms=F.col("marker_ms"),
        last_timestamp_ms=F.col("marker_ms"),
        title=text(
            "offsets of {} were declared complete before their marker (offset {} of {}-{})",
            F.col("transactional_id"),
            F.col("marker_offset"),
            F.lit(_TOPIC),
            F.col("partition"),
        ),
        explanation=text(
            "The coordinator wrote Complete* of the transaction begun at offset {} of __transaction_state-{} before "
            "the marker at offset {} was appended: the producer could commit the next offsets while these were "
            "still pending. The two times are of two brokers.",
            F.col("transaction_offset"),
            F.col("coordinator_partition"),
            F.col("marker_offset"),
        ),
        advice=F.lit(
            "Upgrade to 4.0.0 (KAFKA-17877; before it the new group coordinator could answer a marker too early). "
            "Compare the clocks of the two brokers."
        ),
        refuted_by=F.lit("clocks that differ by more than clock_skew_ms"),
        evidence=[
            place(F.lit(_TOPIC), F.col("partition"), F.col("marker_offset"), "marker"),
            place(
                F.lit("__transaction_state"),
                F.col("coordinator_partition"),
                F.col("transaction_offset"),
                "first record of the transaction",
            ),
        ],
    )
