"""One file in, Arrow batches of `bronze.ENTRY` out; runs in the executors' Python workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.spark.arrow import arrow_schema
from pipeline.spark.read_records import commit_rows, txn_rows
from pipeline.spark.read_sidecar import sidecar_rows
from pipeline.wire.arrays import BatchArrays, Chunk
from pipeline.wire.batch import Damage
from pipeline.wire.limits import DEFAULT_LIMITS
from pipeline.wire.scan import scan
from schemas.bronze import ENTRY
from schemas.codes import METADATA_TOPIC, OFFSETS_TOPIC, TXN_TOPIC

Rows = dict[str, Any]
_SCHEMA = arrow_schema(ENTRY)


class Task(NamedTuple):
    """One file, or a part of a large one, for one reader.

    Attributes:
        path: Where to read.
        name: Path below its input root.
        kind: log, index, timeindex, snapshot or txnindex.
        base_offset: Offset in the file's name.
        replica_id: Replica.
        segment_id: Segment.
        topic: Topic; decides how records are read.
        start: First byte; a batch begins there.
        end: Batches that begin at or behind it belong to another task; None to the end.
    """

    path: str
    name: str
    kind: str
    base_offset: int
    replica_id: int
    segment_id: int
    topic: str
    start: int = 0
    end: int | None = None


def read_task(task: Task) -> Iterator[pa.RecordBatch]:
    """Rows of one file; whatever cannot be read is a row as well."""
    if task.kind == "log":
        yield from _read_log(task)
        return
    if task.kind in ("snapshot", "txnindex"):
        yield from (
            detail_batch(task, kind, rows) for kind, rows in sidecar_rows(task, DEFAULT_LIMITS) if rows
        )


def _read_log(task: Task) -> Iterator[pa.RecordBatch]:
    extent = _Extent(task)
    damages: list[Damage] = []
    try:
        with open(task.path, "rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size

            def read_at(position: int, length: int) -> bytes:
                return os.pread(stream.fileno(), length, position)

            extent.size = size
            for piece in scan(read_at, size, start=task.start, end=task.end):
                if isinstance(piece, Damage):
                    damages.append(piece)
                    extent.damage(piece)
                    continue
                extent.add(piece.arrays)
                yield from _chunk_rows(task, piece, damages)
    except OSError as error:
        damages.append(Damage(task.start, 0, "io", error.strerror or "cannot be read", None))
    yield detail_batch(task, "scan", [extent.row()])
    if damages:
        yield detail_batch(task, "unreadable", [_damage_row(task, one, extent) for one in damages])


def _damage_row(task: Task, damage: Damage, extent: _Extent) -> Rows:
    return {
        "position": damage.position,
        "file": task.name,
        "size_bytes": damage.size_bytes,
        "reason": damage.reason,
        "explanation": damage.detail,
        "after_offset": extent.before(damage.position),
        "next_offset": damage.next_offset_hint,
        "is_tail": damage.position + damage.size_bytes >= extent.size and damage.next_offset_hint is None,
    }


def _chunk_rows(task: Task, chunk: Chunk, damages: list[Damage]) -> Iterator[pa.RecordBatch]:
    arrays = chunk.arrays
    if task.topic == TXN_TOPIC:
        rows, bad = txn_rows(chunk)
        damages += bad
        if rows:
            yield _batch(task, "txn_state", rows)
        control = np.flatnonzero(arrays.is_control)
        if len(control):
            yield _batch_rows(task, arrays, control)
        return
    if task.topic == OFFSETS_TOPIC:
        rows, groups, bad = commit_rows(chunk)
        damages += bad
        if rows:
            yield _batch(task, "offset_commit", rows)
        if groups:
            yield detail_batch(task, "group_metadata", groups)
        produced = np.flatnonzero((arrays.producer_id >= 0) | arrays.is_control)
        if len(produced):
            yield _batch_rows(task, arrays, produced)
        return
    yield _batch_rows(task, arrays, None)


def _batch_rows(task: Task, arrays: BatchArrays, which: np.ndarray[Any, Any] | None) -> pa.RecordBatch:
    one = arrays if which is None else BatchArrays._make(values[which] for values in arrays)
    is_marker = (one.control_type >= 0) & (one.producer_id >= 0)
    return _batch(
        task,
        "batch",
        {
            "position": one.position,
            "base_offset": one.base_offset,
            "last_offset": one.last_offset,
            "partition_leader_epoch": one.partition_leader_epoch,
            "magic": one.magic,
            "crc": one.crc,
            "size_bytes": one.size_bytes,
            "codec": one.codec,
            "timestamp_type": one.timestamp_type,
            "is_transactional": one.is_transactional,
            "is_control": one.is_control,
            "delete_horizon_ms": _nullable(one.delete_horizon_ms, one.delete_horizon_ms < 0),
            "base_timestamp_ms": _nullable(one.base_timestamp_ms, one.base_timestamp_ms == -1),
            "max_timestamp_ms": _nullable(one.max_timestamp_ms, one.max_timestamp_ms == -1),
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "base_sequence": one.base_sequence,
            "records_count": one.records_count,
            "control_type": _nullable(one.control_type, ~is_marker),
            "coordinator_epoch": _nullable(one.coordinator_epoch, ~is_marker),
        },
    )


def _nullable(values: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(values, mask=mask)


def _batch(task: Task, kind: str, columns: Rows) -> pa.RecordBatch:
    """One Arrow batch in the physical schema; columns that the kind lacks are null."""
    count = len(columns["position"])
    fixed = {"kind": kind, "segment_id": task.segment_id, "replica_id": task.replica_id}
    arrays = []
    for field in _SCHEMA:
        value = columns.get(field.name)
        if field.name in fixed:
            arrays.append(pa.repeat(pa.scalar(fixed[field.name], field.type), count))
        elif value is None:
            arrays.append(pa.nulls(count, field.type))
        elif isinstance(value, pa.Array):
            arrays.append(value if value.type == field.type else value.cast(field.type))
        else:
            arrays.append(pa.array(value).cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def detail_batch(task: Task, kind: str, rows: list[Rows]) -> pa.RecordBatch:
    """Rows of a small kind: their own columns as JSON in `detail`."""
    return _batch(
        task,
        kind,
        {
            "position": pa.array([row.get("position", 0) for row in rows], pa.int64()),
            "base_offset": pa.array([row.get("base_offset") for row in rows], pa.int64()),
            "max_timestamp_ms": pa.array([row.get("max_timestamp_ms") for row in rows], pa.int64()),
            "detail": pa.array([json.dumps(row) for row in rows], pa.string()),
        },
    )


class _Extent:
    """What a file part holds, gathered chunk by chunk; becomes a row of `bronze.segment`."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.size = 0
        self.readable = self.batches = self.records = self.markers = 0
        self.first: int | None = None
        self.last: int | None = None
        self.first_crc: int | None = None
        self.last_crc: int | None = None
        self.epoch: int | None = None
        self.hole: int | None = None
        self.shortened: int | None = None
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.ends: list[tuple[int, int]] = []

    def add(self, one: BatchArrays) -> None:
        """Takes the headers of a chunk."""
        gaps = np.flatnonzero(one.base_offset[1:] != one.last_offset[:-1] + 1)
        if len(gaps) and (one.magic[gaps + 1] == 2).any():
            self.hole = int(one.base_offset[gaps[-1] + 1])
        is_new = one.magic == 2
        if self.last is not None and int(one.base_offset[0]) != self.last + 1 and is_new[0]:
            self.hole = max(int(one.base_offset[0]), self.hole or 0)
        short = np.flatnonzero(is_new & (one.records_count < one.last_offset - one.base_offset + 1))
        if len(short):
            self.shortened = int(one.last_offset[short[-1]])
        if self.first is None:
            self.first, self.first_crc = int(one.base_offset[0]), int(one.crc[0])
        self.last, self.last_crc = int(one.last_offset[-1]), int(one.crc[-1])
        self.epoch = max(int(one.partition_leader_epoch.max()), -1 if self.epoch is None else self.epoch)
        self.batches += len(one.position)
        self.records += int(one.records_count.sum())
        self.readable += int(one.size_bytes.sum())
        self.ends.append((int(one.position[-1]), self.last))
        is_marker = one.is_control & (one.producer_id >= 0)
        self.markers += int(is_marker.sum())
        self._times(one, is_marker)

    def _times(self, one: BatchArrays, is_marker: np.ndarray[Any, Any]) -> None:
        internal = self.task.topic in (TXN_TOPIC, OFFSETS_TOPIC, METADATA_TOPIC)
        stamped = np.ones(len(is_marker), np.bool_) if internal else is_marker | (one.timestamp_type == 1)
        times = one.max_timestamp_ms[stamped & (one.max_timestamp_ms >= 0)]
        if len(times):
            low, high = int(times.min()), int(times.max())
            self.first_ms = low if self.first_ms is None else min(low, self.first_ms)
            self.last_ms = high if self.last_ms is None else max(high, self.last_ms)

    def damage(self, damage: Damage) -> None:
        """Unreadable bytes in the middle: history begins anew behind them."""
        if damage.next_offset_hint is not None:
            self.hole = max(damage.next_offset_hint, self.hole or 0)

    def before(self, position: int) -> int | None:
        """Last offset that was read in front of a position, as far as chunks tell."""
        offsets = [offset for at, offset in self.ends if at < position]
        return offsets[-1] if offsets else None

    def row(self) -> Rows:
        """Columns of `bronze.segment`."""
        epoch = None if self.epoch is None or self.epoch < 0 else self.epoch
        return {
            "file": self.task.name,
            "base_offset": self.task.base_offset,
            "size_bytes": self.size,
            "readable_bytes": self.readable,
            "first_offset": self.first,
            "last_offset": self.last,
            "batch_count": self.batches,
            "record_count": self.records,
            "first_crc": self.first_crc,
            "last_crc": self.last_crc,
            "max_leader_epoch": epoch,
            "hole_end_offset": self.hole,
            "shortened_end_offset": self.shortened,
            "first_broker_ms": self.first_ms,
            "last_broker_ms": self.last_ms,
            "marker_count": self.markers,
            "position": self.task.start,
        }
