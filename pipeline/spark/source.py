"""`spark.read.format("kafka_segments").option("view", ...).load(root)`: Kafka's files as tables.

For notebooks: nothing is written, and every action reads the files again. The audit itself uses the
same readers in one pass (`pipeline.spark.bronze`).

Options:
    view: One of `VIEWS`; `batches` by default.
    clusterId: Cluster of an input without `meta.properties`.

Damage is in the view `unreadable`; the other views give what could be read. Filters are not pushed
down: Spark 4.2 keeps those of one query for the next on the same DataFrame.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pipeline.errors import UsageError
from pipeline.spark.arrow import arrow_schema
from pipeline.spark.entry import Place, Row, logical
from pipeline.spark.extent import merged, overlaps
from pipeline.spark.inventory import Plan
from pipeline.spark.plan import plan
from pipeline.spark.plan_rows import PlanRows, plan_rows
from pipeline.spark.read_file import read_task
from pipeline.spark.tasks import READ_KINDS, Task, bins, tasks_of
from pipeline.text import nearest, sanitise
from pipeline.wire.limits import MIB
from schemas import bronze
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC
from schemas.table import Table

FORMAT = "kafka_segments"
SHARE_BYTES = 32 * MIB
"""What one task of a view reads, more or less."""


class View(NamedTuple):
    """What a view shows.

    Attributes:
        table: Its columns.
        files: Kinds of files that are read for it.
        topic: The only topic that holds such rows.
        is_planned: Its rows are known from planning.
    """

    table: Table
    files: tuple[str, ...]
    topic: str | None = None
    is_planned: bool = False


VIEWS = {
    "segments": View(bronze.SEGMENT, ("log",)),
    "batches": View(bronze.BATCH, ("log",)),
    "txn_state": View(bronze.TXN_STATE, ("log",), TXN_TOPIC),
    "offset_commits": View(bronze.OFFSET_COMMIT, ("log",), OFFSETS_TOPIC),
    "group_metadata": View(bronze.GROUP_METADATA, ("log",), OFFSETS_TOPIC),
    "producer_snapshots": View(bronze.SIDECAR, ("snapshot",)),
    "aborted_txns": View(bronze.SIDECAR, ("txnindex",)),
    "checkpoints": View(bronze.SIDECAR, (), is_planned=True),
    "unreadable": View(bronze.UNREADABLE, READ_KINDS, is_planned=True),
}


def register(spark: SparkSession) -> None:
    """Makes the format known to a session."""
    spark.dataSource.register(KafkaSegments)


class Share(InputPartition):
    """What one task reads."""

    def __init__(self, tasks: list[Task], known: list[PlanRows]) -> None:
        super().__init__(None)
        self.tasks = tasks
        self.known = known


class KafkaSegments(DataSource):
    """The data source; see the module."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Columns of the chosen view, as `schemas` declares them."""
        return self._view().table.ddl()

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of the chosen view.

        Raises:
            UsageError: No path, a path that does not exist, or two clusters in one input.
        """
        path = self.options.get("path")
        if not path:
            raise UsageError(f"{FORMAT} needs a path: load(path)")
        return _Reader(self._view(), plan((path,), cluster_id=self.options.get("clusterId")))

    def _view(self) -> View:
        name = self.options.get("view", "batches")
        if name not in VIEWS:
            known = ", ".join(VIEWS)
            hint = nearest(name, list(VIEWS))
            raise UsageError(f"no view {sanitise(name)!r}{hint}: {known}")
        return VIEWS[name]


class _Reader(DataSourceReader):
    def __init__(self, view: View, planned: Plan) -> None:
        self._view = view
        self._plan = planned

    def __getstate__(self) -> dict[str, Any]:
        """What tasks get: their shares say what to read, so the plan stays behind."""
        return {"_view": self._view}

    def partitions(self) -> list[InputPartition]:
        """One share a task, one at least: for an empty list Spark calls `read(None)`."""
        if self._view.table == bronze.SEGMENT:
            return self._replica_shares()
        tasks = [
            task
            for task in tasks_of(self._plan, self._view.files)
            if self._view.topic in (task.topic, None)
        ]
        known: list[PlanRows] = []
        if self._view.is_planned:
            kind = self._view.table.name
            known = [rows for rows in plan_rows(self._plan) if rows.kind == kind]
        size = sum(task.cost for task in tasks)
        filled = bins(tasks, 1 + size // SHARE_BYTES) or [[]]
        return [Share(mine, [] if number else known) for number, mine in enumerate(filled)]

    def _replica_shares(self) -> list[InputPartition]:
        """Whole files of whole replicas: what an overlap is takes all segments."""
        whole = {one.segment_id for one in self._plan.files}
        by_replica: dict[int, list[Task]] = defaultdict(list)
        for task in tasks_of(self._plan, self._view.files, whole):
            by_replica[task.replica_id].append(task)
        return [Share(mine, []) for mine in by_replica.values()] or [Share([], [])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of the view's columns."""
        assert isinstance(partition, Share)
        if self._view.table == bronze.SEGMENT:
            yield from _segments(partition.tasks)
            return
        for rows in partition.known:
            yield logical(rows.batch(), self._view.table)
        is_headers = self._view.table == bronze.BATCH
        for task in partition.tasks:
            for batch in read_task(task, headers_only=is_headers):
                if batch.column(0)[0].as_py() == self._view.table.name:
                    yield logical(batch, self._view.table)


def _segments(tasks: list[Task]) -> Iterator[pa.RecordBatch]:
    """Segment rows of whole replicas."""
    scans: list[Row] = []
    for task in tasks:
        for batch in read_task(task, headers_only=True):
            if batch.column(0)[0].as_py() == "scan":
                scans += _scans(batch)
    if scans:
        rows, _ = overlaps(merged(scans))
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(bronze.SEGMENT))


def _scans(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    ids = {name: batch.column(name)[0].as_py() for name in Place._fields}
    return [{**json.loads(text), **ids} for text in batch.column("detail").to_pylist()]
