"""`write_outside_transaction`: transactional data that no transaction of its producer covers.

Promise: a transactional batch is written only to a partition that the coordinator has added to the running transaction
(KIP-98; verified by the broker since KIP-890, 3.6).

Rule: a run that no coordinator transaction can own: its partition was never added
(`partition_not_added`), or it came behind
the marker of its transaction and no new one was begun (`after_completion`). `swallowed`, on
LogAppendTime topics only: appended
before the transaction that ended it had added the partition.

Normal: CreateTime earlier than the previous marker or than AddPartitions (the client's clock);
anything earlier than the
coordinator's complete history.

Refuted by: an Ongoing record that lists the partition, in a part of `__transaction_state` that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, here, on_run

CODE = "write_outside_transaction"
NEEDS = ("batch", "txn_state")
FIXED_IN = {
    "partition_not_added": "KIP-890: verification in 3.6, of offsets in 3.7; transaction.version 2 in 4.0",
    "after_completion": "KIP-890: verification in 3.6, of offsets in 3.7; transaction.version 2 in 4.0",
    "swallowed": "transaction.version 2 in 4.0",
}


def find(*, partition_txn: DataFrame) -> DataFrame:
    """One finding a run."""
    rows = partition_txn.filter(F.col("outside").isNotNull())
    is_swallowed = F.col("outside") == "swallowed"
    end_ms = F.coalesce(F.col("marker_ms"), F.col("after_ms"))
    return findings(
        rows,
        code=CODE,
        class_=F.col("outside"),
        severity=F.when(is_swallowed, F.lit("major")).otherwise(F.lit("critical")),
        certainty=F.when(is_swallowed, F.lit("suspicion")).otherwise(F.lit("proven")),
        **(on_run(epoch="max_epoch", end_ms="marker_ms") | {"last_timestamp_ms": end_ms}),
        title="{topic}-{partition} offset {first_offset} was written outside a transaction",
        explanation="Producer {producer_id} epoch {max_epoch} of transactional id {transactional_id} wrote "
        "offsets {first_offset}..{last_offset}, and no transaction of that id lists {topic}-{partition} "
        "there: {outside}.",
        advice="Set transaction.partition.verification.enable=true (3.6 or later) and move to "
        "transaction.version 2 (4.0). Check whether the application counts these records as written.",
        refuted_by="an Ongoing record that lists the partition, in a part of __transaction_state not in the copy",
        evidence=[
            here("first_offset", "first batch outside a transaction"),
            here("marker_offset", "marker that ended it"),
        ],
    )
