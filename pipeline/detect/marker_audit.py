"""`marker_audit`: what the coordinator decided against the markers in the partitions.

Promise: every partition of a transaction gets one marker with the decided outcome (KIP-98; Kafka:
`TransactionMarkerChannelManager`).

Rule: a listed partition without a marker although Complete* was written (`missing`); a COMMIT without any transaction
(`unexpected`); an outcome other than decided, alone (`wrong_outcome`) or beside partitions that have the decided one
(`torn`); an epoch other than decided (`wrong_epoch`); a first marker behind Complete* (`early_completion`; where the
broker ran on, only behind the marker of a transaction that was decided later). The first marker of a transaction in a
partition counts; resends are `duplicate`, info. Clocks further apart than `clock_skew_ms` leave markers unjudged
(`other_clock`, info; the verdict says so), as does a marker that fits two transactions (`ambiguous`, info). A crash
can do it without a defect in the client: a coordinator loads its log to the end, not to the high watermark
(`TransactionStateManager.loadTransactionMetadata`), and writes markers for a Prepare* that no other replica has; when
another one leads later, that record is cut off and the transaction is decided anew. The records were exposed all the
same.

Normal: a second marker after a retry or a coordinator failover; markers without data; whatever lies before the
coordinator's complete history or in flight at the end of the copy.

Refuted by: a record of `__transaction_state`, or a marker, in a file that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import (
    by_label,
    findings,
    here,
    in_coordinator,
    on,
    on_marker,
    on_partition,
    text,
)

CODE = "marker_audit"
NEEDS = ("batch", "txn_state")
FIXED_IN = {
    "missing": "by the cleaner: KAFKA-8351 in 2.2.2, 2.3.0; KAFKA-13727 in 2.8.2, 3.0.2, 3.1.1, 3.2.0; "
    "KAFKA-14055 in 3.0.2, 3.1.2, 3.2.1, 3.3.0; by a coordinator that skips partitions without a leader: "
    "KAFKA-20734, from 4.3.0 on, open in 4.4.0",
    "wrong_epoch": "KAFKA-19446 (KIP-1228) in 4.2.0",
    "early_completion": "KAFKA-17877 in 4.0.0",
    "*": "no defect known",
}

_CRITICAL = ("torn", "wrong_outcome")
_TITLES = {
    "torn": "transaction torn: this partition ended the other way",
    "wrong_outcome": "marker contradicts the coordinator's decision",
    "wrong_epoch": "marker epoch is not the decided one",
    "unexpected": "COMMIT without any coordinator transaction",
    "early_completion": "marker written after the transaction was declared complete",
    "duplicate": "marker sent again",
}
_UNJUDGED = {
    "other_clock": "the brokers' clocks differ",
    "ambiguous": "two transactions fit",
}
_CLOCKS = (
    "by their time they fit no transaction, nor do their neighbours: the clocks of this partition's leader and of the "
    "transaction coordinator differ by more than clock_skew_ms, or one of them jumped"
)
_TWO_FIT = (
    "each fits two transactions of its producer, one right behind the other, within what the clocks allow; nobody "
    "knows whose it is, and neither is said to lack one"
)


def find(
    *, partition_txn: DataFrame, transaction_partition: DataFrame, kept_promise: DataFrame
) -> DataFrame:
    """One finding a marker, a transaction and partition for `missing`, a partition for what was not judged."""
    found = _missing(transaction_partition).unionByName(_markers(partition_txn, kept_promise))
    return found.unionByName(_unjudged(partition_txn))


def _missing(transaction_partition: DataFrame) -> DataFrame:
    decided = F.when(F.col("outcome") == 1, F.lit("COMMIT")).otherwise(F.lit("ABORT"))
    return findings(
        transaction_partition.filter(F.col("status") == "missing"),
        code=CODE,
        class_="missing",
        severity="major",
        certainty="proven",
        **on_partition(
            producer_epoch="prepare_epoch",
            transactional_id="transactional_id",
            first_offset="prepare_offset",
            first_timestamp_ms="prepare_ms",
            last_timestamp_ms="complete_ms",
        ),
        title=text("no {decided} marker in {topic}-{partition}", decided=decided),
        explanation=text(
            "Transactional id {transactional_id} decided {decided} at offset {prepare_offset} of "
            "__transaction_state-{coordinator_partition} and declared the transaction complete; "
            "{topic}-{partition} lists no marker of it.",
            decided=decided,
        ),
        advice="Look for the open transaction in this partition (hanging_transaction), for a time when the partition "
        "had no leader (KAFKA-20734: from 4.3.0 on, open in 4.4.0, its marker is skipped then) and for a marker that "
        "the cleaner removed.",
        refuted_by="the marker, in a segment that is not in the copy",
        evidence=[in_coordinator("prepare_offset", "decision")],
    )


def _markers(partition_txn: DataFrame, kept_promise: DataFrame) -> DataFrame:
    key = ["copy", "coordinator_partition", "transactional_id", "transaction_offset"]
    offending = partition_txn.filter(
        F.col("alignment").isin(
            "torn", "wrong_outcome", "wrong_epoch", "unexpected", "early_completion", "resent"
        )
    )
    kept = kept_promise.withColumn("is_kept", F.lit(True))
    rows = offending.join(F.broadcast(kept), key, how="left")
    label = (
        F.when(F.col("alignment") == "resent", F.lit("duplicate"))
        .when((F.col("alignment") == "wrong_outcome") & F.col("is_kept"), F.lit("torn"))
        .otherwise(F.col("alignment"))
    )
    return _marker_findings(rows.select("*", label.alias("label")))


def _marker_findings(rows: DataFrame) -> DataFrame:
    is_duplicate = F.col("label") == "duplicate"
    severity = (
        F.when(F.col("label").isin(*_CRITICAL), F.lit("critical"))
        .when(is_duplicate, F.lit("info"))
        .otherwise(F.lit("major"))
    )
    certainty = F.when(F.col("label") == "early_completion", F.lit("consistent_with")).otherwise(
        F.lit("proven")
    )
    kind = F.when(F.col("marker_type") == 1, F.lit("COMMIT")).otherwise(F.lit("ABORT"))
    what = by_label(F.col("label"), _TITLES)
    return findings(
        rows,
        code=CODE,
        class_=F.col("label"),
        severity=severity,
        certainty=certainty,
        **on_marker(),
        title=text("{what} ({topic}-{partition} offset {marker_offset})", what=what),
        explanation=text(
            "{kind} marker of producer {producer_id} epoch {marker_epoch} at offset {marker_offset} of "
            "{topic}-{partition}: {what}. Transactional id {transactional_id}, transaction begun at "
            "offset {transaction_offset} of its coordinator partition.",
            kind=kind,
            what=what,
        ),
        advice=F.when(
            is_duplicate, F.lit("Nothing to do: legal after a retry or a coordinator failover.")
        ).otherwise(
            F.lit(
                "Compare what read_committed consumers read here with the other partitions of the "
                "transaction; find out who wrote the marker (kafka-transactions abort, a delayed "
                "WriteTxnMarkers)."
            )
        ),
        refuted_by="a record of __transaction_state that is not in the copy and decided otherwise",
        evidence=[
            here("marker_offset", "marker"),
            in_coordinator("transaction_offset", "first record of the transaction"),
        ],
    )


def _unjudged(partition_txn: DataFrame) -> DataFrame:
    """What could not be judged must not look clean: one finding a partition and reason."""
    at = F.col("marker_offset")
    rows = (
        partition_txn.filter(F.col("alignment").isin(*_UNJUDGED))
        .groupBy("copy", "topic", "partition", F.col("alignment").alias("label"))
        .agg(
            F.count("*").alias("marker_count"),
            F.min(at).alias("first_offset"),
            F.max(at).alias("last_offset"),
            F.min("marker_ms").alias("first_ms"),
            F.max("marker_ms").alias("last_ms"),
        )
    )
    is_clock = F.col("label") == "other_clock"
    why = by_label(F.col("label"), _UNJUDGED)
    return findings(
        rows,
        code=CODE,
        class_=F.col("label"),
        severity="info",
        certainty="consistent_with",
        **on(
            topic="topic",
            partition="partition",
            first_offset="first_offset",
            last_offset="last_offset",
            first_timestamp_ms="first_ms",
            last_timestamp_ms="last_ms",
        ),
        title=text(
            "{marker_count:marker|markers} of {topic}-{partition} not judged: {why}", why=why
        ),
        explanation=text(
            "{marker_count:marker|markers} of {topic}-{partition}, offsets {first_offset}..{last_offset}: {why}.",
            why=F.when(is_clock, F.lit(_CLOCKS)).otherwise(F.lit(_TWO_FIT)),
        ),
        advice=F.when(
            is_clock,
            F.lit(
                "Synchronise the brokers' clocks; set clock_skew_ms above their difference and audit again."
            ),
        ).otherwise(
            F.lit(
                "Nothing to do; a smaller clock_skew_ms tells more of them apart where the clocks allow it."
            )
        ),
        refuted_by="clocks that were never further apart than clock_skew_ms",
        evidence=[here("first_offset", "first marker that was not judged")],
    )
