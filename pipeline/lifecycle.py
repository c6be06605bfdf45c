"""When a finding of an earlier run is over: only where this run shows the end of it.

Most faults are facts of the log and never end: a duplicate stays a duplicate. One that this run
does not report was not seen (its history was cut, or what proved it was not copied). Only states end:
a transaction that hung, a marker that had not come, an offset that was pending, a coordinator that
was stuck.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.spark.run import Run
from schemas import silver
from schemas.table import Table

Finding = dict[str, Any]
Key = tuple[Any, ...]
_COMPLETE = (4, 5)


def over(
    run: Run, attempts: dict[str, str | None], previous: list[Finding]
) -> Callable[[Finding], bool]:
    """A function of a previous finding: whether this run shows that it is over.

    Args:
        run: This run, its silver written.
        attempts: Detector code -> None, or why it was not attempted.
        previous: Findings that this run does not report; the tables are asked about their kinds only.
    """
    ended: dict[tuple[str, str | None], set[Key]] = {}
    for code, label in {_kind(one) for one in previous} & set(_ENDS):
        if attempts.get(code, "unknown detector") is None:
            table, ask, key = _ENDS[code, label]
            wanted = {_values(one, key) for one in previous if _kind(one) == (code, label)}
            ended[code, label] = _found(ask(run.silver(table)), key, wanted)

    def is_over(finding: Finding) -> bool:
        kind = _kind(finding)
        return kind in ended and _values(finding, _ENDS[kind][2]) in ended[kind]

    return is_over


def _kind(finding: Finding) -> tuple[str, str | None]:
    """Code and class; one entry for all classes of hanging transactions, whose id has no class either."""
    code = finding["code"]
    return code, None if code == "hanging_transaction" else finding["class"]


def _values(finding: Finding, key: tuple[str, ...]) -> Key:
    return tuple(finding[name] for name in key)


def _found(ends: DataFrame, key: tuple[str, ...], wanted: set[Key]) -> set[Key]:
    offsets = sorted({one[-1] for one in wanted if one[-1] is not None})
    rows = ends.filter(F.col(key[-1]).isin(offsets)).select(*key).collect() if offsets else []
    return {tuple(row) for row in rows} & wanted


def _closed_runs(partition_txn: DataFrame) -> DataFrame:
    return partition_txn.filter(F.col("marker_offset").isNotNull())


def _kept_promises(transaction_partition: DataFrame) -> DataFrame:
    kept = transaction_partition.filter(F.col("status") == "present")
    return kept.withColumn("first_offset", F.col("prepare_offset"))


def _decided_commits(committed_offset: DataFrame) -> DataFrame:
    decided = committed_offset.filter(F.col("outcome") != "pending")
    return decided.withColumn("first_offset", F.col("record_offset"))


def _complete_transactions(transaction: DataFrame) -> DataFrame:
    return transaction.filter(F.col("state").isin(*_COMPLETE)).withColumn(
        "first_offset", F.col("prepare_offset")
    )


_PLACE = ("topic", "partition")
_ENDS: dict[
    tuple[str, str | None], tuple[Table, Callable[[DataFrame], DataFrame], tuple[str, ...]]
] = {
    ("hanging_transaction", None): (
        silver.PARTITION_TXN,
        _closed_runs,
        (*_PLACE, "producer_id", "first_offset"),
    ),
    ("lso_pinned", "pinned"): (
        silver.PARTITION_TXN,
        _closed_runs,
        (*_PLACE, "producer_id", "first_offset"),
    ),
    ("marker_audit", "missing"): (
        silver.TRANSACTION_PARTITION,
        _kept_promises,
        (*_PLACE, "transactional_id", "first_offset"),
    ),
    ("committed_offset", "blocked"): (
        silver.COMMITTED_OFFSET,
        _decided_commits,
        (*_PLACE, "group_id", "first_offset"),
    ),
    ("coordinator_state", "prepare_with_all_markers"): (
        silver.TRANSACTION,
        _complete_transactions,
        ("transactional_id", "first_offset"),
    ),
}
"""Kind -> table, rows of it that show the end, and the columns that tell which finding; the offset comes last."""
