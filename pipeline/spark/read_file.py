"""One file in, Arrow batches of `bronze.ENTRY` out; runs in the executors' Python workers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pipeline.replay import index_check
from pipeline.replay.index_check import IndexEntries
from pipeline.spark.entry import Place, Row, detail_batch, entry_batch, header_batch
from pipeline.spark.exports import export_rows
from pipeline.spark.extent import Extent
from pipeline.spark.files import EXPORT, TEXT, kind_of, opened, read_bounded
from pipeline.spark.read_records import commit_rows
from pipeline.spark.read_sidecar import sidecar_rows
from pipeline.spark.read_txn import txn_rows
from pipeline.spark.tasks import Task
from pipeline.spark.text_rows import text_rows
from pipeline.wire.arrays import Chunk
from pipeline.wire.batch import Damage
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS
from pipeline.wire.scan import scan
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

CHANGED = "changed"
"""Reason of the row that says that a file was written to while it was read."""


def read_task(task: Task, *, headers_only: bool = False) -> Iterator[pa.RecordBatch]:
    """Rows of one file; whatever cannot be read is a row as well, never an exception.

    Args:
        task: What to read.
        headers_only: Every batch is a row of kind batch, and no record is decoded; else batches of
            `__transaction_state` and `__consumer_offsets` are rows only where a producer's history
            needs them.

    Yields:
        Batches of one kind each: those of a log in file order, then one scan row, then its damage.
    """
    place = Place(task.segment_id, task.replica_id)
    if kind_of(task.path) == TEXT:
        yield from text_rows(task, place, headers_only=headers_only)
        return
    if kind_of(task.path) == EXPORT:
        yield from export_rows(task, place)
        return
    if task.kind == "log":
        yield from _read_log(task, place, headers_only)
        return
    for kind, rows in sidecar_rows(task, DEFAULT_LIMITS):
        if rows:
            yield detail_batch(place, kind, rows)


def _read_log(task: Task, place: Place, headers_only: bool) -> Iterator[pa.RecordBatch]:
    extent = Extent(task.topic, task.start, _indexes(task))
    damages: list[Row] = []

    def note(damage: Damage) -> None:
        damages.append(_damage_row(task, damage, extent))

    try:
        with opened(task.path) as file:
            before, extent.size = file.version, file.size
            for piece in scan(
                file.read_at,
                extent.size,
                start=task.start,
                end=task.end,
                first_offset=task.base_offset,
            ):
                if isinstance(piece, Damage):
                    extent.damage(piece)
                    note(piece)
                    continue
                extent.add(piece.arrays)
                rows, undecodable = _chunk_rows(task.topic, place, piece, headers_only)
                for damage in undecodable:
                    note(damage)
                yield from rows
            if extent.size != task.size or file.version != before:
                note(Damage(task.start, 0, CHANGED, "changed during read", None))
    except OSError as error:
        note(Damage(task.start, 0, "io", error.strerror or "cannot be read", None))
    yield detail_batch(place, "scan", [extent.row(task.name, task.base_offset)])
    if damages:
        yield detail_batch(place, "unreadable", damages)


def _indexes(task: Task) -> list[IndexEntries]:
    """The indexes beside a log; one that cannot be read cannot be held against it (a broker makes it anew)."""
    found = []
    for kind, path in task.indexes:
        try:
            found.append(index_check.entries(kind, read_bounded(path), task.base_offset))
        except (OSError, WireError):
            continue
    return found


def _damage_row(task: Task, damage: Damage, extent: Extent) -> Row:
    end = damage.position + damage.size_bytes
    return {
        "position": damage.position,
        "file": task.name,
        "size_bytes": damage.size_bytes,
        "reason": damage.reason,
        "explanation": damage.detail,
        "after_offset": extent.before(damage.position),
        "next_offset": damage.next_offset_hint,
        "is_tail": end >= extent.size and damage.next_offset_hint is None,
    }


def _chunk_rows(
    topic: str, place: Place, chunk: Chunk, headers_only: bool
) -> tuple[list[pa.RecordBatch], list[Damage]]:
    """Rows of one chunk, and the batches whose records could not be decoded."""
    arrays = chunk.arrays
    if headers_only or topic not in (TXN_TOPIC, OFFSETS_TOPIC):
        return [header_batch(place, arrays)], []
    found = []
    if topic == TXN_TOPIC:
        groups, undecodable = txn_rows(chunk)
        found += [entry_batch(place, "txn_state", rows) for rows in groups]
        wanted = np.flatnonzero(arrays.is_control)
    else:
        commits, group_rows, undecodable = commit_rows(chunk)
        if commits:
            found.append(entry_batch(place, "offset_commit", commits))
        if group_rows:
            found.append(detail_batch(place, "group_metadata", group_rows))
        wanted = np.flatnonzero((arrays.producer_id >= 0) | arrays.is_control)
    if len(wanted):
        found.append(header_batch(place, arrays, wanted))
    return found, undecodable
