"""Statements of the pure rules (`pipeline.replay.statement`) as findings."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import FILLED_LATER, PLACE_TYPE, by_label
from schemas.gold import FINDING

_SAME = (
    "severity", "certainty", "title", "explanation", "topic", "partition", "producer_id",
    "producer_epoch", "transactional_id", "group_id", "first_offset", "last_offset",
    "first_timestamp_ms", "last_timestamp_ms",
)  # fmt: skip


def stated(
    rows: DataFrame, *, code: str, advice: Mapping[str, str], refuted_by: Mapping[str, str] | str
) -> DataFrame:
    """One finding a statement.

    Args:
        rows: Columns of `pipeline.replay.statement.DDL`.
        code: The detector.
        advice: Class -> what to do.
        refuted_by: Class -> what would prove it wrong, or one text for all.
    """
    label = F.col("label")
    refuted = dict.fromkeys(advice, refuted_by) if isinstance(refuted_by, str) else refuted_by
    columns: dict[str, Column] = {name: F.col(name) for name in _SAME}
    columns |= {
        "code": F.lit(code),
        "class": label,
        "advice": F.coalesce(by_label(label, advice), F.lit("")),
        "refuted_by": F.coalesce(by_label(label, refuted), F.lit("")),
    }
    return rows.select(
        F.col("copy"),
        *(columns[name].alias(name) for name in FINDING.names if name not in FILLED_LATER),
        F.col("places").cast(PLACE_TYPE).alias("places"),
    )
