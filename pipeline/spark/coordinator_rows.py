"""Arrow in, Arrow out: the coordinator replay over sorted `__transaction_state` rows of one task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.replay.coordinator import Step
from pipeline.replay.coordinator_log import replay_id
from pipeline.replay.transaction_state import Record
from pipeline.spark import columnar
from pipeline.spark.arrow import arrow_schema
from schemas.silver import COORDINATOR

INPUT = (
    "replica_id",
    "transactional_id",
    "base_offset",
    "max_timestamp_ms",
    "partition_leader_epoch",
    "value_version",
    "state",
    "producer_id",
    "producer_epoch",
    "txn_timeout_ms",
    "partitions",
    "start_ms",
    "next_producer_id",
    "client_transaction_version",
)
"""Columns that the function reads, in this order, sorted by `ORDER`."""
ORDER = INPUT[:3]

FLUSH_ROWS = 20_000


class CoordinatorLog(NamedTuple):
    """What the replay has to know of one replica of `__transaction_state`."""

    copy: int
    partition: int
    partition_count: int | None
    frontier_offset: int
    is_complete: bool


def source(
    files: Sequence[str], logs: Collection[int], keep_from: dict[int, int], shares: int
) -> columnar.Source:
    """Records of the replayed replicas, all of an id in one share.

    Args:
        files: Of `bronze.txn_state`.
        logs: Replicas that are replayed.
        keep_from: As `columnar.counted`.
        shares: Number of tasks.
    """
    mine = pa.array(sorted(logs), pa.int64())

    def route(rows: pa.Table) -> columnar.Routed:
        rows = rows.filter(pc.is_in(rows["replica_id"], value_set=mine))
        rows = columnar.counted(rows, keep_from)
        zeros = np.zeros(len(rows), np.int64)
        share = columnar.hashed(rows["transactional_id"], shares)
        return columnar.Routed(rows.select(INPUT), share, zeros, zeros, zeros)

    return columnar.Source("record", files, ("segment_id", *INPUT), route)


def packed_replayer(
    logs: dict[int, CoordinatorLog],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The same as `replayer` for rows of `columnar.PACKED` in any order.

    Args:
        logs: By replica id.
    """
    replay = replayer(logs)
    keys = [(name, "ascending") for name in ORDER]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [pack.rows for pack in columnar.packs(batches)]
        if found:
            rows = pa.concat_tables(found)
            rows = rows.take(pc.sort_indices(rows, sort_keys=keys)).combine_chunks()
            yield from replay(iter(rows.to_batches(FLUSH_ROWS)))

    return run


