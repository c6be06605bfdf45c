"""Rows of `bronze.ENTRY` from one section of a dump text, as the reader of bytes makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.spark import read_records, read_txn
from pipeline.spark.entry import Place, Row, detail_batch, entry_batch, header_batch
from pipeline.spark.extent import Extent
from pipeline.spark.files import MARK, opened
from pipeline.spark.read_sidecar import aborted_rows, snapshot_rows
from pipeline.spark.tasks import Task
from pipeline.spark.text_input import is_damage
from pipeline.wire.arrays import Chunk, from_batches
from pipeline.wire.dump_text import Section, parse
from pipeline.wire.keyed import Decoded
from pipeline.wire.txn_state import TxnEntry
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

WHOLE_LOG_DIR = 0
"""Replica of lines that say something of the text, not of the log."""


def text_rows(task: Task, place: Place, *, headers_only: bool) -> Iterator[pa.RecordBatch]:
    """Rows of one section, one scan row, and a row for each line that gave none.

    Args:
        task: The section: its place says where it lies in the text.
        place: Where its rows belong.
        headers_only: As `read_file.read_task`.
    """
    _, start, _, line, _ = task.path.split(MARK)
    try:
        with opened(task.path) as file:
            text = file.read_at(0, file.size)
    except OSError as error:
        row = _unread(task, 0, 0, "io", error.strerror or "cannot be read")
        yield detail_batch(place, "unreadable", [row])
        return
    for section in parse(text, int(start), int(line)):
        if task.kind == "log":
            yield from _log(task, place, section, headers_only)
        elif section.snapshots:
            yield detail_batch(place, "sidecar", snapshot_rows(task, section.snapshots))
        elif section.aborted:
            yield detail_batch(place, "sidecar", aborted_rows(task, section.aborted))
        yield from _not_read(task, place, section)
        return


def _log(
    task: Task, place: Place, section: Section, headers_only: bool
) -> Iterator[pa.RecordBatch]:
    extent = Extent(task.topic, 0)
    if section.batches:
        ordered = sorted(
            range(len(section.batches)), key=lambda at: section.batches[at].base_offset
        )
        kept = _rising(section, ordered)
        arrays = from_batches([section.batches[at] for at in kept])
        extent.add(arrays)
        extent.size = int(arrays.size_bytes.sum())
        chunk = Chunk(arrays, b"", 0)
        moved = {at: index for index, at in enumerate(kept)}
        entries = [(moved[at], offset, one) for at, offset, one in section.entries if at in moved]
        if headers_only or task.topic not in (TXN_TOPIC, OFFSETS_TOPIC):
            yield header_batch(place, arrays)
        else:
            yield from _records(task.topic, place, chunk, entries)
    yield detail_batch(place, "scan", [extent.row(task.name, task.base_offset)])


def _rising(section: Section, ordered: list[int]) -> list[int]:
    """Batches by offset; of two that overlap, which one hand put together, the first counts."""
    kept: list[int] = []
    last = -1
    for at in ordered:
        if section.batches[at].base_offset > last:
            kept.append(at)
            last = section.batches[at].last_offset
    return kept


def _records(
    topic: str, place: Place, chunk: Chunk, entries: list[tuple[int, int, Any]]
) -> Iterator[pa.RecordBatch]:
    arrays = chunk.arrays
    is_txn = topic == TXN_TOPIC
    mine = [one for one in entries if isinstance(one[2], TxnEntry) == is_txn]
    found: Decoded[Any] = Decoded(
        [index for index, _, _ in mine], [at for _, at, _ in mine], [one for _, _, one in mine], []
    )
    if mine and is_txn:
        yield entry_batch(place, "txn_state", read_txn.decoded_rows(chunk, found))
    elif mine:
        commits, groups = read_records.decoded_rows(chunk, found)
        if commits:
            yield entry_batch(place, "offset_commit", commits)
        if groups:
            yield detail_batch(place, "group_metadata", groups)
    wanted = np.flatnonzero(
        arrays.is_control if is_txn else (arrays.producer_id >= 0) | arrays.is_control
    )
    if len(wanted):
        yield header_batch(place, arrays, wanted)


def _not_read(task: Task, place: Place, section: Section) -> Iterator[pa.RecordBatch]:
    rows = [
        _unread(task, one.position, one.size_bytes, one.reason, f"line {one.line}: {one.detail}")
        for one in section.not_read
    ]
    damage = [row for row, one in zip(rows, section.not_read, strict=True) if is_damage(one)]
    others = [row for row, one in zip(rows, section.not_read, strict=True) if not is_damage(one)]
    if damage:
        yield detail_batch(place, "unreadable", damage)
    if others:
        yield detail_batch(Place(place.segment_id, WHOLE_LOG_DIR), "unreadable", others)


def _unread(task: Task, position: int, size: int, reason: str, why: str) -> Row:
    return {
        "position": position,
        "file": task.name,
        "size_bytes": size,
        "reason": reason,
        "explanation": why,
        "after_offset": None,
        "next_offset": None,
        "is_tail": False,
    }
