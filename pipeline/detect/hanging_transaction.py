"""`hanging_transaction`: an open transaction that nobody will end.

Promise: every transaction is ended by a marker within its timeout (KIP-98); until then read_committed consumers
stop at its first offset and the partition is not compacted (KIP-664).

Rule: a run of transactional batches without a marker, whose producer id no transactional id holds (`orphan_producer`),
whose owner does not list the partition or is done (`not_in_transaction`), whose owner moved to a later epoch
(`epoch_mismatch`), whose coordinator decided and sent no marker (`prepare_stuck`), or whose
coordinator let the deadline pass
(`past_deadline`);
`snapshot_only` when no batch is left, only the producer snapshot holds it open and no coordinator owns
it (info where not all coordinators were read).

Normal: a run whose owner lists the partition and whose deadline is not over; whatever is in flight
at the end of a copy;
two-phase-commit transactions of any age.

Refuted by: a record of `__transaction_state` that lists the partition at that time, or the marker, in a file
that was not copied or was copied too early.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import by_label, findings, here, on_partition, on_run, text
from pipeline.replay.open_runs import LOST_ABORT, LOST_COMMIT

CODE = "hanging_transaction"
NEEDS = ("batch",)
FIXED_IN = {
    "orphan_producer": "KIP-890: verification in 3.6, of offsets in 3.7; transaction.version 2 in 4.0",
    "not_in_transaction": "KIP-890: verification in 3.6, of offsets in 3.7; transaction.version 2 in 4.0; by a "
    "coordinator that skips partitions without a leader: KAFKA-20734, from 4.3.0 on, open in 4.4.0",
    "epoch_mismatch": "KIP-890: verification in 3.6, of offsets in 3.7; transaction.version 2 in 4.0",
    "prepare_stuck": "KAFKA-9777 in 2.6.0; KAFKA-16352 in 3.8.0; KAFKA-17877 in 4.0.0",
    "*": "no single defect",
}

_WHY = {
    "orphan_producer": "no transactional id holds this producer id",
    "owner_not_copied": "the coordinator partition of its owner is not in the copy",
    "not_in_transaction": "its transactional id has no transaction that lists this partition",
    "epoch_mismatch": "its transactional id has moved on to a later epoch",
    "prepare_stuck": "the coordinator decided, but its marker never came",
    "past_deadline": "the coordinator was alive long past the transaction's deadline",
    "snapshot_only": "no batch of it is left, only the producer snapshot holds it open",
}
_ABORT = (
    "kafka-transactions.sh --bootstrap-server <host:port> abort --topic {topic:shell} --partition {partition} "
    "--start-offset {first_offset}"
)
_OLD_ABORT = (
    " (brokers older than 3.0: kafka-transactions.sh --bootstrap-server <host:port> abort --topic {topic:shell} "
    "--partition {partition} --producer-id {producer_id} --producer-epoch {max_epoch} "
    "--coordinator-epoch {coordinator_epoch})"
)
_COORDINATOR = (
    "CoordinatorId in the output of this command is that broker: kafka-transactions.sh --bootstrap-server "
    "<host:port> describe --transactional-id {transactional_id:shell}"
)
_DO_NOT_ABORT = (
    "Do not abort: it could tear a live transaction. Copy every partition of __transaction_state "
    "and audit again."
)


def find(*, partition_txn: DataFrame, snapshot_only: DataFrame) -> DataFrame:
    """Open runs that their judgement convicts, and open transactions that only a snapshot still holds."""
    judged = partition_txn.filter(F.col("judgement").isin(*_WHY, "owner_not_copied_late"))
    is_late = F.col("judgement") == "owner_not_copied_late"
    label = F.when(is_late, F.lit("owner_not_copied")).otherwise(F.col("judgement"))
    rows = judged.select("*", label.alias("label"), is_late.alias("is_late"))
    return _open_runs(rows).unionByName(_ghosts(snapshot_only))


def _open_runs(rows: DataFrame) -> DataFrame:
    is_uncopied = F.col("label") == "owner_not_copied"
    severity = (
        F.when(is_uncopied & F.col("is_late"), F.lit("major"))
        .when(is_uncopied, F.lit("info"))
        .otherwise(F.lit("critical"))
    )
    why = by_label(F.col("label"), _WHY)
    return findings(
        rows,
        code=CODE,
        class_=F.col("label"),
        severity=severity,
        certainty=F.when(is_uncopied, F.lit("consistent_with")).otherwise(F.lit("proven")),
        **on_run(epoch="max_epoch", end_ms="after_ms"),
        title=text(
            "open transaction pins {topic}-{partition} at offset {first_offset}: {why}", why=why
        ),
        explanation=text(
            "Producer {producer_id} epoch {max_epoch} (transactional id {transactional_id}) wrote "
            "{batch_count:batch|batches}, {record_count:record|records}, from offset {first_offset} on, and no marker "
            "ends them: {why} ({reason}). read_committed consumers get nothing from "
            "offset {first_offset} on.",
            why=why,
        ),
        advice=_advice(),
        refuted_by="a __transaction_state record that lists the partition at that time, or the marker itself, in a "
        "file that was not copied or was copied earlier",
        evidence=[here("first_offset", "first batch of the open transaction")],
    )


def _advice() -> Column:
    coordinator_epoch = F.coalesce(F.col("coordinator_epoch_before"), F.lit(0))
    abort = text(_ABORT + _OLD_ABORT, coordinator_epoch=coordinator_epoch)
    describe = text(
        "kafka-transactions.sh --bootstrap-server <host:port> describe --transactional-id "
        "{transactional_id:shell}; only when it does not list {topic}-{partition}: "
    )
    return (
        F.when(
            F.col("reason") == LOST_COMMIT,
            text(
                "Do not abort by hand: these records were committed, an abort hides them for good. The next "
                "transaction of {transactional_id} that commits records to {topic}-{partition} shows them. From "
                "4.3.0 on (open in 4.4.0) a coordinator skips a partition that has no leader at that moment "
                "(KAFKA-20734): keep replicas in sync on several brokers."
            ),
        )
        .when(F.col("label") == "orphan_producer", abort)
        .when(
            (F.col("label") == "not_in_transaction") | (F.col("reason") == LOST_ABORT),
            F.concat(F.lit("First: "), describe, abort),
        )
        .when(
            F.col("label") == "owner_not_copied",
            F.lit(_DO_NOT_ABORT),
        )
        .when(
            F.col("label") == "epoch_mismatch",
            F.concat(
                F.lit(
                    "End the old client first: it is a zombie, and find-hanging misses it while the id lists this "
                    "partition. Then: "
                ),
                describe,
                abort,
            ),
        )
        .when(
            F.col("label") == "prepare_stuck",
            text(
                "Do not abort by hand: the outcome is decided. Bring the partition's leader back, then restart the "
                "broker that leads the coordinator's partition: it resends the markers on loading. "
                + _COORDINATOR
            ),
        )
        .when(
            F.col("label") == "past_deadline",
            text(
                "Look at the coordinator: its abort scan does not run or its appends fail. Restart the leader of its "
                "__transaction_state partition. " + _COORDINATOR
            ),
        )
    )


def _ghosts(snapshot_only: DataFrame) -> DataFrame:
    start = F.col("current_txn_first_offset")
    is_judged = F.col("is_judged")
    return findings(
        snapshot_only,
        code=CODE,
        class_="snapshot_only",
        severity=F.when(is_judged, F.lit("critical")).otherwise(F.lit("info")),
        certainty=F.when(is_judged, F.lit("proven")).otherwise(F.lit("consistent_with")),
        **on_partition(producer_epoch="producer_epoch", first_offset="current_txn_first_offset"),
        title="only a producer snapshot holds a transaction of {topic}-{partition} open",
        explanation="The snapshot at offset {end_offset} holds a transaction of producer {producer_id} open "
        "since offset {current_txn_first_offset}, which the log no longer has. The LSO is clamped to the "
        "log start; consumers see nothing newer.",
        advice=F.when(is_judged, text(_ABORT, first_offset=start)).otherwise(F.lit(_DO_NOT_ABORT)),
        refuted_by="a transaction of its owner that lists the partition; a batch or marker of this "
        "producer at or above the log start",
        evidence=[],
    )
