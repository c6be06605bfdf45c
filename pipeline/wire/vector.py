"""Many batch headers at once, from their positions in one piece of a segment."""

from __future__ import annotations

import google_crc32c
import numpy as np

from pipeline.wire.arrays import DTYPES, Array, BatchArrays, gather
from pipeline.wire.batch import (
    CODEC_MASK,
    CONTROL_COMMIT,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from pipeline.wire.errors import WireError
from pipeline.wire.header import (
    CRC_COVERS_FROM,
    HEADER,
    LENGTH,
    LENGTH_AT,
    LOG_OVERHEAD,
    MARKER_BATCH_SIZE,
    MARKER_DTYPE,
    MARKER_PREFIX,
    MARKER_VALUE_SIZE,
    MIN_LENGTH,
)
from pipeline.wire.limits import Limits
from pipeline.wire.record import control_marker

# Above this mean size the checksum runs over views; below, a copy is cheaper than a view.
_VIEW_FROM_BYTES = 8192


def walk(data: bytes, limit: int) -> tuple[list[int], int]:
    """Give the start of every whole batch before `limit`, and where the walk ended."""
    positions: list[int] = []
    append = positions.append
    length_at = LENGTH.unpack_from
    size = len(data)
    limit = min(limit, size - HEADER.size + 1)
    at = 0
    while at < limit:
        (length,) = length_at(data, at + LENGTH_AT)
        following = at + LOG_OVERHEAD + length
        if following > size or length < MIN_LENGTH:
            break
        append(at)
        at = following
    return positions, at


def checksums(data: bytes, positions: list[int], stop: int) -> Array:
    starts = [at + CRC_COVERS_FROM for at in positions]
    ends = [*positions[1:], stop]
    bytes_like: bytes | Array = data
    if stop > _VIEW_FROM_BYTES * len(positions):
        bytes_like = np.frombuffer(data, np.uint8)  # slices of an array are not copied
    pieces = map(bytes_like.__getitem__, map(slice, starts, ends))
    return np.fromiter(map(google_crc32c.value, pieces), np.uint32, len(positions))


def fields(
    origin: int,
    places: Array,
    sizes: Array,
    heads: Array,
    base: Array,
    last: Array,
    attributes: Array,
    markers: tuple[Array, Array],
) -> BatchArrays:
    sequence = heads["base_sequence"].astype(np.int64)
    wrapped = (sequence + (last - base)) & 0x7FFFFFFF
    plain = sequence + (last - base)
    last_sequence = np.where(sequence == -1, -1, np.where(plain > 0x7FFFFFFF, wrapped, plain))
    base_timestamp = heads["base_timestamp_ms"].astype(np.int64)
    has_horizon = (attributes & DELETE_HORIZON_MASK) != 0
    values = (
        places + origin,
        sizes,
        base,
        last,
        heads["partition_leader_epoch"],
        heads["magic"],
        heads["crc"],
        attributes,
        attributes & CODEC_MASK,
        (attributes & TIMESTAMP_TYPE_MASK) >> 3,
        (attributes & TRANSACTIONAL_MASK) != 0,
        (attributes & CONTROL_MASK) != 0,
        np.where(has_horizon, base_timestamp, -1),
        base_timestamp,
        heads["max_timestamp_ms"],
        heads["producer_id"],
        heads["producer_epoch"],
        heads["base_sequence"],
        last_sequence,
        heads["records_count"],
        *markers,
    )
    return BatchArrays._make(
        value.astype(dtype, copy=False)
        for value, dtype in zip(values, DTYPES.values(), strict=True)
    )


def markers(
    data: bytes,
    places: Array,
    sizes: Array,
    count: Array,
    attributes: Array,
    good: Array,
    limits: Limits,
) -> tuple[Array, Array]:
    """Read control type and coordinator epoch; what cannot be read is no longer good."""
    control_type = np.full(len(places), -1, np.int16)
    coordinator_epoch = np.full(len(places), -1, np.int32)
    control = np.flatnonzero(((attributes & CONTROL_MASK) != 0) & good)
    if not control.size:
        return control_type, coordinator_epoch
    common = (sizes[control] == MARKER_BATCH_SIZE) & (count[control] == 1)
    common &= (attributes[control] & CODEC_MASK) == 0
    usual = control[common]
    body = gather(data, MARKER_DTYPE, places[usual] + HEADER.size)
    is_usual = (body["prefix"] == MARKER_PREFIX) & (body["value_size"] == MARKER_VALUE_SIZE)
    is_usual &= (body["key_version"] >= 0) & (body["value_version"] >= 0)
    is_usual &= (body["header_count"] == 0) & (body["control_type"] >= 0)
    is_usual &= body["control_type"] <= CONTROL_COMMIT
    control_type[usual[is_usual]] = body["control_type"][is_usual]
    coordinator_epoch[usual[is_usual]] = body["coordinator_epoch"][is_usual]
    for index in [*control[~common].tolist(), *usual[~is_usual].tolist()]:
        place = int(places[index])
        try:
            kind, epoch = control_marker(data[place : place + int(sizes[index])], limits)
        except WireError:
            good[index] = False
            continue
        control_type[index] = -1 if kind is None else kind
        coordinator_epoch[index] = -1 if epoch is None else epoch
    return control_type, coordinator_epoch
