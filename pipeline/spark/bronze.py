"""Ingest: every file once, into one Delta commit; the segment table is the commit record."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.replay.pseudonyms import Pseudonyms
from pipeline.spark import redaction, tables
from pipeline.spark.entry import Place
from pipeline.spark.extent import Row, disjointed, merged, overlaps
from pipeline.spark.inventory import Plan
from pipeline.spark.parquet import File
from pipeline.spark.plan_rows import WHOLE_LOG_DIR, PlanRows, plan_rows
from pipeline.spark.read_file import read_task
from pipeline.spark.tasks import Task, bins, tasks_of
from schemas import bronze
from schemas.table import Table

TASKS_PER_CORE = 3


class Ingested(NamedTuple):
    """What the driver has to know of an ingest.

    Attributes:
        segments: Rows of `bronze.segment`.
        unreadable: Rows of `bronze.unreadable` of replicas; the plan knows the others.
        keep_from: Segment id -> first offset that counts, where it overlaps the segment before it.
        whole: Segments whose index lied, so that they are read in one piece.
    """

    segments: list[Row]
    unreadable: list[Row]
    keep_from: dict[int, int]
    whole: tuple[int, ...] = ()


def ingest(
    spark: SparkSession,
    plan: Plan,
    output: str,
    run_id: str,
    expired: Sequence[str] = (),
    names: Pseudonyms | None = None,
) -> Ingested:
    """Decodes all files of the plan into `bronze.entry`; `write_segments` makes them visible.

    Rows of earlier runs that were killed before they wrote their segments go with the same commit.

    Args:
        spark: The session.
        plan: What to read.
        output: Output root.
        run_id: Rows of an earlier attempt of the same run are replaced.
        expired: Runs whose rows go with the same commit.
        names: Gives pseudonyms; None writes names as they are.
    """
    scans, unreadable = _decode(spark, plan, output, run_id, expired, (), names)
    lied_to = disjointed(scans)
    if lied_to:
        scans, unreadable = _decode(spark, plan, output, run_id, expired, lied_to, names)
    segments, keep_from = overlaps(merged(scans))
    return Ingested(
        segments,
        sorted(unreadable, key=lambda row: (row["file"], row["position"])),
        keep_from,
        tuple(lied_to),
    )


def _decode(
    spark: SparkSession,
    plan: Plan,
    output: str,
    run_id: str,
    expired: Sequence[str],
    whole: Collection[int],
    names: Pseudonyms | None,
) -> tuple[list[Row], list[Row]]:
    """One pass over the files into Delta; gives the scan rows and the damage."""
    cores = max(spark.sparkContext.defaultParallelism, 1)
    shares = bins(tasks_of(plan, whole=whole), cores * TASKS_PER_CORE)
    known = list(plan_rows(plan))
    count = max(len(shares), 1)
    # A range has one row a partition: each share is one task, with no shuffle that could pair two.
    numbers = spark.range(0, count, 1, count)
    files = tables.replace(
        numbers,
        bronze.ENTRY,
        output,
        run_id,
        also=[*_uncommitted(output, run_id), *expired],
        function=_reader(shares, known, names),
    )
    folder = tables.path(bronze.ENTRY, output)
    return _details(files, folder, "scan"), _details(files, folder, "unreadable")


def _reader(
    shares: Sequence[Sequence[Task]], known: Sequence[PlanRows], names: Pseudonyms | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: numbers of shares -> rows of `bronze.entry`."""

    def read(number: int) -> Iterator[pa.RecordBatch]:
        if number == 0:
            yield from (rows.batch() for rows in known)
        for task in shares[number] if number < len(shares) else ():
            yield from read_task(task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from redaction.guarded(read(number), names)

    return run


def write_segments(
    spark: SparkSession, ingested: Ingested, output: str, run_id: str, expired: Sequence[str] = ()
) -> None:
    """Writes the commit record of the ingest."""
    names = bronze.SEGMENT.names
    rows = [tuple(segment[name] for name in names) for segment in ingested.segments]
    tables.replace_rows(spark, rows, bronze.SEGMENT, output, run_id, also=expired)


def view(spark: SparkSession, table: Table, output: str, run_id: str) -> DataFrame:
    """A logical bronze table of one run, for that run itself: it need not be committed yet."""
    if table is bronze.SEGMENT:
        return tables.read(spark, table, output, run_id)
    return _logical(tables.read(spark, bronze.ENTRY, output, run_id), table).select(*table.names)


def register(spark: SparkSession, output: str) -> None:
    """Makes every logical bronze table a temporary view for SQL, with the `run_id` of its rows.

    Rows of an ingest that never wrote its segments are not in them.
    """
    if not tables.exists(bronze.ENTRY, output) or not tables.exists(bronze.SEGMENT, output):
        return
    segments = tables.read_runs(spark, bronze.SEGMENT, output)
    columns = (tables.RUN, *bronze.SEGMENT.names)
    segments.select(*columns).createOrReplaceTempView(bronze.SEGMENT.view_name)
    committed = F.broadcast(segments.select(tables.RUN).distinct())
    entries = tables.read_runs(spark, bronze.ENTRY, output).join(
        committed, tables.RUN, how="left_semi"
    )
    for table in bronze.TABLES:
        if table is not bronze.SEGMENT:
            _logical(entries, table, tables.RUN).createOrReplaceTempView(table.view_name)


def _logical(entries: DataFrame, table: Table, *extra: str) -> DataFrame:
    """Columns of a logical table; those of small kinds come out of `detail`."""
    rows = entries.filter(F.col("kind") == table.name)
    if set(table.names) <= set(bronze.ENTRY.names):
        return rows.select(*extra, *table.names)
    ids = Place._fields
    columns = tuple(column for column in table.columns if column.name not in ids)
    own = table._replace(columns=columns)
    parsed = rows.select(*extra, *ids, F.from_json("detail", own.ddl()).alias("detail"))
    return parsed.select(*extra, *ids, "detail.*").select(*extra, *table.names)


def _uncommitted(output: str, run_id: str) -> list[str]:
    """Runs with rows in `bronze.entry` and no commit record; only one run at a time works here."""
    begun = tables.partition_folders(bronze.ENTRY, output) - {run_id}
    if not tables.exists(bronze.SEGMENT, output):
        return sorted(begun)
    return sorted(one for one in begun if not tables.files(bronze.SEGMENT, output, one))


def _details(files: Sequence[File], folder: str, kind: str) -> list[Row]:
    """Rows of a small kind, from the files that were just written; those of whole log directories excepted."""
    rows = []
    for file in files:
        if file.kind == kind:
            columns = [*Place._fields, "detail"]
            rows += pq.ParquetFile(os.path.join(folder, file.path)).read(columns).to_pylist()
    return [
        {**json.loads(row.pop("detail")), **row}
        for row in rows
        if row["replica_id"] != WHOLE_LOG_DIR
    ]
