"""`duplicate_batch`: an idempotent producer's batch stands twice in one partition.

Promise: with enable.idempotence a record is written exactly once per partition (KIP-98; Kafka: `ProducerStateManager`).

Rule: two batches of one producer id and epoch at different offsets whose sequence ranges are equal (`exact`) or
intersect (`overlap`), sequences unwrapped to 64 bits, both at or above the start of complete history, with no start
from 0 anew between them.

Normal: sequences that restart after an epoch bump or wrap at 2147483647, or in the same epoch when DeleteRecords or
retention had left a broker up to 2.4 no batch of the producer (KAFKA-7190): a batch at sequence 0 whose checksum is
not that of the first one is such a start, also under LogAppendTime, where no two checksums are equal;
`__consumer_offsets`, whose batches always carry base sequence 0; an application that sends the same value twice.

Refuted by: nothing short of a damaged header; both batches are in the log.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, here, on_batch, text

CODE = "duplicate_batch"
NEEDS = ("batch",)
_SKIP = "Skip the later offsets when reprocessing. "
_COMPARE = (
    "Compare the two batches before anything is skipped: only the sequence numbers that both have are "
    "duplicates, the later batch holds new records too. "
)
_KEEP = (
    "Keep producer.id.expiration.ms longer than delivery.timeout.ms of every producer, and look for a retry "
    "after the broker had lost the producer's state."
)
FIXED_IN = "not a broker defect by itself; seen after producer.id.expiration.ms (KIP-854, 3.4) or lost producer state"


def find(*, sequence_event: DataFrame) -> DataFrame:
    """One finding for each later batch."""
    is_whole = F.col("kind") == "exact"
    return findings(
        sequence_event.filter(F.col("kind").isin("exact", "overlap")),
        code=CODE,
        class_=F.col("kind"),
        severity="critical",
        certainty="proven",
        **on_batch(),
        title=text(
            "sequences {first_sequence}..{last_sequence} stand twice in {topic}-{partition}{partly}",
            partly=F.when(is_whole, F.lit("")).otherwise(F.lit(", some of them")),
        ),
        explanation=text(
            "Producer {producer_id} epoch {producer_epoch} wrote sequences "
            "{first_sequence}..{last_sequence} at offsets {offset}..{last_offset}; {which} were written before, "
            "at offset {other_offset}{on}. Consumers read these records twice.",
            which=F.when(is_whole, F.lit("they")).otherwise(F.lit("some of them")),
            on=F.when(is_whole, F.lit("")).otherwise(F.lit(" or behind it")),
        ),
        advice=F.concat(F.when(is_whole, F.lit(_SKIP)).otherwise(F.lit(_COMPARE)), F.lit(_KEEP)),
        refuted_by="nothing short of a damaged header: both batches are in the log",
        evidence=[here("other_offset", "first time"), here("offset", "second time")],
    )
