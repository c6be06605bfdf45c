"""Records of `__consumer_offsets` as columns of `bronze.ENTRY`, and what both topics share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.wire import group_offsets
from pipeline.wire.arrays import Array, Chunk
from pipeline.wire.batch import Damage
from pipeline.wire.group_offsets import OffsetCommit, UnknownGroupRecord
from pipeline.wire.keyed import Decoded

Columns = dict[str, Any]
Failures = Sequence[tuple[int, int | None, str, str]]


def commit_rows(chunk: Chunk) -> tuple[Columns, list[dict[str, Any]], list[Damage]]:
    """Rows of kind offset_commit and group_metadata from one chunk, and what could not be decoded."""
    found = group_offsets.decode_batches(chunk, data_batches(chunk).tolist())
    return *decoded_rows(chunk, found), damages_of(chunk, found.failures)


def decoded_rows(
    chunk: Chunk, found: Decoded[group_offsets.Entry]
) -> tuple[Columns, list[dict[str, Any]]]:
    """Rows of kind offset_commit and group_metadata of records that are decoded."""
    is_commit = [isinstance(entry, OffsetCommit) for entry in found.entries]
    groups = [
        _group_row(chunk, found.batch_index[at], found.offset[at], found.entries[at])
        for at, mine in enumerate(is_commit)
        if not mine
    ]
    chosen = [at for at, mine in enumerate(is_commit) if mine]
    if not chosen:
        return {}, groups
    index = [found.batch_index[at] for at in chosen]
    fields = transposed([found.entries[at] for at in chosen], OffsetCommit._fields)
    is_value = [version is not None for version in fields["value_version"]]
    columns = place_columns(chunk, index, [found.offset[at] for at in chosen])
    columns |= {
        "is_transactional": chunk.arrays.is_transactional[index],
        "producer_id": chunk.arrays.producer_id[index],
        "producer_epoch": chunk.arrays.producer_epoch[index],
        "value_version": pa.array(fields["value_version"], pa.int32()),
        "group_id": pa.array(fields["group_id"], pa.string()),
        "topic": pa.array(fields["topic"], pa.string()),
        "partition": pa.array(fields["partition"], pa.int32()),
        "committed_offset": where(fields["offset"], is_value, pa.int64()),
        "committed_leader_epoch": pa.array(fields["leader_epoch"], pa.int32()),
        "commit_timestamp_ms": known(fields["commit_timestamp_ms"]),
    }
    return columns, groups


def transposed(
    entries: Sequence[tuple[Any, ...]], names: tuple[str, ...]
) -> dict[str, tuple[Any, ...]]:
    """Field name -> its values, of entries of one kind."""
    return dict(zip(names, zip(*entries, strict=True), strict=True))


def data_batches(chunk: Chunk) -> Array:
    """Indices of the batches that hold records of the coordinator."""
    one = chunk.arrays
    return np.flatnonzero(~one.is_control & (one.magic == 2) & (one.records_count > 0))


def place_columns(
    chunk: Chunk, index: Sequence[int] | Array, offset: Sequence[int] | Array
) -> Columns:
    """Columns that say where each record lies.

    Args:
        chunk: What the records come from.
        index: Batch of each record.
        offset: Offset of each record.
    """
    one = chunk.arrays
    stamp = one.max_timestamp_ms[index]
    return {
        "position": one.position[index],
        "base_offset": pa.array(offset, pa.int64()),
        "last_offset": pa.array(offset, pa.int64()),
        "partition_leader_epoch": one.partition_leader_epoch[index],
        "magic": one.magic[index],
        "crc": one.crc[index],
        "size_bytes": one.size_bytes[index],
        "max_timestamp_ms": pa.array(stamp, mask=stamp < 0),
    }


def where(values: Any, mask: list[bool], kind: pa.DataType) -> pa.Array:
    """Values, null where the mask says so."""
    return pa.array(
        [value if keep else None for value, keep in zip(values, mask, strict=True)], kind
    )


def known(values: Any) -> pa.Array:
    """Times; -1 is null."""
    array = np.asarray(values, np.int64)
    return pa.array(array, mask=array < 0)


def damages_of(chunk: Chunk, failures: Failures) -> list[Damage]:
    """Batches of which a record could not be decoded."""
    one = chunk.arrays
    return [
        Damage(int(one.position[index]), int(one.size_bytes[index]), reason, detail, None)
        for index, _, reason, detail in failures
    ]


def _group_row(chunk: Chunk, index: int, offset: int, entry: group_offsets.Entry) -> dict[str, Any]:
    stamp = int(chunk.arrays.max_timestamp_ms[index])
    row: dict[str, Any] = {
        "position": int(chunk.arrays.position[index]),
        "base_offset": offset,
        "max_timestamp_ms": stamp if stamp >= 0 else None,
    }
    if isinstance(entry, UnknownGroupRecord):
        return row | {"record_type": entry.record_type}
    assert isinstance(entry, group_offsets.GroupRecord)
    return row | {
        "record_type": entry.record_type,
        "group_id": entry.group_id,
        "member_id": entry.member_id,
        "value_version": entry.value_version,
        "generation_or_epoch": entry.generation_or_epoch,
        "member_count": entry.member_count,
        "protocol_type": entry.protocol_type,
    }
