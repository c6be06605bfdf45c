"""`sequence_gap`: sequence numbers that are missing inside one epoch, or that start anew.

Promise: a producer's sequence numbers follow one another in a partition (KIP-98; Kafka:
`ProducerAppendInfo.checkSequence`).

Rule: a batch of the same producer epoch that begins above the number after the last one (`lost`),
in history that is complete
there. A restart below is a duplicate or a `reset`.

Normal: wraparound at 2147483647; a new epoch that begins at 0; the first batch of a producer in retained history;
whatever the cleaner, retention or DeleteRecords removed.

Refuted by: a batch with the missing numbers in a segment that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, place, text

CODE = "sequence_gap"
NEEDS = ("batch",)
FIXED_IN = "depends on the cause: producer expiry (KIP-854, 3.4), unclean election (configuration)"


def find(*, sequence_event: DataFrame) -> DataFrame:
    """One finding a batch behind a gap."""
    rows = sequence_event.filter(F.col("kind").isin("gap", "reset"))
    where = (F.col("topic"), F.col("partition"))
    is_reset = F.col("kind") == "reset"
    at_leader_change = F.col("leader_epoch") != F.col("previous_leader_epoch")
    cause = F.when(at_leader_change, F.lit("at a leader change")).otherwise(
        F.lit("the broker had no state of the producer (expiry), or it was lost")
    )
    return findings(
        rows,
        code=CODE,
        class_=F.when(is_reset, F.lit("reset")).otherwise(F.lit("lost")),
        severity=F.when(is_reset, F.lit("info")).otherwise(F.lit("major")),
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
            "sequences {}..{} are missing in {}-{}",
            F.col("previous_sequence") + 1,
            F.col("first_sequence") - 1,
            *where,
        ),
        explanation=text(
            "Producer {} epoch {}: sequence {} at offset {} is followed by {} at offset {}; {}. "
            "The gap is in the log; whether "
            "records were lost, the client's side has to say.",
            F.col("producer_id"),
            F.col("producer_epoch"),
            F.col("previous_sequence"),
            F.col("previous_offset"),
            F.col("first_sequence"),
            F.col("offset"),
            cause,
        ),
        advice=F.lit(
            "Look for delivery errors in the producer's log at that time, and send what is missing again."
        ),
        refuted_by=F.lit("a batch with the missing numbers in a segment that is not in the copy"),
        evidence=[
            place(*where, F.col("previous_offset"), "last batch before the gap"),
            place(*where, F.col("offset"), "first batch behind it"),
        ],
    )
