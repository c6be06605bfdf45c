"""Records of `__transaction_state`.

Source: `TransactionLogKey.json`, `TransactionLogValue.json`, `TransactionLog`. Value version 0 is
the fixed layout; version 1 (transaction.version 1 and later) is flexible and has tagged fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from pipeline.wire.arrays import Chunk
from pipeline.wire.cursor import Cursor, read_uvarint, text
from pipeline.wire.errors import WireError
from pipeline.wire.keyed import Decoded, decode_each
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

KEY_VERSION = 0
TAG_PREVIOUS_PRODUCER_ID = 0
TAG_NEXT_PRODUCER_ID = 1
TAG_CLIENT_TRANSACTION_VERSION = 2
TAG_NEXT_PRODUCER_EPOCH = 3

_KEY = struct.Struct(">hh")  # version, length of the transactional id
_HEAD = struct.Struct(
    ">"
    "h"  # version
    "q"  # producerId
    "h"  # producerEpoch
    "i"  # transactionTimeoutMs
    "b"  # transactionStatus
)
_HEAD_V0 = struct.Struct(_HEAD.format + "i")  # ... and the number of topics, -1 for null
_TIMES = struct.Struct(">qq")  # lastUpdateTimestampMs, startTimestampMs
_VERSION = struct.Struct(">h")
_TAG_LAYOUTS = {
    TAG_PREVIOUS_PRODUCER_ID: struct.Struct(">q"),
    TAG_NEXT_PRODUCER_ID: struct.Struct(">q"),
    TAG_CLIENT_TRANSACTION_VERSION: struct.Struct(">h"),
    TAG_NEXT_PRODUCER_EPOCH: struct.Struct(">h"),
}
_CACHE_ENTRIES = 4096
_CACHED_BYTES = 4096
_CACHED_KEY_BYTES = 256

# lastUpdateTimestampMs, startTimestampMs, and the tags that a broker before 4.3 ends with:
# one, numbered 2, of two bytes.
_TAIL_V1 = struct.Struct(">qq3xh")
_ONLY_CLIENT_VERSION = b"\x01\x02\x02"

Partitions = tuple[tuple[str, int], ...]
# previous and next producer id, client transaction version, next producer epoch, unknown tags
Tags = tuple[int, int, int | None, int, bytes]
_NO_TAGS: Tags = (-1, -1, None, -1, b"")


class TxnEntry(NamedTuple):
    r"""One step of one transactional id.

    Attributes:
        transactional_id: its id; bytes that are not UTF-8 show as `\xNN`.
        key_version: 0.
        value_version: 0 or 1; None for a tombstone, whose other fields are their defaults.
        producer_id: -1 when none.
        producer_epoch: -1 when none.
        txn_timeout_ms: transaction timeout of the producer.
        state: wire id; 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit,
            5 CompleteAbort. Others are kept: a broker never writes them.
        partitions: (topic, partition), sorted (brokers write them in hash order).
        is_partitions_null: null differs from empty; Empty is written with null.
        last_update_ms: txnLastUpdateTimestamp.
        start_ms: txnStartTimestamp, -1 when none.
        previous_producer_id: tag 0, -1 when absent.
        next_producer_id: tag 1, -1 when absent.
        client_transaction_version: tag 2, None when absent.
        next_producer_epoch: tag 3, -1 when absent.
        unknown_tags: the raw bytes of other tags (tag, size, content), b"" when there is none.
    """

    transactional_id: str
    key_version: int
    value_version: int | None
    producer_id: int
    producer_epoch: int
    txn_timeout_ms: int
    state: int
    partitions: Partitions
    is_partitions_null: bool
    last_update_ms: int
    start_ms: int
    previous_producer_id: int
    next_producer_id: int
    client_transaction_version: int | None
    next_producer_epoch: int
    unknown_tags: bytes


def decode(key: bytes | None, value: bytes | None, limits: Limits = DEFAULT_LIMITS) -> TxnEntry:
    """Decode one record; a null value is a tombstone (`value_version` None).

    Raises:
        WireError: unknown version, or bytes that the format does not allow.
    """
    transactional_id = _transactional_id(key)
    if value is None:
        return TxnEntry(
            transactional_id,
            KEY_VERSION,
            None,
            -1,
            -1,
            -1,
            -1,
            (),
            True,
            -1,
            -1,
            -1,
            -1,
            None,
            -1,
            b"",
        )
    try:
        version = _VERSION.unpack_from(value)[0]
        if version == 0:
            return _decode_v0(transactional_id, value, limits)
        if version == 1:
            return _decode_v1(transactional_id, value, limits)
    except (struct.error, IndexError):
        raise WireError("transaction record ends early") from None
    raise WireError(f"transaction record of version {version}", "bad_version")


def decode_batches(
    chunk: Chunk, indices: Iterable[int], limits: Limits = DEFAULT_LIMITS
) -> Decoded[TxnEntry]:
    """Decode the records of a chunk's batches, one-record batches without detours.

    Never raises on bytes: what cannot be decoded is listed in `failures`.

    Args:
        chunk: what `scan.scan` gave.
        indices: batches to decode, usually all of them.
        limits: bounds for batches that hold more than one record.
    """
    return decode_each(chunk, indices, decode, limits)


def _transactional_id(key: bytes | None) -> str:
    if key is None or len(key) < _KEY.size:
        raise WireError("transaction key too short")
    return _cached_id(key) if len(key) <= _CACHED_KEY_BYTES else _read_id(key)


def _read_id(key: bytes) -> str:
    version, size = _KEY.unpack_from(key)
    if version != KEY_VERSION:
        raise WireError(f"transaction key of version {version}", "bad_version")
    if size != len(key) - _KEY.size:
        raise WireError("transaction key of another length than it says")
    return text(key[_KEY.size :])


_cached_id = lru_cache(_CACHE_ENTRIES)(_read_id)


class _PartitionCache:
    """Decoded partition lists by their bytes: few distinct ones make up most of a log."""

    def __init__(self) -> None:
        self._known: dict[bytes, Partitions] = {}

    def get(self, raw: bytes) -> Partitions | None:
        return self._known.get(raw)

    def put(self, raw: bytes, partitions: Partitions) -> None:
        if len(raw) <= _CACHED_BYTES:
            if len(self._known) >= _CACHE_ENTRIES:
                self._known.clear()
            self._known[raw] = partitions


_CACHE_V0 = _PartitionCache()
_CACHE_V1 = _PartitionCache()


def _decode_v0(transactional_id: str, value: bytes, limits: Limits) -> TxnEntry:
    _, producer_id, producer_epoch, timeout_ms, state, topics = _HEAD_V0.unpack_from(value)
    end = len(value) - _TIMES.size
    if end < _HEAD_V0.size:
        raise WireError("transaction record ends early")
    last_update_ms, start_ms = _TIMES.unpack_from(value, end)
    partitions: Partitions = ()
    if topics > 0:
        raw = value[_HEAD_V0.size - 4 : end]
        known = _CACHE_V0.get(raw)
        if known is None:
            known = _partitions_v0(raw, limits)
            _CACHE_V0.put(raw, known)
        partitions = known
    elif topics < -1 or end != _HEAD_V0.size:
        raise WireError("transaction record of another length than it says")
    head = (transactional_id, KEY_VERSION, 0, producer_id, producer_epoch, timeout_ms, state)
    times = (last_update_ms, start_ms)
    return TxnEntry._make((*head, partitions, topics == -1, *times, *_NO_TAGS))


def _partitions_v0(raw: bytes, limits: Limits) -> Partitions:
    cursor = Cursor(raw)
    found: list[tuple[str, int]] = []
    for _ in range(cursor.count(cursor.int32(), 6, limits.max_partitions)):
        topic = cursor.string()
        room = limits.max_partitions - len(found)
        for _ in range(cursor.count(cursor.int32(), 4, room)):
            found.append((topic, cursor.int32()))
    cursor.end()
    return tuple(sorted(found))


def _decode_v1(transactional_id: str, value: bytes, limits: Limits) -> TxnEntry:
    _, producer_id, producer_epoch, timeout_ms, state = _HEAD.unpack_from(value)
    at = _HEAD.size
    count = value[at]
    known = _CACHE_V1.get(value[at : len(value) - _TAIL_V1.size])
    if known is not None and value[-5:-2] == _ONLY_CLIENT_VERSION:
        # These bytes are one whole partition list, so the rest is times and tags, nothing else.
        partitions = known
        last_update_ms, start_ms, client_version = _TAIL_V1.unpack_from(
            value, len(value) - _TAIL_V1.size
        )
        tags: Tags = (-1, -1, client_version, -1, b"")
    else:
        partitions, end = _partitions_v1(value, at, limits)
        _CACHE_V1.put(value[at:end], partitions)
        last_update_ms, start_ms = _TIMES.unpack_from(value, end)
        tags = _read_tags(value, end + _TIMES.size)
    head = (transactional_id, KEY_VERSION, 1, producer_id, producer_epoch, timeout_ms, state)
    return TxnEntry._make((*head, partitions, count == 0, last_update_ms, start_ms, *tags))


def _partitions_v1(value: bytes, at: int, limits: Limits) -> tuple[Partitions, int]:
    cursor = Cursor(value, at)
    found: list[tuple[str, int]] = []
    topics = max(cursor.uvarint() - 1, 0)  # 0 stands for null
    for _ in range(cursor.count(topics, 3, limits.max_partitions)):
        topic = cursor.compact_string()
        room = limits.max_partitions - len(found)
        announced, start = read_uvarint(value, cursor.at)
        cursor.at = start
        for _ in range(cursor.count(announced - 1, 4, room)):
            found.append((topic, cursor.int32()))
        cursor.tagged_fields()
    return tuple(sorted(found)), cursor.at


def _read_tags(value: bytes, at: int) -> Tags:
    """Read the tags that end a value; unknown ones are given as (tag, size, content) bytes."""
    if len(value) == at + 1 and value[at] == 0:
        return _NO_TAGS
    cursor = Cursor(value, at)
    numbers: dict[int, int] = {}
    unknown: list[bytes] = []
    last_tag = -1
    for _ in range(cursor.count(cursor.uvarint(), 2, cursor.remaining)):
        start = cursor.at
        tag = cursor.uvarint()
        if tag <= last_tag:
            raise WireError("tags out of order")
        last_tag = tag
        content = cursor.take(cursor.uvarint())
        layout = _TAG_LAYOUTS.get(tag)
        if layout is None:
            unknown.append(value[start : cursor.at])
        elif layout.size != len(content):
            raise WireError(f"tag {tag} of {len(content)} bytes")
        else:
            numbers[tag] = layout.unpack(content)[0]
    cursor.end()
    return (
        numbers.get(TAG_PREVIOUS_PRODUCER_ID, -1),
        numbers.get(TAG_NEXT_PRODUCER_ID, -1),
        numbers.get(TAG_CLIENT_TRANSACTION_VERSION),
        numbers.get(TAG_NEXT_PRODUCER_EPOCH, -1),
        b"".join(unknown),
    )
