"""Aborted transactions of one segment (`.txnindex`).

Source: `AbortedTxn`, `TransactionIndex`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

_ENTRY = struct.Struct(">hqqqq")
_ZERO_ENTRY = bytes(_ENTRY.size)


class AbortedTxn(NamedTuple):
    """One aborted transaction.

    Attributes:
        version: 0.
        producer_id: its producer.
        first_offset: may lie in an earlier segment.
        last_offset: offset of the ABORT marker.
        last_stable_offset: as the broker computed it at that moment.
    """

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read(data: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[list[AbortedTxn], int]:
    """Read all whole entries.

    An entry of zeros is no entry (its last stable offset would not exceed its last offset): it
    and what follows are trailing bytes, like the rest of a torn entry.

    Returns:
        The entries and the number of trailing bytes.

    Raises:
        WireError: unknown version, or a file beyond the limit.
    """
    if len(data) > limits.max_sidecar_bytes:
        raise WireError(f"{len(data)} bytes", "too_large")
    entries: list[AbortedTxn] = []
    at = 0
    while at + _ENTRY.size <= len(data):
        raw = data[at : at + _ENTRY.size]
        if raw == _ZERO_ENTRY:
            break
        entry = AbortedTxn._make(_ENTRY.unpack(raw))
        if entry.version != 0:
            raise WireError(f"aborted transaction of version {entry.version}", "bad_version")
        entries.append(entry)
        at += _ENTRY.size
    return entries, len(data) - at
