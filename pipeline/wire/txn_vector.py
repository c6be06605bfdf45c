"""Records of `__transaction_state` by the thousand: the layouts that brokers write, as arrays.

A batch of one uncompressed record without headers, in value version 0, or in version 1 with no tag
or only the client's transaction version, is read by position. Whatever looks different is left to
`txn_state.decode`, which also decides what a partition list means.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.wire import txn_state
from pipeline.wire.arrays import Array, Chunk, gather
from pipeline.wire.batch import CODEC_NONE
from pipeline.wire.errors import WireError
from pipeline.wire.header import HEADER
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

_HEAD_FIELDS = (
    ("version", ">i2"),
    ("producer_id", ">i8"),
    ("producer_epoch", ">i2"),
    ("txn_timeout_ms", ">i4"),
    ("state", "i1"),
)
_HEAD = np.dtype(list(_HEAD_FIELDS))
_TIMES = np.dtype([("last_update_ms", ">i8"), ("start_ms", ">i8")])
_KEY = np.dtype([("version", ">i2"), ("size", ">i2")])
_INT16 = np.dtype(">i2")
_ONLY_CLIENT_VERSION = np.frombuffer(b"\x01\x02\x02", np.uint8)  # one tag, numbered 2, two bytes
_TAGS_CLIENT_VERSION = len(_ONLY_CLIENT_VERSION) + _INT16.itemsize
_TAGS_NONE = 1
_PROBE = struct.Struct(">hqhib")
_PROBE_TIMES = (0x1122334455667788, 0x2233445566778811)
_SMALLEST = 16  # bytes behind the header of a batch whose record has a key
_MAX_BYTE = 0x7F
Bytes = NDArray[np.uint8]


class TxnColumns(NamedTuple):
    """Records of one chunk, one array element each; spans are (first byte, size) in the chunk's data.

    Attributes:
        batch_index: index of the batch within the chunk's arrays.
        id_span: the transactional id.
        list_span: the partition list, as `partition_list` takes it; empty for a tombstone.
        is_value: false for a tombstone, whose other fields are -1.
        value_version: 0 or 1.
        producer_id: as `TxnEntry`, like the following.
        producer_epoch: producer epoch.
        txn_timeout_ms: transaction timeout.
        state: wire id.
        last_update_ms: txnLastUpdateTimestamp.
        start_ms: txnStartTimestamp.
        client_transaction_version: tag 2.
        has_client_version: whether tag 2 is there.
    """

    batch_index: Array
    id_span: tuple[Array, Array]
    list_span: tuple[Array, Array]
    is_value: Array
    value_version: Array
    producer_id: Array
    producer_epoch: Array
    txn_timeout_ms: Array
    state: Array
    last_update_ms: Array
    start_ms: Array
    client_transaction_version: Array
    has_client_version: Array


def read(chunk: Chunk, indices: Array) -> tuple[TxnColumns, Array]:
    """Read the records of a chunk's batches; never raises on bytes.

    Args:
        chunk: what `scan.scan` gave.
        indices: batches to read; no control batches.

    Returns:
        The records in the common layouts, and the indices of the batches that need another way.
        A record is only right when `partition_list` accepts its list.
    """
    arrays, data, origin = chunk
    raw: Bytes = np.frombuffer(data, np.uint8)
    usual = (arrays.magic == 2) & (arrays.codec == CODEC_NONE) & (arrays.records_count == 1)
    usual &= arrays.size_bytes >= HEADER.size + _SMALLEST
    chosen = indices[usual[indices]]
    start = arrays.position[chosen] - origin
    end = start + arrays.size_bytes[chosen]
    size, at = _varint(raw, start + HEADER.size)
    good = size == (end - at) << 1
    # Attributes are unused; a first record has timestamp delta 0 and offset delta 0, no headers.
    good &= (raw[at + 1] == 0) & (raw[at + 2] == 0) & (raw[end - 1] == 0)
    size, key = _varint(raw, at + 3)
    stop = key + (size >> 1)
    good &= (size >= 2 * _KEY.itemsize) & (size & 1 == 0) & (stop < end - 1)
    heads = gather(data, _KEY, np.where(good, key, 0))
    good &= (heads["version"] == txn_state.KEY_VERSION) & (heads["size"] == (size >> 1) - 4)
    size, value = _varint(raw, np.where(good, stop, 0))
    is_tombstone = good & (size == 1) & (value == end - 1)
    is_value = good & (size & 1 == 0) & (value + (size >> 1) == end - 1)
    fields, list_span, is_read = _values(data, raw, value, size >> 1, is_value)
    kept = np.flatnonzero(is_tombstone | is_read)
    id_span = (key[kept] + _KEY.itemsize, (stop - key)[kept] - _KEY.itemsize)
    spans = (id_span, (list_span[0][kept], list_span[1][kept]))
    rest = [field[kept] for field in fields]
    found = TxnColumns(chosen[kept], *spans, is_read[kept], *rest)
    return found, np.setdiff1d(indices, found.batch_index, assume_unique=True)


def _values(
    data: bytes, raw: Bytes, value: Array, size: Array, is_value: Array
) -> tuple[list[Array], tuple[Array, Array], Array]:
    """Fields of values in `TxnColumns` order, their partition lists, and which could be read."""
    is_read = is_value & (size > _HEAD.itemsize + _TIMES.itemsize)
    # Positions of what is not read are 0, where any value will do: it becomes -1.
    value, size = np.where(is_read, value, 0), np.where(is_read, size, 64)
    heads = gather(data, _HEAD, value)
    version = heads["version"]
    end = value + size
    first = value + _HEAD.itemsize
    has_tag = version == 1
    for back, byte in zip((5, 4, 3), _ONLY_CLIENT_VERSION, strict=True):
        has_tag &= raw[end - back] == byte
    no_tag = (version == 1) & ~has_tag & (raw[end - 1] == 0)
    tags = np.where(has_tag, _TAGS_CLIENT_VERSION, np.where(no_tag, _TAGS_NONE, 0))
    times_at = end - tags - _TIMES.itemsize
    is_read &= ((version == 0) | has_tag | no_tag) & (times_at > first)
    times = gather(data, _TIMES, np.where(is_read, times_at, 0))
    client = gather(data, _INT16, np.where(is_read, end - _INT16.itemsize, 0))

    def known(values: Array, where: Array = is_read) -> Array:
        return np.where(where, values, -1).astype(np.int64)

    fields = [known(heads[name]) for name, _ in _HEAD_FIELDS]
    lists = (np.where(is_read, first, 0), np.where(is_read, times_at - first, 0))
    stamps = [known(times[name]) for name in ("last_update_ms", "start_ms")]
    return [*fields, *stamps, known(client, is_read & has_tag), is_read & has_tag], lists, is_read


def _varint(raw: Bytes, at: Array) -> tuple[Array, Array]:
    """An unsigned varint of one or two bytes at each position, -1 where it is longer; and its end."""
    first = raw[at].astype(np.int64)
    second = raw[at + 1].astype(np.int64)
    is_long = first > _MAX_BYTE
    value = np.where(is_long, first & _MAX_BYTE | second << 7, first)
    return np.where(is_long & (second > _MAX_BYTE), -1, value), at + 1 + is_long


def partition_list(
    version: int, raw: bytes, limits: Limits = DEFAULT_LIMITS
) -> txn_state.Partitions | None:
    """Decode a partition list as it stands between the state and the times of a value.

    Args:
        version: version of the value.
        raw: all bytes of the list.
        limits: bounds.

    Returns:
        (topic, partition), sorted; None when the bytes are not exactly one list.
    """
    tags = b"" if version == 0 else b"\x00"
    times = struct.pack(">qq", *_PROBE_TIMES)
    value = _PROBE.pack(version, 0, 0, 0, 0) + raw + times + tags
    try:
        entry = txn_state.decode(_PROBE_KEY, value, limits)
    except WireError:
        return None
    is_whole = (entry.last_update_ms, entry.start_ms, entry.unknown_tags) == (*_PROBE_TIMES, b"")
    return entry.partitions if is_whole else None


_PROBE_KEY = struct.pack(">hh", txn_state.KEY_VERSION, 0)
