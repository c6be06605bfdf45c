"""Commits of files to Delta tables through Delta's own transaction, and what a table's log says without asking Spark.

The first transaction of a JVM takes seconds and every later one a good part of a second, most of it waiting. So a run
may go on beside them (`beside`): they are made one after the other, in the order in which they were asked for, and what
is read in the meantime is what they promise.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from pipeline.errors import AuditError
from pipeline.spark import parquet
from pipeline.spark.parquet import File
from schemas.table import Column, Table

RUN = "run_id"
Added = tuple[str, dict[str, str]]
"""A file's path below its table and its partition values."""

COMMIT_HOOK: Callable[[str], None] | None = None
"""Called with `before <table>` before a table's files are written and with `after <table>` after they were committed;
tests inject failures here."""


class _Queue:
    """Commits on their way: one thread makes them in order, and none after one that failed."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self.asked: list[Future[None]] = []
        self.promised: dict[tuple[str, str], list[Added]] = {}

    def put(self, commit: Callable[[], None]) -> None:
        """Asks for a commit; raises what an earlier one raised."""
        for one in self.asked:
            if one.done():
                one.result()
        self.asked.append(self.pool.submit(self._after_all, tuple(self.asked), commit))

    def wait(self) -> None:
        """Waits for all commits asked for; raises what the first one raised."""
        for one in self.asked:
            one.result()

    @staticmethod
    def _after_all(earlier: Sequence[Future[None]], commit: Callable[[], None]) -> None:
        for one in earlier:
            one.result()
        commit()


_queue: _Queue | None = None
"""Of the one run that works in this process."""


@contextmanager
def beside() -> Iterator[None]:
    """Commits asked for inside are made beside the work; at its end all are made, or the first error is raised."""
    global _queue
    _queue = _Queue()
    try:
        yield
        _queue.wait()
    finally:
        _queue.pool.shutdown(cancel_futures=True)
        _queue = None


def wait() -> None:
    """Waits until everything asked for so far is committed.

    Raises:
        Exception: What the first failed commit raised.
    """
    if _queue is not None:
        _queue.wait()


def promised(folder: str, run_id: str) -> list[Added] | None:
    """Files of a run whose commit was asked for beside the work; None where none was."""
    return None if _queue is None else _queue.promised.get((folder, run_id))


def is_promised(folder: str) -> bool:
    """Whether a commit to the table was asked for beside the work."""
    return _queue is not None and any(known == folder for known, _ in _queue.promised)


def add(
    spark: SparkSession, table: Table, folder: str, runs: Sequence[str], files: Sequence[File]
) -> None:
    """Replaces files: all of `runs` go, `files` come, and the table is made if it is not there.

    Args:
        spark: The session.
        table: Declaration as stored, without the run.
        folder: Of the table.
        runs: The run whose files come, and others whose files go with the same commit.
        files: What comes.
    """
    if _queue is None:
        _commit(spark, table, folder, runs, files)
        return
    _queue.put(lambda: _commit(spark, table, folder, runs, files))
    _queue.promised[folder, runs[0]] = [(one.path, _values(table, runs[0], one)) for one in files]


def is_made(folder: str) -> bool:
    """Whether a table was ever committed; a log folder alone is what a killed first write leaves."""
    return next(Path(folder, "_delta_log").glob("*.json"), None) is not None


def added(folder: str, run_id: str) -> list[Added]:
    """Files of one run, from the newest commit that names it.

    Raises:
        AuditError: The commits of that time are no longer in the log.
    """
    logged = sorted(Path(folder, "_delta_log").glob("*.json"), reverse=True)
    for commit in logged:
        named = [
            (kind, action[kind])
            for action in _actions(commit)
            for kind in ("add", "remove")
            if kind in action and action[kind].get("partitionValues", {}).get(RUN) == run_id
        ]
        if named:
            return [
                (unquote(one["path"]), one["partitionValues"])
                for kind, one in named
                if kind == "add"
            ]
    if logged and int(logged[-1].stem) > 0:
        raise AuditError(f"{_name(folder)}: the commit of run {run_id} is no longer in its log")
    return []


def columns(folder: str) -> list[str]:
    """Columns that a table was made with (Delta protocol: `metaData.schemaString`).

    Raises:
        AuditError: The table's first commit is no longer in the log.
    """
    first = Path(folder, "_delta_log", f"{0:020}.json")
    for action in _actions(first) if first.exists() else ():
        if "metaData" in action:
            fields = json.loads(action["metaData"]["schemaString"])["fields"]
            return [field["name"] for field in fields]
    raise AuditError(f"{_name(folder)}: the commit that made it is no longer in its log")


def with_run(table: Table) -> Table:
    """A table as readers see it: the run is a column."""
    return table._replace(columns=(*table.columns, Column(RUN, "string", "Run.")))


def reached(point: str) -> None:
    """Tells `COMMIT_HOOK`."""
    if COMMIT_HOOK is not None:
        COMMIT_HOOK(point)


def _actions(commit: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]


def _name(folder: str) -> str:
    return ".".join(Path(folder).parts[-2:])


def _commit(
    spark: SparkSession, table: Table, folder: str, runs: Sequence[str], files: Sequence[File]
) -> None:
    """One Delta transaction."""
    jvm: Any = spark._jvm
    # Delta reads a checkpoint, which a table has from its eleventh commit on, only with the session of the thread.
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    delta = jvm.org.apache.spark.sql.delta
    begun = delta.DeltaLog.forTable(spark._jsparkSession, folder).startTransaction()
    actions = jvm.java.util.ArrayList()
    if _names_any(folder, runs):
        known = begun.filterFiles().iterator()
        while known.hasNext():
            file = known.next()
            if file.partitionValues().apply(RUN) in runs:
                actions.add(file.remove())
    if not is_made(folder):
        begun.updateMetadata(_action(jvm, "metaData", _metadata(jvm, table)), False)
    now = int(time.time() * 1000)
    for one in files:
        added = {
            "path": one.path,
            "partitionValues": _values(table, runs[0], one),
            "size": one.size_bytes,
            "modificationTime": now,
            "dataChange": True,
            "stats": json.dumps({"numRecords": one.row_count}),
        }
        actions.add(_action(jvm, "add", added))
    operation = getattr(delta, "DeltaOperations$ManualUpdate$").__getattr__("MODULE$")
    begun.commit(jvm.scala.jdk.javaapi.CollectionConverters.asScala(actions).toSeq(), operation)
    reached(f"after {table.layer}.{table.name}")


def _names_any(folder: str, runs: Sequence[str]) -> bool:
    """Whether the table's log names one of these runs: asking Delta for files of theirs takes a Spark job."""
    logged = sorted(Path(folder, "_delta_log").glob("*.json"))
    if logged and int(logged[0].stem) > 0:
        return True
    wanted = [f'"{RUN}":"{run}"' for run in runs]
    return any(one in commit.read_text(encoding="utf-8") for commit in logged for one in wanted)


def _values(table: Table, run_id: str, file: File) -> dict[str, str]:
    """Partition values of a file."""
    return {RUN: run_id, **({parquet.KIND: file.kind} if table.parts else {})}


def _metadata(jvm: Any, table: Table) -> dict[str, Any]:
    """Action that makes the table (Delta protocol: Change Metadata)."""
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(with_run(table).ddl()).json()
    return {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [RUN, *((parquet.KIND,) if table.parts else ())],
        # `added` reads the commits of runs that are kept, so Delta must not remove them after its thirty days.
        "configuration": {
            "delta.dataSkippingNumIndexedCols": "0",
            "delta.enableExpiredLogCleanup": "false",
        },
    }


def _action(jvm: Any, name: str, content: dict[str, Any]) -> Any:
    action = jvm.org.apache.spark.sql.delta.actions.Action
    return action.fromJson(json.dumps({name: content}))
