"""`manual_abort`: an ABORT marker that no coordinator decided: an operator's `kafka-transactions abort`.

Promise: none broken; the marker's provenance is told so that nobody takes it for a defect (KIP-664).

Rule: an ABORT marker for which the complete history of the coordinator holds no transaction.

Normal: always.

Refuted by: a Prepare* record at that time in a part of `__transaction_state` that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, place, text

CODE = "manual_abort"
NEEDS = ("batch", "txn_state")
FIXED_IN = "no defect"


def find(*, partition_txn: DataFrame) -> DataFrame:
    """One finding a marker, always info."""
    rows = partition_txn.filter(F.col("alignment") == "manual_abort")
    where = (F.col("topic"), F.col("partition"))
    return findings(
        rows,
        code=CODE,
        class_="manual_abort",
        severity="info",
        certainty="proven",
        topic=F.col("topic"),
        partition=F.col("partition"),
        producer_id=F.col("producer_id"),
        producer_epoch=F.col("marker_epoch"),
        transactional_id=F.col("transactional_id"),
        first_offset=F.col("marker_offset"),
        last_offset=F.col("marker_offset"),
        first_timestamp_ms=F.col("marker_ms"),
        last_timestamp_ms=F.col("marker_ms"),
        title=text("{}-{} offset {}: aborted by hand", *where, F.col("marker_offset")),
        explanation=text(
            "The ABORT marker of producer {} epoch {} (coordinator epoch {}) has no record in __transaction_state: "
            "kafka-transactions abort wrote it. It ended the run from offset {}.",
            F.col("producer_id"),
            F.col("marker_epoch"),
            F.col("marker_coordinator_epoch"),
            F.col("first_offset"),
        ),
        advice=F.lit("None; check that the abort was meant."),
        refuted_by=F.lit("a Prepare* record at that time that is not in the copy"),
        evidence=[place(*where, F.col("marker_offset"), "ABORT marker")],
    )