def replayer(
    logs: dict[int, CoordinatorLog],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: rows of `INPUT` sorted by replica, id and offset -> rows of `COORDINATOR`.

    Args:
        logs: By replica id.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        out = _Output()
        key: tuple[int, str] | None = None
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            out.held.append(batch)
            columns = [batch.column(index).to_pylist() for index in range(len(INPUT))]
            for row in zip(*columns, strict=True):
                if key is None or row[1] != key[1] or row[0] != key[0]:
                    if key is not None:
                        out.add(logs[key[0]], key[1], rows)
                    key, rows = (row[0], row[1]), []
                rows.append(row)
            if len(out.facts) >= FLUSH_ROWS:
                yield from out.flush()
        if key is not None:
            out.add(logs[key[0]], key[1], rows)
        yield from out.flush()

    return run


class _Output:
    """Rows of the three kinds until they are flushed.

    Step rows are the input's own columns with what the replay found beside them, so the input is held until its ids are
    complete.
    """

    def __init__(self) -> None:
        self.schema = arrow_schema(COORDINATOR)
        self.held: list[pa.RecordBatch] = []
        self._start()

    def _start(self) -> None:
        self.facts: list[Step] = []
        self.places: list[tuple[int, int]] = []
        self.transactions: list[tuple[Any, ...]] = []
        self.owners: list[tuple[Any, ...]] = []

    def add(self, log: CoordinatorLog, transactional_id: str, rows: list[tuple[Any, ...]]) -> None:
        """Replays one id and keeps what it found."""
        history = replay_id(
            transactional_id,
            [Record._make(row[2:]) for row in rows],
            coordinator_partition=log.partition,
            partition_count=log.partition_count,
            frontier_offset=log.frontier_offset,
            is_complete=log.is_complete,
        )
        place = (log.copy, log.partition)
        self.facts += history.steps
        self.places += [place] * len(rows)
        for txn in history.transactions:
            *fields, added = txn
            self.transactions.append((*place, transactional_id, *fields, len(added), added))
        for owner in history.owners:
            listed = [name.replace("\x00", "-") for name in owner.partitions]
            self.owners.append((*place, transactional_id, *owner[:-1], listed))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Batches in the one physical schema; nulls where a kind has no such column."""
        if self.facts:
            yield self._steps()
        for kind, names, rows in (
            ("transaction", _TRANSACTION, self.transactions),
            ("owner", _OWNER, self.owners),
        ):
            if rows:
                columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
                if "partitions" in columns:
                    kept = self.schema.field("partitions").type
                    columns["partitions"] = _listed(columns["partitions"], kept)
                yield self._batch(kind, columns, len(rows))
        self._start()

    def _steps(self) -> pa.RecordBatch:
        count = len(self.facts)
        held = pa.Table.from_batches(self.held)
        done = held.slice(0, count)
        self.held = held.slice(count).to_batches()
        columns: dict[str, Any] = {
            name: done.column(source).combine_chunks() for name, source in _FROM_INPUT.items()
        }
        columns |= dict(zip(Step._fields, zip(*self.facts, strict=True), strict=True))
        columns["copy"], columns["coordinator_partition"] = zip(*self.places, strict=True)
        return self._batch("coordinator_step", columns, count)

    def _batch(self, kind: str, columns: dict[str, Any], count: int) -> pa.RecordBatch:
        arrays = []
        for field in self.schema:
            value = columns.get(field.name)
            if field.name == "kind":
                arrays.append(pa.repeat(kind, count))
            elif value is None:
                arrays.append(pa.nulls(count, field.type))
            elif isinstance(value, pa.Array):
                arrays.append(value.cast(field.type))
            else:
                arrays.append(pa.array(value, type=field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _listed(lists: Sequence[Sequence[tuple[str, int | None]]], kept: pa.ListType) -> pa.ListArray:
    """Lists of partitions and when they were added, without a dictionary for each.

    Args:
        lists: Topic, a zero byte and the partition, and milliseconds.
        kept: The type of the lists: topic, partition and milliseconds.
    """
    ends = np.cumsum([0, *map(len, lists)])
    names = [name for one in lists for name, _ in one]
    split = {
        name: (name.rpartition("\x00")[0], int(name.rpartition("\x00")[2])) for name in set(names)
    }
    columns = (
        [split[name][0] for name in names],
        [split[name][1] for name in names],
        [added_ms for one in lists for _, added_ms in one],
    )
    fields = list(kept.value_type)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    values = pa.StructArray.from_arrays(arrays, fields=fields)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


_FROM_INPUT = {
    "offset": "base_offset",
    "transactional_id": "transactional_id",
    "append_ms": "max_timestamp_ms",
    "leader_epoch": "partition_leader_epoch",
    "state": "state",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "txn_timeout_ms": "txn_timeout_ms",
}
"""Columns of a step -> columns of the input that they are."""
_TRANSACTION = (
    "copy",
    "coordinator_partition",
    "transactional_id",
    "first_step_offset",
    "producer_id",
    "producer_epoch",
    "prepare_epoch",
    "state",
    "outcome",
    "cause",
    "transaction_version",
    "txn_timeout_ms",
    "start_ms",
    "ongoing_ms",
    "ongoing_leader_epoch",
    "prepare_offset",
    "prepare_ms",
    "prepare_leader_epoch",
    "complete_offset",
    "complete_ms",
    "complete_leader_epoch",
    "has_start",
    "partition_count",
    "partitions",
)
_OWNER = (
    "copy",
    "coordinator_partition",
    "transactional_id",
    "producer_id",
    "is_current",
    "state",
    "producer_epoch",
    "transaction_version",
    "txn_timeout_ms",
    "append_ms",
    "start_ms",
    "leader_epoch",
    "listed_partitions",
)
