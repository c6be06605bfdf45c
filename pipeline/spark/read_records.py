"""Records of the internal topics as columns of `bronze.ENTRY`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.wire import group_offsets, txn_state
from pipeline.wire.arrays import Chunk
from pipeline.wire.batch import Damage
from pipeline.wire.group_offsets import OffsetCommit, UnknownGroupRecord

Columns = dict[str, Any]
Failures = Sequence[tuple[int, int | None, str, str]]
PARTITION_SEPARATOR, LIST_SEPARATOR = "\x00", "\x01"


def txn_rows(chunk: Chunk) -> tuple[Columns, list[Damage]]:
    """Rows of kind txn_state from one chunk, and the batches whose records could not be decoded."""
    found = txn_state.decode_batches(chunk, _data_batches(chunk))
    damages = _damages(chunk, found.failures)
    if not found.entries:
        return {}, damages
    names: dict[tuple[tuple[str, int], ...], str] = {}
    listed = []
    for entry in found.entries:
        text = names.get(entry.partitions)
        if text is None:
            text = names[entry.partitions] = LIST_SEPARATOR.join(
                f"{topic}{PARTITION_SEPARATOR}{number}" for topic, number in entry.partitions
            )
        listed.append(text)
    fields = _transposed(found.entries, txn_state.TxnEntry._fields)
    is_value = [version is not None for version in fields["value_version"]]
    columns = _place(chunk, found.batch_index, found.offset)
    columns |= {
        "producer_id": pa.array(fields["producer_id"], pa.int64()),
        "producer_epoch": pa.array(fields["producer_epoch"], pa.int32()),
        "transactional_id": pa.array(fields["transactional_id"], pa.string()),
        "value_version": pa.array(fields["value_version"], pa.int32()),
        "txn_timeout_ms": pa.array(fields["txn_timeout_ms"], pa.int32()),
        "state": _where(fields["state"], is_value, pa.int32()),
        "partitions": pa.array(listed, pa.string()),
        "last_update_ms": _where(fields["last_update_ms"], is_value, pa.int64()),
        "start_ms": _known(fields["start_ms"]),
        "previous_producer_id": pa.array(fields["previous_producer_id"], pa.int64()),
        "next_producer_id": pa.array(fields["next_producer_id"], pa.int64()),
        "client_transaction_version": pa.array(fields["client_transaction_version"], pa.int32()),
        "next_producer_epoch": pa.array(fields["next_producer_epoch"], pa.int32()),
    }
    return columns, damages


def commit_rows(chunk: Chunk) -> tuple[Columns, list[dict[str, Any]], list[Damage]]:
    """Rows of kind offset_commit and group_metadata from one chunk, and what could not be decoded."""
    found = group_offsets.decode_batches(chunk, _data_batches(chunk))
    damages = _damages(chunk, found.failures)
    is_commit = [isinstance(entry, OffsetCommit) for entry in found.entries]
    groups = [
        _group_row(chunk, found.batch_index[at], found.offset[at], found.entries[at])
        for at, mine in enumerate(is_commit)
        if not mine
    ]
    chosen = [at for at, mine in enumerate(is_commit) if mine]
    if not chosen:
        return {}, groups, damages
    index = [found.batch_index[at] for at in chosen]
    fields = _transposed([found.entries[at] for at in chosen], OffsetCommit._fields)
    is_value = [version is not None for version in fields["value_version"]]
    columns = _place(chunk, index, [found.offset[at] for at in chosen])
    columns |= {
        "is_transactional": chunk.arrays.is_transactional[index],
        "producer_id": chunk.arrays.producer_id[index],
        "producer_epoch": chunk.arrays.producer_epoch[index],
        "value_version": pa.array(fields["value_version"], pa.int32()),
        "group_id": pa.array(fields["group_id"], pa.string()),
        "topic": pa.array(fields["topic"], pa.string()),
        "partition": pa.array(fields["partition"], pa.int32()),
        "committed_offset": _where(fields["offset"], is_value, pa.int64()),
        "committed_leader_epoch": pa.array(fields["leader_epoch"], pa.int32()),
        "commit_timestamp_ms": _known(fields["commit_timestamp_ms"]),
    }
    return columns, groups, damages


def _transposed(entries: Sequence[tuple[Any, ...]], names: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    """Field name -> its values, of entries of one kind."""
    return dict(zip(names, zip(*entries, strict=True), strict=True))


def _data_batches(chunk: Chunk) -> list[int]:
    one = chunk.arrays
    chosen: list[int] = np.flatnonzero(~one.is_control & (one.magic == 2) & (one.records_count > 0)).tolist()
    return chosen


def _place(chunk: Chunk, index: list[int], offset: list[int]) -> Columns:
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


def _where(values: Any, mask: list[bool], kind: pa.DataType) -> pa.Array:
    return pa.array([value if keep else None for value, keep in zip(values, mask, strict=True)], kind)


def _known(values: Any) -> pa.Array:
    """Times; -1 is null."""
    array = np.asarray(values, np.int64)
    return pa.array(array, mask=array < 0)


def _damages(chunk: Chunk, failures: Failures) -> list[Damage]:
    one = chunk.arrays
    return [
        Damage(int(one.position[index]), int(one.size_bytes[index]), reason, detail, None)
        for index, _, reason, detail in failures
    ]


def _group_row(
    chunk: Chunk, index: int, offset: int, entry: group_offsets.Entry
) -> dict[str, Any]:
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
