"""`offset_race`: how open the race of KAFKA-17507 stood, and what points to it.

Promise: a transactional offset commit is materialised by its own transaction's marker (KIP-98). In the old group
coordinator a marker's completion ran asynchronously, so that the next transaction of the same producer could be
mixed up with it (KAFKA-17507).

Rule, one class a rung: a marker and the producer's next transactional offset batch within `race_window_ms` under one
leader epoch (`window`: one finding per group and producer with the distribution); a commit stamped before that
marker (`bypass`); a marker behind its transaction's Complete*, so that the next transaction could begin before the
group coordinator had read the end of this one (`early_completion`); a commit that goes back behind one that stood in
a window, with a new generation of the group between the two, under the same leader (`regression`: a consumer that was
answered the stale offset leaves this) or under a later one that had read the log again (`healed`). A window is not
an event: the log is always right, only the broker's memory was wrong until it read the log again.

Normal: windows of a few milliseconds on any busy group, on immune brokers too; a client that seeks back leaves the
same records as a stale answer does.

Refuted by: brokers at 3.9.1, 4.0.0 or later (`--kafka-version`), or the new group coordinator.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import (
    CONSUMER_OFFSETS,
    findings,
    in_coordinator,
    in_offsets,
    on,
    on_commit,
    on_marker,
)

CODE = "offset_race"
NEEDS = ("offset_commit",)
FIXED_IN = {
    "early_completion": "KAFKA-17877 in 4.0.0",
    "*": "KAFKA-17507 in 3.9.1, 4.0.0",
}
_ADVICE = (
    "Upgrade to 3.9.1 or 4.0.0 where the brokers are older. Where a group seems to have resumed too early or too "
    "late, compare with the committed offsets "
    "of this audit: the log is right, and a restart of the group's coordinator makes the broker read it again."
)


def find(
    *,
    race_scope: DataFrame,
    early_marker: DataFrame,
    rewound: DataFrame,
    race_window_ms: int,
) -> DataFrame:
    """Windows by group and producer, and each record or marker that stands on a higher rung."""
    is_window = F.col("race_ms").between(0, race_window_ms - 1)
    rows = race_scope.filter(F.col("is_transactional") & is_window)
    bypassing = race_scope.filter(F.col("is_transactional") & F.col("is_before_marker"))
    return (
        _windows(rows)
        .unionByName(_bypasses(bypassing))
        .unionByName(_early(early_marker))
        .unionByName(_regressions(rows, rewound))
    )


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
        topic=CONSUMER_OFFSETS,
        **on(
            partition="offsets_partition",
            producer_id="producer_id",
            producer_epoch="producer_epoch",
            group_id="group_id",
            first_timestamp_ms="first_ms",
            last_timestamp_ms="last_ms",
        ),
        title="{count:commit|commits} of group {group_id} came within {longest} ms of the previous marker",
        explanation="Producer {producer_id} sent {count:offset record|offset records} for group {group_id} "
        "shortly after its previous marker: shortest {shortest} ms, median {median} ms, longest {longest} ms, "
        "{within_10} within 10 ms. On brokers before 3.9.1 this is when KAFKA-17507 can happen; it does "
        "not say that it did.",
        advice=_ADVICE,
        refuted_by="brokers at 3.9.1, 4.0.0 or later, or the new group coordinator",
        evidence=[],
    )


def _bypasses(rows: DataFrame) -> DataFrame:
    return findings(
        rows,
        code=CODE,
        class_="bypass",
        severity="major",
        certainty="consistent_with",
        **on_commit(),
        title="offset of {group_id} on {topic}-{partition} was committed before the previous marker",
        explanation="Record at offset {record_offset} commits {committed_offset} (before: "
        "{previous_committed_offset}), {race_ms} ms after the producer's previous marker.",
        advice=_ADVICE,
        refuted_by="brokers at 3.9.1, 4.0.0 or later",
        evidence=[in_offsets("record_offset", "commit")],
    )


def _early(rows: DataFrame) -> DataFrame:
    return findings(
        rows,
        code=CODE,
        class_="early_completion",
        severity="major",
        certainty="consistent_with",
        **(on_marker() | {"topic": F.lit(CONSUMER_OFFSETS)}),
        title="offsets of {transactional_id} were declared complete before their marker (offset "
        "{marker_offset} of __consumer_offsets-{partition})",
        explanation="The coordinator wrote Complete* of the transaction begun at offset {transaction_offset} "
        "of __transaction_state-{coordinator_partition} before the marker at offset {marker_offset} was "
        "appended: the producer could commit the next offsets while these were still pending. The two "
        "times are of two brokers.",
        advice="Upgrade to 4.0.0 (KAFKA-17877; before it the new group coordinator could answer a marker "
        "too early). Compare the clocks of the two brokers.",
        refuted_by="clocks that differ by more than clock_skew_ms",
        evidence=[
            in_offsets("marker_offset", "marker", partition="partition"),
            in_coordinator("transaction_offset", "first record of the transaction"),
        ],
    )


def _regressions(in_window: DataFrame, rewound: DataFrame) -> DataFrame:
    higher = in_window.select(
        "copy",
        "offsets_partition",
        F.col("record_offset").alias("previous_record_offset"),
        F.col("race_ms").alias("window_ms"),
        F.col("leader_epoch").alias("window_leader_epoch"),
    )
    rows = rewound.join(higher, ["copy", "offsets_partition", "previous_record_offset"])
    is_reloaded = F.col("leader_epoch") > F.col("window_leader_epoch")
    return findings(
        rows,
        code=CODE,
        class_=F.when(is_reloaded, F.lit("healed")).otherwise(F.lit("regression")),
        severity="info",
        certainty=F.when(is_reloaded, F.lit("suspicion")).otherwise(F.lit("consistent_with")),
        **on_commit(),
        title="{group_id} went back on {topic}-{partition} behind a race window: "
        "{previous_committed_offset} -> {committed_offset}",
        explanation="The commit of {previous_committed_offset} (offset {previous_record_offset} of "
        "__consumer_offsets-{offsets_partition}) came {window_ms} ms after its producer's previous marker, under "
        "leader epoch {window_leader_epoch}. Then the group had a new generation (offset {generation_offset}), and the "
        "next commit, at offset {record_offset} under leader epoch {leader_epoch}, is {committed_offset}. A consumer "
        "that was answered a stale offset leaves this; so does a client that seeks back. A later leader epoch "
        "has read the log again and answers right.",
        advice=_ADVICE,
        refuted_by="brokers at 3.9.1, 4.0.0 or later, the new group coordinator, or a client that sought back",
        evidence=[
            in_offsets("previous_record_offset", "higher commit, in the window"),
            in_offsets("generation_offset", "new generation of the group"),
            in_offsets("record_offset", "lower commit"),
        ],
    )
