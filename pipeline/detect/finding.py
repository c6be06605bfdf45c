"""The common shape of what detectors return, before ids and file positions are filled in.

Detectors write texts as templates: `{topic}` stands for the column of that name in the offending row, and
`{count:batch|batches}` for the number in it with the word that fits: `1 batch`, `2 batches`. `{topic:shell}` is a
word of a command that people paste: in quotes wherever a shell would act on it.
"""

from __future__ import annotations

import string
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.gold import FINDING

PLACE_TYPE = "array<struct<topic:string,partition:int,offset:bigint,what:string>>"
FILLED_LATER = ("run_id", "finding_id", "status", "evidence")
COLUMNS = tuple(column for column in FINDING.columns if column.name not in FILLED_LATER)
TRANSACTION_STATE = "__transaction_state"
CONSUMER_OFFSETS = "__consumer_offsets"
SHELL = "shell"
_PLAIN_WORD = r"\A[A-Za-z0-9_@%+=:,./-]+\z"


def findings(rows: DataFrame, *, evidence: list[Column], **columns: Column | str) -> DataFrame:
    """Rows as findings: each keyword is a column of `gold.finding`, strings are templates, absent ones null.

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
            value = text(value)
        kind = column.type.replace("long", "bigint")
        selected.append(value.cast(kind).alias(column.name))
    if given:
        raise ValueError(f"no such finding columns: {sorted(given)}")
    places = F.filter(F.array(*evidence), lambda item: item["offset"].isNotNull())
    return rows.select(*selected, places.cast(PLACE_TYPE).alias("places"))


def on(**columns: str) -> dict[str, Column]:
    """Columns of `gold.finding` that are taken from these columns of the offending row."""
    return {name: F.col(source) for name, source in columns.items()}


def on_partition(**columns: str) -> dict[str, Column]:
    """`on`, in the row's own partition and of its producer id."""
    return on(topic="topic", partition="partition", producer_id="producer_id", **columns)


def on_marker() -> dict[str, Column]:
    """A marker of a row of `silver.partition_txn`: where it stands, whose it is, when it was appended."""
    return on_partition(
        producer_epoch="marker_epoch",
        transactional_id="transactional_id",
        first_offset="marker_offset",
        last_offset="marker_offset",
        first_timestamp_ms="marker_ms",
        last_timestamp_ms="marker_ms",
    )


def on_run(*, epoch: str, end_ms: str) -> dict[str, Column]:
    """A run of `silver.partition_txn`: the data of one producer up to its marker.

    Args:
        epoch: The column of the producer epoch that the finding is about.
        end_ms: The column of its last time, in ms since 1970.
    """
    return on_partition(
        producer_epoch=epoch,
        transactional_id="transactional_id",
        first_offset="first_offset",
        last_offset="last_offset",
        first_timestamp_ms="before_ms",
        last_timestamp_ms=end_ms,
    )


def on_batch() -> dict[str, Column]:
    """A batch of a row of `silver.sequence_event`."""
    return on_partition(
        producer_epoch="producer_epoch",
        first_offset="offset",
        last_offset="last_offset",
        first_timestamp_ms="timestamp_ms",
        last_timestamp_ms="timestamp_ms",
    )


def on_record(*, epoch: str, offset: str, first_ms: str, last_ms: str) -> dict[str, Column | str]:
    """A record of the transaction coordinator's log; the arguments are columns of the row."""
    return {
        "topic": TRANSACTION_STATE,
        **on(
            partition="coordinator_partition",
            producer_id="producer_id",
            producer_epoch=epoch,
            transactional_id="transactional_id",
            first_offset=offset,
            last_offset=offset,
            first_timestamp_ms=first_ms,
            last_timestamp_ms=last_ms,
        ),
    }


def on_commit() -> dict[str, Column]:
    """An offset commit of a row of `silver.committed_offset`, in the partition that it is about."""
    return on_partition(
        producer_epoch="producer_epoch",
        group_id="group_id",
        first_offset="record_offset",
        last_offset="record_offset",
        first_timestamp_ms="commit_timestamp_ms",
        last_timestamp_ms="append_ms",
    )


def place(topic: Column, partition: Column, offset: Column, what: str | Column) -> Column:
    """One piece of evidence: the batch or record at an offset; files and replicas are looked up later."""
    label = F.lit(what) if isinstance(what, str) else what
    return F.struct(
        topic.cast("string").alias("topic"),
        partition.cast("int").alias("partition"),
        offset.cast("long").alias("offset"),
        label.alias("what"),
    )


def here(offset: str, what: str) -> Column:
    """The batch at the offset in this column, in the row's own partition."""
    return place(F.col("topic"), F.col("partition"), F.col(offset), what)


def in_coordinator(offset: str, what: str) -> Column:
    """The record of `__transaction_state` at the offset in this column."""
    return place(F.lit(TRANSACTION_STATE), F.col("coordinator_partition"), F.col(offset), what)


def in_offsets(offset: str, what: str, partition: str = "offsets_partition") -> Column:
    """The record of `__consumer_offsets` at the offset in this column."""
    return place(F.lit(CONSUMER_OFFSETS), F.col(partition), F.col(offset), what)


def text(template: str, *columns: Column, **named: Column) -> Column:
    """Text with columns in it; a null one reads `none`.

    Args:
        template: `{}` takes the next of `columns`, `{name}` is `named[name]` or else the row's column;
            `{name:batch|batches}` puts the word for one or for several behind it, `{name:shell}` quotes it.
        *columns: As many as there are `{}`.
        **named: What is not a column of the row by itself.
    """
    rest = iter(columns)
    pieces: list[Column] = []
    for literal, name, words, _ in string.Formatter().parse(template):
        pieces.append(F.lit(literal))
        if name is not None:
            value = named.get(name, F.col(name)) if name else next(rest)
            said = F.coalesce(value.cast("string"), F.lit("none"))
            pieces.append(_word(said) if words == SHELL else said)
            if words and words != SHELL:
                one, _, many = words.partition("|")
                pieces.append(F.when(value == 1, F.lit(f" {one}")).otherwise(F.lit(f" {many}")))
    return pieces[0] if len(pieces) == 1 else F.concat(*pieces)


def _word(value: Column) -> Column:
    """One word for a shell, as `shlex.quote` makes it."""
    inner = F.replace(value, F.lit("'"), F.lit("'\"'\"'"))
    quoted = F.concat(F.lit("'"), inner, F.lit("'"))
    return F.when(value.rlike(_PLAIN_WORD), value).otherwise(quoted)


def by_label(label: Column, texts: Mapping[str, str]) -> Column:
    """The text of a class; null where there is none."""
    return F.coalesce(*(F.when(label == name, F.lit(words)) for name, words in texts.items()))
