"""Batches of one piece of a segment as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.wire.batch import Batch

Array = NDArray[Any]

DTYPES = {
    "position": np.int64,
    "size_bytes": np.int32,
    "base_offset": np.int64,
    "last_offset": np.int64,
    "partition_leader_epoch": np.int32,
    "magic": np.int8,
    "crc": np.int64,
    "attributes": np.int16,
    "codec": np.int8,
    "timestamp_type": np.int8,
    "is_transactional": np.bool_,
    "is_control": np.bool_,
    "delete_horizon_ms": np.int64,
    "base_timestamp_ms": np.int64,
    "max_timestamp_ms": np.int64,
    "producer_id": np.int64,
    "producer_epoch": np.int16,
    "base_sequence": np.int32,
    "last_sequence": np.int32,
    "records_count": np.int32,
    "control_type": np.int16,
    "coordinator_epoch": np.int32,
}
assert tuple(DTYPES) == Batch._fields


class BatchArrays(NamedTuple):
    """One array per field of `Batch`, all of one length.

    Null is -1 in the three nullable fields (delete_horizon_ms, control_type, coordinator_epoch).
    """

    position: Array
    size_bytes: Array
    base_offset: Array
    last_offset: Array
    partition_leader_epoch: Array
    magic: Array
    crc: Array
    attributes: Array
    codec: Array
    timestamp_type: Array
    is_transactional: Array
    is_control: Array
    delete_horizon_ms: Array
    base_timestamp_ms: Array
    max_timestamp_ms: Array
    producer_id: Array
    producer_epoch: Array
    base_sequence: Array
    last_sequence: Array
    records_count: Array
    control_type: Array
    coordinator_epoch: Array


class Chunk(NamedTuple):
    """Batches that follow each other, with the bytes they lie in.

    Attributes:
        arrays: the batches.
        data: bytes of the file from `data_position` to the end of the last batch, or a little more.
        data_position: byte position of `data` in the file.
    """

    arrays: BatchArrays
    data: bytes
    data_position: int

    def batch_bytes(self, index: int) -> bytes:
        """Bytes of one batch."""
        start = int(self.arrays.position[index]) - self.data_position
        return self.data[start : start + int(self.arrays.size_bytes[index])]


def gather(data: bytes, dtype: np.dtype[Any], places: Array) -> Array:
    """Copy a structure from each of many byte positions.

    Copying opaque elements first is ten times as fast as copying structured ones.
    """
    opaque = np.dtype(f"V{dtype.itemsize}")
    count = max(len(data) - dtype.itemsize + 1, 0)
    return np.ndarray((count,), opaque, data, strides=(1,))[places].view(dtype)


def from_batches(batches: Sequence[Batch]) -> BatchArrays:
    """Turn tuples into arrays."""
    columns = zip(*batches, strict=True) if batches else ((),) * len(DTYPES)
    return BatchArrays._make(
        np.array([-1 if value is None else value for value in column], dtype=dtype)
        for column, dtype in zip(columns, DTYPES.values(), strict=True)
    )


def to_batches(arrays: BatchArrays) -> list[Batch]:
    """Turn arrays into tuples."""
    nullable = ("delete_horizon_ms", "control_type", "coordinator_epoch")
    columns: list[list[Any]] = []
    for name, array in zip(BatchArrays._fields, arrays, strict=True):
        values = array.tolist()
        columns.append([None if v == -1 else v for v in values] if name in nullable else values)
    return list(map(Batch._make, zip(*columns, strict=True)))
