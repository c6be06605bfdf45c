"""`committed_offset` against small tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.detect import committed_offset
from pipeline.spark.tables import local
from schemas import silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JUDGEMENTS = {
    1: ("not_in_transaction", "critical", "proven"),
    2: ("owner_not_copied_late", "major", "consistent_with"),
    3: ("owner_not_copied", "info", "proven"),
    4: ("in_flight", "info", "proven"),
}
"""Producer id -> judgement of its open transaction, severity and certainty of what it blocks."""


def ddl(names: tuple[str, ...]) -> str:
    kinds = {one.name: one.type for one in silver.COMMITTED_OFFSET.columns}
    return ", ".join(f"{name} {kinds[name].replace('long', 'bigint')}" for name in names)


def test_what_is_blocked_is_as_severe_as_its_transaction(spark: SparkSession) -> None:
    names = tuple(one.name for one in silver.COMMITTED_OFFSET.columns)
    known: dict[str, Any] = {
        "copy": 0, "offsets_partition": 3, "group_id": "g", "topic": "t", "partition": 0,
        "committed_offset": 7, "outcome": "pending", "is_transactional": True,
        "is_before_marker": False, "producer_epoch": 0,
    }  # fmt: skip
    pending = [
        tuple((known | {"producer_id": one, "record_offset": one}).get(name) for name in names)
        for one in JUDGEMENTS
    ]
    open_ones = [
        (0, "__consumer_offsets", 3, one, True, judgement, f"writer-{one}")
        for one, (judgement, _, _) in JUDGEMENTS.items()
    ]
    runs = "copy int, topic string, partition int, producer_id bigint, is_open boolean, "
    found = committed_offset.find(
        committed_offset=local(spark, pending, ddl(names)),
        partition_txn=local(spark, open_ones, runs + "judgement string, transactional_id string"),
        last_committed=local(spark, [], ddl(names) + ", log_end_offset bigint"),
    ).collect()
    said = {row["producer_id"]: (row["class"], row["severity"], row["certainty"]) for row in found}
    assert said == {one: ("blocked", *wanted) for one, (_, *wanted) in JUDGEMENTS.items()}
    assert not any("_late" in row["explanation"] for row in found)
