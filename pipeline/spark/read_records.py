"""Records of the internal topics as columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeline.wire import group_offsets, txn_state
from pipeline.wire.batch import Damage
from pipeline.wire.errors import WireError
from pipeline.wire.record import HEADER_BYTES, Record, records
from pipeline.wire.scan import Chunk

Columns = dict[str, Any]
PARTITION_SEPARATOR, LIST_SEPARATOR = "\x00", "\x01"


def txn_rows(chunk: Chunk) -> tuple[Columns, list[Damage]]:
    """Rows of kind txn_state from one chunk, and the batches whose records could not be decoded."""
    out: dict[str, list[Any]] = {name: [] for name in _TXN}
    append = [out[name].append for name in _TXN]
    damages: list[Damage] = []
    names: dict[tuple[tuple[str, int], ...], str] = {}
    for header, found in _decoded(chunk, damages):
        position, size, base, epoch, crc, base_ms, max_ms = header
        for record in found:
            if record.key is None:
                damages.append(Damage(position, size, "bad_record", "record without a key", None))
                continue
            try:
                entry = txn_state.decode(record.key, record.value)
            except WireError as error:
                damages.append(Damage(position, size, error.reason, str(error), None))
                continue
            listed = names.get(entry.partitions)
            if listed is None:
                listed = LIST_SEPARATOR.join(
                    f"{topic}{PARTITION_SEPARATOR}{number}" for topic, number in entry.partitions
                )
                names[entry.partitions] = listed
            is_value = entry.value_version is not None
            stamp = base_ms + record.timestamp_delta
            row = (
                position, base + record.offset_delta, base + record.offset_delta, epoch, 2, crc, size,
                stamp if base_ms >= 0 else max_ms, entry.producer_id, entry.producer_epoch,
                entry.transactional_id, entry.value_version, entry.txn_timeout_ms,
                entry.state if is_value else None, listed,
                entry.last_update_ms if is_value else None,
                entry.start_ms if entry.start_ms >= 0 else None,
                entry.previous_producer_id, entry.next_producer_id, entry.client_transaction_version,
                entry.next_producer_epoch,
            )
            for add, value in zip(append, row, strict=True):
                add(value)
    return _columns(out, _TXN), damages


def commit_rows(chunk: Chunk) -> tuple[Columns, list[dict[str, Any]], list[Damage]]:
    """Rows of kind offset_commit and group_metadata from one chunk, and what could not be decoded."""
    out: dict[str, list[Any]] = {name: [] for name in _COMMIT}
    append = [out[name].append for name in _COMMIT]
    groups: list[dict[str, Any]] = []
    damages: list[Damage] = []
    producer = chunk.arrays.producer_id.tolist()
    producer_epoch = chunk.arrays.producer_epoch.tolist()
    transactional = chunk.arrays.is_transactional.tolist()
    index_of = {int(at): index for index, at in enumerate(chunk.arrays.position.tolist())}
    for header, found in _decoded(chunk, damages):
        position, size, base, epoch, crc, base_ms, max_ms = header
        index = index_of[position]
        for record in found:
            try:
                entry = group_offsets.decode(record.key, record.value)
            except WireError as error:
                damages.append(Damage(position, size, error.reason, str(error), None))
                continue
            offset = base + record.offset_delta
            if not isinstance(entry, group_offsets.OffsetCommit):
                groups.append(_group_row(entry, position, offset, max_ms))
                continue
            is_value = entry.value_version is not None
            row = (
                position, offset, offset, epoch, 2, crc, size, transactional[index],
                max_ms if max_ms >= 0 else None, producer[index], producer_epoch[index],
                entry.value_version, entry.group_id, entry.topic, entry.partition,
                entry.offset if is_value else None, entry.leader_epoch,
                entry.commit_timestamp_ms if entry.commit_timestamp_ms >= 0 else None,
            )
            for add, value in zip(append, row, strict=True):
                add(value)
    return _columns(out, _COMMIT), groups, damages


_TXN = {
    "position": pa.int64(), "base_offset": pa.int64(), "last_offset": pa.int64(),
    "partition_leader_epoch": pa.int32(), "magic": pa.int32(), "crc": pa.int64(),
    "size_bytes": pa.int64(), "max_timestamp_ms": pa.int64(), "producer_id": pa.int64(),
    "producer_epoch": pa.int32(), "transactional_id": pa.string(), "value_version": pa.int32(),
    "txn_timeout_ms": pa.int32(), "state": pa.int32(), "partitions": pa.string(),
    "last_update_ms": pa.int64(), "start_ms": pa.int64(), "previous_producer_id": pa.int64(),
    "next_producer_id": pa.int64(), "client_transaction_version": pa.int32(),
    "next_producer_epoch": pa.int32(),
}
_COMMIT = {
    "position": pa.int64(), "base_offset": pa.int64(), "last_offset": pa.int64(),
    "partition_leader_epoch": pa.int32(), "magic": pa.int32(), "crc": pa.int64(),
    "size_bytes": pa.int64(), "is_transactional": pa.bool_(), "max_timestamp_ms": pa.int64(),
    "producer_id": pa.int64(), "producer_epoch": pa.int32(), "value_version": pa.int32(),
    "group_id": pa.string(), "topic": pa.string(), "partition": pa.int32(),
    "committed_offset": pa.int64(), "committed_leader_epoch": pa.int32(),
    "commit_timestamp_ms": pa.int64(),
}
Header = tuple[int, int, int, int, int, int, int]


def _columns(out: dict[str, list[Any]], types: dict[str, pa.DataType]) -> Columns:
    if not out["position"]:
        return {}
    return {name: pa.array(values, types[name]) for name, values in out.items()}


def _decoded(chunk: Chunk, damages: list[Damage]) -> list[tuple[Header, list[Record]]]:
    """Records of each data batch of a chunk with what its header says; broken batches become damage."""
    one = chunk.arrays
    result = []
    for position, size, base, epoch, crc, base_ms, max_ms, attributes, count, is_control, magic in zip(
        one.position.tolist(), one.size_bytes.tolist(), one.base_offset.tolist(),
        one.partition_leader_epoch.tolist(), one.crc.tolist(), one.base_timestamp_ms.tolist(),
        one.max_timestamp_ms.tolist(), one.attributes.tolist(), one.records_count.tolist(),
        one.is_control.tolist(), one.magic.tolist(), strict=True,
    ):
        if is_control or magic < 2 or not count:
            continue
        begin = position - chunk.data_position
        body = chunk.data[begin + HEADER_BYTES : begin + size]
        try:
            found = records(body, attributes, count)
        except WireError as error:
            damages.append(Damage(position, size, error.reason, str(error), None))
            continue
        if attributes & 0x40:
            base_ms = -1
        result.append(((position, size, base, epoch, crc, base_ms, max_ms), found))
    return result


def _group_row(
    entry: group_offsets.GroupRecord | group_offsets.UnknownGroupRecord, position: int, offset: int, ms: int
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "position": position, "base_offset": offset, "max_timestamp_ms": ms if ms >= 0 else None,
        "record_type": entry.record_type,
    }
    if isinstance(entry, group_offsets.GroupRecord):
        row |= {
            "group_id": entry.group_id, "member_id": entry.member_id, "value_version": entry.value_version,
            "generation_or_epoch": entry.generation_or_epoch, "member_count": entry.member_count,
            "protocol_type": entry.protocol_type,
        }
    return row
