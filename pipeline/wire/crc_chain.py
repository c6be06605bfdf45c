"""Verify the checksums of many small batches with one call.

A CRC-32C register that has read a right batch holds the complement of its stored checksum. So
the 21 bytes between the covered parts of two batches can be replaced by 17 zeros and four bytes
that lead the register from where it should be to its initial value; a chunk of right batches then
ends with the checksum of the last one. Every step is invertible, so a wrong batch leaves a
difference that nothing behind it removes, unless a second wrong batch of the chunk happens to
cancel it: one case in 2**32, as with the checksum itself. Which batch is wrong is then for the
caller to find out one by one.
"""

from __future__ import annotations

import google_crc32c
import numpy as np

from pipeline.wire.arrays import Array
from pipeline.wire.header import CRC_COVERS_FROM

_POLYNOMIAL = 0x82F63B78
_INITIAL = 0xFFFFFFFF
_PATCH = np.dtype([("zeros", f"V{CRC_COVERS_FROM - 4}"), ("lead", "<u4")])
_OPAQUE = np.dtype(f"V{CRC_COVERS_FROM}")


def _byte_table() -> Array:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


def _advance(registers: Array, zeros: int) -> Array:
    """Let registers read a number of zero bytes."""
    for _ in range(zeros):
        registers = _TABLE[registers & 0xFF] ^ registers >> 8
    return registers


def _retreat(register: int, zeros: int) -> int:
    """The register that reads `zeros` zero bytes and then is `register`."""
    top_bytes = (_TABLE >> 24).tolist()
    for _ in range(zeros):
        index = top_bytes.index(register >> 24)
        register = ((register ^ int(_TABLE[index])) << 8 | index) & 0xFFFFFFFF
    return register


_TABLE = _byte_table()
# What a register becomes behind the zeros, by each of its four bytes (the step is linear).
_BEHIND_ZEROS = [
    _advance(np.arange(256, dtype=np.uint32) << np.uint32(8 * place), CRC_COVERS_FROM - 4)
    for place in range(4)
]
_BEFORE_LEAD = np.uint32(_retreat(_INITIAL, 4))


class Verifier:
    """Holds the scratch space, which is reused from chunk to chunk."""

    def __init__(self) -> None:
        self._scratch = np.empty(0, np.uint8)

    def all_right(self, data: bytes, places: Array, stop: int, stored: Array) -> bool:
        """Whether all checksums of a chunk are right.

        Args:
            data: the chunk, not changed.
            places: start of each batch, ascending and contiguous.
            stop: end of the last batch.
            stored: checksum of each batch.
        """
        if self._scratch.size < stop:
            self._scratch = np.empty(stop, np.uint8)
        scratch = self._scratch[:stop]
        scratch[:] = np.frombuffer(data, np.uint8, stop)
        expected = stored[:-1].astype(np.uint32) ^ np.uint32(_INITIAL)
        patches = np.zeros(len(expected), _PATCH)
        octets = expected.astype("<u4").view(np.uint8).reshape(-1, 4)
        lead = np.full(len(expected), _BEFORE_LEAD)
        for place in range(4):
            lead ^= _BEHIND_ZEROS[place][octets[:, place]]
        patches["lead"] = lead
        gaps = np.ndarray((stop - CRC_COVERS_FROM + 1,), _OPAQUE, scratch, strides=(1,))
        gaps[places[1:]] = patches.view(_OPAQUE)
        covered = scratch[int(places[0]) + CRC_COVERS_FROM :]
        return bool(google_crc32c.value(covered) == int(stored[-1]))
