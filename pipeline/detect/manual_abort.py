"""`manual_abort`: an ABORT marker that no coordinator decided: an operator's `kafka-transactions abort`.

Promise: none broken; the marker's provenance is told so that nobody takes it for a defect (KIP-664).

Rule: an ABORT marker for which the complete history of the coordinator holds no transaction.

Normal: always.

Refuted by: a Prepare* record at that time in a part of `__transaction_state` that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, here, on_marker

CODE = "manual_abort"
NEEDS = ("batch", "txn_state")
FIXED_IN = "no defect"


def find(*, partition_txn: DataFrame) -> DataFrame:
    """One finding a marker, always info."""
    return findings(
        partition_txn.filter(F.col("alignment") == "manual_abort"),
        code=CODE,
        class_="manual_abort",
        severity="info",
        certainty="proven",
        **on_marker(),
        title="{topic}-{partition} offset {marker_offset}: aborted by hand",
        explanation="The ABORT marker of producer {producer_id} epoch {marker_epoch} (coordinator epoch "
        "{marker_coordinator_epoch}) has no record in __transaction_state: kafka-transactions abort "
        "wrote it. It ended the run from offset {first_offset}.",
        advice="Nothing to do; check that the abort was meant.",
        refuted_by="a Prepare* record at that time that is not in the copy",
        evidence=[here("marker_offset", "ABORT marker")],
    )
