"""The common shape of what detectors return, before ids and file positions are filled in."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.gold import FINDING

PLACE_TYPE = "array<struct<topic:string,partition:int,offset:bigint,what:string>>"
FILLED_LATER = ("run_id", "finding_id", "status", "evidence")
COLUMNS = tuple(column for column in FINDING.columns if column.name not in FILLED_LATER)


def place(topic: Column, partition: Column, offset: Column, what: str | Column) -> Column:
    """One piece of evidence: the batch or record at an offset; files and replicas are looked up later."""
    text = F.lit(what) if isinstance(what, str) else what
    return F.struct(
        topic.cast("string").alias("topic"),
        partition.cast("int").alias("partition"),
        offset.cast("long").alias("offset"),
        text.alias("what"),
    )


def findings(rows: DataFrame, *, evidence: list[Column], **columns: Column | str) -> DataFrame:
    """Rows as findings: each keyword is a column of `gold.finding`, strings are literals, absent ones null.

    Args:
        rows: Offending rows, with a column `copy`.
        evidence: `place` columns; those with a null offset are dropped.
        **columns: `class_` stands for the column `class`.
    """
    given = {("class" if name == "class_" else name): value for name, value in columns.items()}
    selected = [F.col("copy").cast("int").alias("copy")]
    for column in COLUMNS:
        value = given.pop(column.name, None)
        if value is None:
            value = F.lit(None)
        elif isinstance(value, str):
            value = F.lit(value)
        kind = column.type.replace("long", "bigint")
        selected.append(value.cast(kind).alias(column.name))
    if given:
        raise ValueError(f"no such finding columns: {sorted(given)}")
    places = F.filter(F.array(*evidence), lambda item: item["offset"].isNotNull())
    return rows.select(*selected, places.cast(PLACE_TYPE).alias("places"))


def text(template: str, *columns: Column) -> Column:
    """Text with `{}` for each column in turn; a null column reads `none`."""
    parts = template.split("{}")
    pieces: list[Column] = [F.lit(parts[0])]
    for part, column in zip(parts[1:], columns, strict=True):
        pieces += [F.coalesce(column.cast("string"), F.lit("none")), F.lit(part)]
    return F.concat(*pieces)
