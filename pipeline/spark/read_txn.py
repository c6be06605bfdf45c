"""Records of `__transaction_state` as columns of `bronze.ENTRY`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeline.spark.read_records import (
    Columns,
    damages_of,
    data_batches,
    known,
    place_columns,
    transposed,
    where,
)
from pipeline.wire import txn_state, txn_vector
from pipeline.wire.arrays import Array, Chunk
from pipeline.wire.batch import Damage
from pipeline.wire.cursor import text
from pipeline.wire.keyed import Decoded
from pipeline.wire.txn_vector import TxnColumns

PARTITION_SEPARATOR, LIST_SEPARATOR = "\x00", "\x01"
_AS_THEY_ARE = ("producer_id", "producer_epoch", "txn_timeout_ms")


def txn_rows(chunk: Chunk) -> tuple[list[Columns], list[Damage]]:
    """Rows of kind txn_state from one chunk, and the batches whose records could not be decoded.

    Returns:
        Groups of rows, each in file order: records in the usual layouts, then the others.
    """
    found, unusual = txn_vector.read(chunk, data_batches(chunk))
    lists, is_right = _partition_lists(chunk, found)
    unusual = np.union1d(unusual, found.batch_index[~is_right])
    groups = [_usual_rows(chunk, found, lists, is_right)] if is_right.any() else []
    if not len(unusual):
        return groups, []
    others, damages = _unusual_rows(chunk, unusual.tolist())
    return [*groups, *others], damages


def _usual_rows(chunk: Chunk, found: TxnColumns, lists: pa.Array, is_right: Array) -> Columns:
    index = found.batch_index[is_right]
    no_value = ~found.is_value[is_right]
    start_ms = found.start_ms[is_right]
    client_version = found.client_transaction_version[is_right]
    has_client = found.has_client_version[is_right]
    ids = _spans(chunk.data, *(part[is_right] for part in found.id_span)).dictionary_encode()
    names = [text(raw) for raw in ids.dictionary.to_pylist()]
    absent = np.full(len(index), -1, np.int64)
    columns = place_columns(chunk, index, chunk.arrays.base_offset[index])
    columns |= {name: getattr(found, name)[is_right] for name in _AS_THEY_ARE}
    columns |= {
        "transactional_id": pa.array(names, pa.string()).take(ids.indices),
        "value_version": pa.array(found.value_version[is_right], mask=no_value),
        "state": pa.array(found.state[is_right], mask=no_value),
        "partitions": lists.filter(pa.array(is_right)),
        "last_update_ms": pa.array(found.last_update_ms[is_right], mask=no_value),
        "start_ms": pa.array(start_ms, mask=start_ms < 0),
        "previous_producer_id": absent,
        "next_producer_id": absent,
        "client_transaction_version": pa.array(client_version, mask=~has_client),
        "next_producer_epoch": absent,
    }
    return columns


def _partition_lists(chunk: Chunk, found: TxnColumns) -> tuple[pa.Array, Array]:
    """The partition lists as text, each distinct one decoded once, and which records are right."""
    texts = np.full(len(found.is_value), "", dtype=object)
    is_right = ~found.is_value
    for version in (0, 1):
        mine = np.flatnonzero(found.value_version == version)
        raw = _spans(chunk.data, *(part[mine] for part in found.list_span)).dictionary_encode()
        lists = [txn_vector.partition_list(version, one) for one in raw.dictionary.to_pylist()]
        which = raw.indices.to_numpy()
        texts[mine] = np.array([_listed(one or ()) for one in lists], dtype=object)[which]
        is_right[mine] = np.array([one is not None for one in lists], dtype=np.bool_)[which]
    return pa.array(texts, pa.string()), is_right


def _spans(data: bytes, start: Array, size: Array) -> pa.BinaryArray:
    """The bytes of each span, as one array."""
    offsets = np.concatenate(([0], np.cumsum(size))).astype(np.int32)
    places = np.repeat(start - offsets[:-1], size) + np.arange(offsets[-1])
    values = np.frombuffer(data, np.uint8)[places]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.binary(), len(size), buffers)


def _listed(partitions: txn_state.Partitions) -> str:
    return LIST_SEPARATOR.join(
        f"{topic}{PARTITION_SEPARATOR}{number}" for topic, number in partitions
    )


def _unusual_rows(chunk: Chunk, batches: list[int]) -> tuple[list[Columns], list[Damage]]:
    found = txn_state.decode_batches(chunk, batches)
    damages = damages_of(chunk, found.failures)
    return [decoded_rows(chunk, found)] if found.entries else [], damages


def decoded_rows(chunk: Chunk, found: Decoded[txn_state.TxnEntry]) -> Columns:
    """Columns of records that are decoded, one at least."""
    fields = transposed(found.entries, txn_state.TxnEntry._fields)
    is_value = [version is not None for version in fields["value_version"]]
    columns = place_columns(chunk, found.batch_index, found.offset)
    columns |= {
        "producer_id": pa.array(fields["producer_id"], pa.int64()),
        "producer_epoch": pa.array(fields["producer_epoch"], pa.int32()),
        "transactional_id": pa.array(fields["transactional_id"], pa.string()),
        "value_version": pa.array(fields["value_version"], pa.int32()),
        "txn_timeout_ms": pa.array(fields["txn_timeout_ms"], pa.int32()),
        "state": where(fields["state"], is_value, pa.int32()),
        "partitions": pa.array([_listed(one) for one in fields["partitions"]], pa.string()),
        "last_update_ms": where(fields["last_update_ms"], is_value, pa.int64()),
        "start_ms": known(fields["start_ms"]),
        "previous_producer_id": pa.array(fields["previous_producer_id"], pa.int64()),
        "next_producer_id": pa.array(fields["next_producer_id"], pa.int64()),
        "client_transaction_version": pa.array(fields["client_transaction_version"], pa.int32()),
        "next_producer_epoch": pa.array(fields["next_producer_epoch"], pa.int32()),
    }
    return columns
