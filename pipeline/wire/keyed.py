"""Records of the internal topics, from the batches of a scanned chunk.

Both coordinators write nearly all their records one to a batch and uncompressed, so those take a
short way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from pipeline.wire.arrays import Chunk
from pipeline.wire.errors import WireError
from pipeline.wire.header import HEADER
from pipeline.wire.limits import Limits
from pipeline.wire.record import MIN_RECORD_BYTES, records

Entry = TypeVar("Entry")
KeyValue = tuple[int, int, bytes | None, bytes | None]
Decode = Callable[[bytes | None, bytes | None, Limits], Entry]


class Failure(NamedTuple):
    """A record, or with `offset` None a whole batch, that could not be decoded."""

    batch_index: int
    offset: int | None
    reason: str
    detail: str


class Decoded(NamedTuple, Generic[Entry]):
    """Decoded records of several batches, the first three as parallel lists in file order.

    Attributes:
        batch_index: index of the batch within the chunk's arrays.
        offset: offset of the record.
        entries: the decoded record.
        failures: what could not be decoded.
    """

    batch_index: list[int]
    offset: list[int]
    entries: list[Entry]
    failures: list[Failure]


def decode_each(
    chunk: Chunk, indices: Iterable[int], decode: Decode[Entry], limits: Limits
) -> Decoded[Entry]:
    """Decode every record of the given batches of a chunk; never raises on bytes."""
    result: Decoded[Entry] = Decoded([], [], [], [])
    add_index, add_offset = result.batch_index.append, result.offset.append
    add_entry = result.entries.append
    for index, offset, key, value in _keys_and_values(chunk, indices, limits, result.failures):
        try:
            add_entry(decode(key, value, limits))
        except WireError as error:
            result.failures.append(Failure(index, offset, error.reason, str(error)))
        else:
            add_index(index)
            add_offset(offset)
    return result


def _keys_and_values(
    chunk: Chunk,
    indices: Iterable[int],
    limits: Limits,
    failures: list[Failure],
) -> Iterator[KeyValue]:
    """Give (batch index, offset, key, value) of every record of the given batches of a chunk.

    A batch that cannot be decoded is added to `failures` (index, None, reason, detail)
    and none of its records is given.
    """
    arrays, data, origin = chunk
    positions, sizes = arrays.position.tolist(), arrays.size_bytes.tolist()
    offsets = arrays.base_offset.tolist()
    is_plain = ((arrays.magic == 2) & (arrays.codec == 0) & (arrays.records_count == 1)).tolist()
    for index in indices:
        start = positions[index] - origin
        end = start + sizes[index]
        if is_plain[index]:
            pair = _sole_record(data, start + HEADER.size, end)
            if pair is not None:
                yield index, offsets[index], pair[0], pair[1]
                continue
        try:
            found = records(data[start:end], limits)
        except WireError as error:
            failures.append(Failure(index, None, error.reason, str(error)))
            continue
        for item in found:
            yield index, item.offset, item.key, item.value


def _sole_record(data: bytes, at: int, end: int) -> tuple[bytes | None, bytes | None] | None:
    """Read the only record of a batch whose sizes have at most two bytes, without headers.

    None sends the caller the long way.
    """
    if end - at < MIN_RECORD_BYTES + 3:
        return None
    size = data[at]
    at += 1
    if size > 0x7F:
        size = size & 0x7F | data[at] << 7
        at += 1
    # Attributes are unused; a first record has timestamp delta 0 and offset delta 0.
    if size != (end - at) << 1 or data[at + 1] or data[at + 2] or data[end - 1]:
        return None
    at += 3
    size = data[at]
    at += 1
    if size > 0x7F:
        size = size & 0x7F | data[at] << 7
        at += 1
    if size & 1 or size > 0x7FFF:
        return None
    stop = at + (size >> 1)
    if stop > end - 2:
        return None
    key = data[at:stop]
    size = data[stop]
    at = stop + 1
    if size > 0x7F:
        size = size & 0x7F | data[at] << 7
        at += 1
    if size == 1 and at == end - 1:
        return key, None
    if size & 1 or size > 0x7FFF or at + (size >> 1) != end - 1:
        return None
    return key, data[at : end - 1]
