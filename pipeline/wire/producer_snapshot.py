"""Producer state at an offset (`.snapshot`).

Source: `ProducerStateManager.readSnapshot`, `ProducerSnapshot.json`; version 1 is the only one
that brokers from 0.11 on write.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import google_crc32c

from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

_VERSION = 1
_HEADER = struct.Struct(
    ">"
    "h"  # version
    "I"  # crc of everything behind it
    "i"  # number of entries
)
_CRC_START = struct.calcsize(">hI")
_ENTRY = struct.Struct(">qhiqiqiq")


class SnapshotEntry(NamedTuple):
    """State of one producer.

    Attributes:
        producer_id: its id.
        producer_epoch: its epoch.
        last_sequence: -1 when no data batch is kept.
        last_offset: -1 when the only entry is a marker.
        offset_delta: last minus first sequence of the last batch.
        timestamp_ms: of the last data batch or marker (which of them differs by broker version).
        coordinator_epoch: of the last marker, -1 when none was seen.
        current_txn_first_offset: -1 when no transaction is open.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    current_txn_first_offset: int


class Snapshot(NamedTuple):
    """A whole file; `crc_ok` False means a broker would delete it and take an older one."""

    version: int
    crc_ok: bool
    entries: tuple[SnapshotEntry, ...]


def read(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Snapshot:
    """Read a snapshot.

    Raises:
        WireError: too short, too large, unknown version, or a count that differs from the size.
    """
    if len(data) > limits.max_sidecar_bytes:
        raise WireError(f"{len(data)} bytes", "too_large")
    if len(data) < _HEADER.size:
        raise WireError(f"snapshot of {len(data)} bytes", "torn_tail")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise WireError(f"snapshot version {version}", "bad_version")
    body = data[_HEADER.size :]
    if count < 0 or count * _ENTRY.size != len(body):
        raise WireError(f"{count} entries announced in {len(body)} bytes")
    crc_ok = google_crc32c.value(data[_CRC_START:]) == crc
    entries = tuple(map(SnapshotEntry._make, _ENTRY.iter_unpack(body)))
    return Snapshot(version, crc_ok, entries)
