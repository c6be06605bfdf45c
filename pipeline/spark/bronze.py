"""Ingest: every file once, into one Delta commit; the segment table is the commit record."""

from __future__ import annotations

import heapq
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.spark import tables
from pipeline.spark.plan import Plan, SourceFile
from pipeline.spark.read_file import Task, read_task
from pipeline.spark.split import split_points
from schemas import bronze
from schemas.table import Table

TASKS_PER_CORE = 3
FILE_COST_BYTES = 20_000
"""What opening a file costs, in bytes read."""
READ_KINDS = ("log", "snapshot", "txnindex")
SMALL_KINDS = ("scan", "unreadable")


class Ingested(NamedTuple):
    """What the driver has to know of an ingest.

    Attributes:
        segments: Rows of `bronze.segment`.
        unreadable: Rows of `bronze.unreadable`.
        keep_from: Segment id -> first offset that counts, where it overlaps the segment before it.
    """

    segments: list[dict[str, Any]]
    unreadable: list[dict[str, Any]]
    keep_from: dict[int, int]


def ingest(spark: SparkSession, plan: Plan, output: str, run_id: str) -> Ingested:
    """Decodes all files of the plan into `bronze.entry` and `bronze.segment`.

    Args:
        spark: The session.
        plan: What to read.
        output: Output root.
        run_id: Rows of an earlier attempt of the same run are replaced.
    """
    cores = max(spark.sparkContext.defaultParallelism, 1)
    bins = _bins(_tasks(plan), cores * TASKS_PER_CORE)
    rows = [(json.dumps([tuple(task) for task in one]),) for one in bins] or [("[]",)]
    tasks = spark.createDataFrame(rows, "tasks string").repartition(len(rows))
    entries = tasks.mapInArrow(_read_tasks, bronze.ENTRY.ddl())
    tables.replace(entries, bronze.ENTRY, output, run_id, by=("kind",))
    small = (
        tables.read(spark, bronze.ENTRY, output, run_id)
        .filter(F.col("kind").isin(*SMALL_KINDS))
        .select("kind", "segment_id", "replica_id", "detail")
        .collect()
    )
    scans = [_with_ids(row) for row in small if row["kind"] == "scan"]
    unreadable = [_with_ids(row) for row in small if row["kind"] == "unreadable"]
    segments, keep_from = _overlaps(_merged(scans))
    return Ingested(segments, sorted(unreadable, key=_place), keep_from)


def write_segments(spark: SparkSession, ingested: Ingested, output: str, run_id: str) -> None:
    """Writes the commit record of the ingest."""
    names = bronze.SEGMENT.names
    rows = [tuple(segment[name] for name in names) for segment in ingested.segments]
    table = spark.createDataFrame(rows, bronze.SEGMENT.ddl()).coalesce(1)
    tables.replace(table, bronze.SEGMENT, output, run_id)


def view(spark: SparkSession, table: Table, output: str, run_id: str) -> DataFrame:
    """A logical bronze table of one run; rows of an ingest without its segment rows stay invisible to SQL users."""
    if table is bronze.SEGMENT:
        return tables.read(spark, table, output, run_id)
    rows = tables.read(spark, bronze.ENTRY, output, run_id).filter(F.col("kind") == table.name)
    if table in (bronze.BATCH, bronze.TXN_STATE, bronze.OFFSET_COMMIT):
        return rows.select(*table.names)
    own = [column for column in table.columns if column.name not in ("segment_id", "replica_id")]
    ddl = ", ".join(f"{column.name} {column.type.replace('long', 'bigint')}" for column in own)
    parsed = rows.select("segment_id", "replica_id", F.from_json("detail", ddl).alias("detail"))
    return parsed.select("segment_id", "replica_id", "detail.*").select(*table.names)


def _read_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for text in batch.column(0).to_pylist():
            for fields in json.loads(text):
                yield from read_task(Task(*fields))


def _tasks(plan: Plan) -> list[Task]:
    indexes = {
        (one.replica_id, one.base_offset): one.path for one in plan.files if one.kind == "index"
    }
    tasks: list[Task] = []
    for one in sorted(plan.files, key=lambda file: file.name):
        if one.kind not in READ_KINDS:
            continue
        for start, end in _parts(one, indexes):
            tasks.append(
                Task(
                    one.path, one.name, one.kind, one.base_offset, one.replica_id, one.segment_id,
                    one.topic, start, end,
                )
            )
    return tasks


def _parts(one: SourceFile, indexes: dict[tuple[int, int], str]) -> list[tuple[int, int | None]]:
    if one.kind != "log":
        return [(0, None)]
    return split_points(one.path, one.size, indexes.get((one.replica_id, one.base_offset)), one.base_offset)


def _bins(tasks: list[Task], count: int) -> list[list[Task]]:
    """Balances tasks by bytes, largest first."""
    def cost(task: Task) -> int:
        end = task.end
        if end is None:
            try:
                end = os.path.getsize(task.path)
            except OSError:
                end = 0
        return end - task.start + FILE_COST_BYTES

    weighted = sorted(((cost(task), index) for index, task in enumerate(tasks)), reverse=True)
    heap: list[tuple[int, int]] = [(0, number) for number in range(min(count, len(tasks)))]
    bins: list[list[Task]] = [[] for _ in heap]
    for weight, index in weighted:
        load, number = heapq.heappop(heap)
        bins[number].append(tasks[index])
        heapq.heappush(heap, (load + weight, number))
    return bins


def _with_ids(row: Any) -> dict[str, Any]:
    return {"segment_id": row["segment_id"], "replica_id": row["replica_id"], **json.loads(row["detail"])}


def _place(row: dict[str, Any]) -> tuple[str, int]:
    return row["file"], row["position"]


def _merged(scans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts of one file as one segment row."""
    parts: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for scan in scans:
        parts[scan["segment_id"]].append(scan)
    merged = []
    for rows in parts.values():
        rows.sort(key=lambda row: row["position"])
        merged.append(_join(rows))
    return sorted(merged, key=lambda row: (row["replica_id"], row["base_offset"], row["file"]))


def _join(rows: list[dict[str, Any]]) -> dict[str, Any]:
    used = [row for row in rows if row["first_offset"] is not None]
    whole = dict(rows[0])
    for name in ("readable_bytes", "batch_count", "record_count", "marker_count"):
        whole[name] = sum(row[name] for row in rows)
    for name, pick in (
        ("max_leader_epoch", max), ("hole_end_offset", max), ("shortened_end_offset", max),
        ("first_broker_ms", min), ("last_broker_ms", max),
    ):
        whole[name] = pick((row[name] for row in rows if row[name] is not None), default=None)
    if used:
        whole |= {name: used[0][name] for name in ("first_offset", "first_crc")}
        whole |= {name: used[-1][name] for name in ("last_offset", "last_crc")}
    for before, after in zip(used[:-1], used[1:], strict=True):
        if after["first_offset"] != before["last_offset"] + 1:
            whole["hole_end_offset"] = max(after["first_offset"], whole["hole_end_offset"] or 0)
    whole["is_superseded"] = False
    return whole


def _overlaps(segments: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """One offset, one batch: offsets that a preceding segment of the replica holds already do not count."""
    keep_from: dict[int, int] = {}
    reached: dict[int, int] = {}
    for segment in segments:
        end = reached.get(segment["replica_id"], -1)
        if segment["first_offset"] is None:
            continue
        if segment["first_offset"] <= end:
            keep_from[segment["segment_id"]] = end + 1
            segment["is_superseded"] = segment["last_offset"] <= end
        reached[segment["replica_id"]] = max(end, segment["last_offset"])
    return segments, keep_from
