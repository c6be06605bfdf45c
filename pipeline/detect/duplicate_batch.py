"""`duplicate_batch`: an idempotent producer's batch stands twice in one partition.

Promise: with enable.idempotence a record is written exactly once per partition (KIP-98; Kafka: `ProducerStateManager`).

Rule: two batches of one producer id and epoch at different offsets whose sequence ranges are equal
(`exact`) or intersect
(`overlap`), sequences unwrapped to 64 bits, both at or above the start of complete history.

Normal: sequences that restart after an epoch bump or wrap at 2147483647; `__consumer_offsets`, whose batches always
carry base sequence 0; an application that sends the same value twice (other sequence numbers).

Refuted by: nothing short of a damaged header; both batches are in the log.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, place, text

CODE = "duplicate_batch"
NEEDS = ("batch",)
FIXED_IN = "not a broker defect by itself; seen after producer.id.expiration.ms (KIP-854, 3.4) or lost producer state"


def find(*, sequence_event: DataFrame) -> DataFrame:
    """One finding for each later batch."""
    rows = sequence_event.filter(F.col("kind").isin("exact", "overlap"))
    where = (F.col("topic"), F.col("partition"))
    return findings(
        rows,
        code=CODE,
        class_=F.col("kind"),
        severity="critical",
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
            "sequences {}..{} stand twice in {}-{}",
            F.col("first_sequence"),
            F.col("last_sequence"),
            *where,
        ),
        explanation=text(
            "Producer {} epoch {} wrote sequences {}..{} at offsets {}..{}; they were written before at offset {}. "
            "Consumers read these records twice.",
            F.col("producer_id"),
            F.col("producer_epoch"),
            F.col("first_sequence"),
            F.col("last_sequence"),
            F.col("offset"),
            F.col("last_offset"),
            F.col("other_offset"),
        ),
        advice=F.lit(
            "Skip the later offsets when reprocessing. Keep producer.id.expiration.ms longer than "
            "delivery.timeout.ms of "
            "every producer, and look for a retry after the broker had lost the producer's state."
        ),
        refuted_by=F.lit("nothing short of a damaged header: both batches are in the log"),
        evidence=[
            place(*where, F.col("other_offset"), "first time"),
            place(*where, F.col("offset"), "second time"),
        ],
    )
