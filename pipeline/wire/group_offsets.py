"""Records of `__consumer_offsets`.

Source: `OffsetCommitKey.json`, `OffsetCommitValue.json`, `GroupMetadataKey.json`,
`GroupMetadataValue.json` and the records of the newer group types (KIP-848, 932, 1071). Record
types that are not known are counted, never an error: brokers skip them too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from pipeline.wire.arrays import Chunk
from pipeline.wire.checkpoints import topic_id_text
from pipeline.wire.cursor import Cursor, text
from pipeline.wire.errors import WireError
from pipeline.wire.keyed import Decoded, decode_each
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

GROUP_METADATA_TYPE = 2
HIGHEST_OFFSET_COMMIT_VERSION = 4
HIGHEST_GROUP_METADATA_VERSION = 4
TAG_TOPIC_ID = 0
_CACHE_ENTRIES = 4096
_CACHED_KEY_BYTES = 512

# Record types whose key is the group id, and those whose key goes on with a second string.
_GROUP_KEYS = frozenset({3, 4, 6, 9, 11, 12, 15, 17, 18, 20, 23})
_MEMBER_KEYS = frozenset({5, 7, 8, 10, 13, 14, 19, 21, 22})
_REGULAR_EXPRESSION_KEY = 16
# Record types whose value starts with the group, assignment, member or topology epoch.
_EPOCH_FIRST = frozenset({3, 6, 8, 11, 12, 14, 17, 20, 22, 23})

_TYPE = struct.Struct(">h")
_OFFSET_V0 = struct.Struct(">hq")  # version, offset
_OFFSET_V3 = struct.Struct(">hqih")  # version, offset, leaderEpoch, length of the metadata
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")


class OffsetCommit(NamedTuple):
    r"""A committed offset of a group.

    Attributes:
        group_id: bytes that are not UTF-8 show as `\xNN`, here and in the topic.
        topic: topic of the committed partition.
        partition: its number.
        value_version: 0 to 4; None for a tombstone, whose other fields are their defaults.
        offset: next offset to be read, -1 for a tombstone.
        leader_epoch: -1 when unknown.
        metadata_size: bytes of the metadata (its content is user data and stays here).
        commit_timestamp_ms: -1 for a tombstone.
        expire_timestamp_ms: only in version 1, else -1.
        topic_id: tag 0 of version 4, None when absent.
    """

    group_id: str
    topic: str
    partition: int
    value_version: int | None
    offset: int
    leader_epoch: int
    metadata_size: int
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: str | None


class GroupRecord(NamedTuple):
    """A record about a group or one of its members.

    Attributes:
        record_type: 2 classic group, 3 to 23 of the newer group types.
        group_id: its id.
        member_id: of record types that have one in their key, else None.
        value_version: None for a tombstone.
        generation_or_epoch: generation of a classic group; group, assignment, member or topology
            epoch of the newer records that start with one; else None.
        member_count: of a classic group, else None.
        protocol_type: of a classic group, else None.
        is_tombstone: null value.
    """

    record_type: int
    group_id: str
    member_id: str | None
    value_version: int | None
    generation_or_epoch: int | None
    member_count: int | None
    protocol_type: str | None
    is_tombstone: bool


class UnknownGroupRecord(NamedTuple):
    """A record of a type or value version that is not known."""

    record_type: int
    key_size: int
    value_size: int


Entry = OffsetCommit | GroupRecord | UnknownGroupRecord


def decode(key: bytes | None, value: bytes | None, limits: Limits = DEFAULT_LIMITS) -> Entry:
    """Decode one record.

    Raises:
        WireError: unknown version of a known type, or bytes that the format does not allow.
    """
    if key is None or len(key) < _TYPE.size:
        raise WireError("group record without a key")
    record_type = _TYPE.unpack_from(key)[0]
    try:
        if record_type == 1 or record_type == 0:
            return _offset_commit(key, value)
        if record_type == GROUP_METADATA_TYPE:
            return _group_metadata(key, value, limits)
        return _newer_record(record_type, key, value)
    except (struct.error, IndexError):
        raise WireError("group record ends early") from None


def decode_batches(
    chunk: Chunk, indices: Iterable[int], limits: Limits = DEFAULT_LIMITS
) -> Decoded[Entry]:
    """Decode the records of a chunk's batches (leave control batches out of `indices`).

    Never raises on bytes: what cannot be decoded is listed in `failures`.
    """
    return decode_each(chunk, indices, decode, limits)


def _offset_commit(key: bytes, value: bytes | None) -> OffsetCommit:
    names = _cached_key(key) if len(key) <= _CACHED_KEY_BYTES else _offset_key(key)
    if value is None:
        return OffsetCommit._make((*names, None, -1, -1, 0, -1, -1, None))
    version = _TYPE.unpack_from(value)[0]
    if version == 3:
        _, offset, leader_epoch, size = _OFFSET_V3.unpack_from(value)
        if size < 0 or len(value) != _OFFSET_V3.size + size + 8:
            raise WireError("offset commit of another length than it says")
        timestamp_ms = _INT64.unpack_from(value, _OFFSET_V3.size + size)[0]
        return OffsetCommit._make((*names, 3, offset, leader_epoch, size, timestamp_ms, -1, None))
    if not 0 <= version <= HIGHEST_OFFSET_COMMIT_VERSION:
        raise WireError(f"offset commit of version {version}", "bad_version")
    return _offset_commit_by_fields(names, version, value)


def _offset_key(key: bytes) -> tuple[str, str, int]:
    """Read group, topic and partition."""
    group_end = 4 + (key[2] << 8 | key[3])
    topic_start = group_end + 2
    topic_end = topic_start + (key[group_end] << 8 | key[group_end + 1])
    if len(key) != topic_end + 4:
        raise WireError("offset commit key of another length than it says")
    partition: int = _INT32.unpack_from(key, topic_end)[0]
    return text(key[4:group_end]), text(key[topic_start:topic_end]), partition


_cached_key = lru_cache(_CACHE_ENTRIES)(_offset_key)


def _offset_commit_by_fields(
    names: tuple[str, str, int], version: int, value: bytes
) -> OffsetCommit:
    cursor = Cursor(value, _TYPE.size)
    offset = cursor.int64()
    leader_epoch = cursor.int32() if version >= 3 else -1
    if version >= 4:
        metadata = cursor.compact_bytes()
        if metadata is None:
            raise WireError("offset commit with null metadata")
    else:
        metadata = cursor.take(cursor.int16())
    timestamp_ms = cursor.int64()
    expire_timestamp_ms = cursor.int64() if version == 1 else -1
    topic_id = None
    if version >= 4:
        for tag, content in cursor.tagged_fields():
            if tag == TAG_TOPIC_ID:
                if len(content) != 16:
                    raise WireError("topic id of another length than 16")
                topic_id = topic_id_text(content)
    cursor.end()
    return OffsetCommit._make(
        (
            *names,
            version,
            offset,
            leader_epoch,
            len(metadata),
            timestamp_ms,
            expire_timestamp_ms,
            topic_id,
        )
    )


def _group_metadata(key: bytes, value: bytes | None, limits: Limits) -> GroupRecord:
    cursor = Cursor(key, _TYPE.size)
    group_id = cursor.string()
    cursor.end()
    if value is None:
        return GroupRecord(GROUP_METADATA_TYPE, group_id, None, None, None, None, None, True)
    cursor = Cursor(value)
    version = cursor.int16()
    if not 0 <= version <= HIGHEST_GROUP_METADATA_VERSION:
        raise WireError(f"group metadata of version {version}", "bad_version")
    is_flexible = version >= 4
    protocol_type = cursor.compact_string() if is_flexible else cursor.string()
    generation = cursor.int32()
    for _ in range(2):  # protocol, leader
        _skip_nullable_string(cursor, is_flexible)
    if version >= 2:
        cursor.int64()  # currentStateTimestamp
    announced = cursor.uvarint() - 1 if is_flexible else cursor.int32()
    member_count = cursor.count(announced, 10, limits.max_members)
    for _ in range(member_count):
        _skip_member(cursor, version)
    if is_flexible:
        cursor.tagged_fields()
    cursor.end()
    return GroupRecord(
        GROUP_METADATA_TYPE, group_id, None, version, generation, member_count, protocol_type, False
    )


def _skip_nullable_string(cursor: Cursor, is_flexible: bool) -> None:
    if is_flexible:
        cursor.compact_bytes()
    else:
        size = cursor.int16()
        cursor.take(0 if size == -1 else size)


def _skip_member(cursor: Cursor, version: int) -> None:
    """Pass one member: memberId, groupInstanceId, clientId, clientHost, timeouts, two blobs."""
    is_flexible = version >= 4
    for _ in range(4 if version >= 3 else 3):
        _skip_nullable_string(cursor, is_flexible)
    cursor.take(8 if version >= 1 else 4)
    for _ in range(2):  # subscription, assignment
        if is_flexible:
            cursor.compact_bytes()
        else:
            cursor.sized_bytes()
    if is_flexible:
        cursor.tagged_fields()


def _newer_record(record_type: int, key: bytes, value: bytes | None) -> Entry:
    has_member = record_type in _MEMBER_KEYS
    if not (has_member or record_type in _GROUP_KEYS or record_type == _REGULAR_EXPRESSION_KEY):
        return UnknownGroupRecord(record_type, len(key), len(value or b""))
    cursor = Cursor(key, _TYPE.size)
    group_id = cursor.string()
    member_id = cursor.string() if has_member else None
    if record_type == _REGULAR_EXPRESSION_KEY:
        cursor.string()
    cursor.end()
    if value is None:
        return GroupRecord(record_type, group_id, member_id, None, None, None, None, True)
    cursor = Cursor(value)
    version = cursor.int16()
    if version != 0:
        return UnknownGroupRecord(record_type, len(key), len(value))
    epoch = cursor.int32() if record_type in _EPOCH_FIRST else None
    return GroupRecord(record_type, group_id, member_id, version, epoch, None, None, False)
