"""Bounds on everything that a file may claim about its own size."""

from __future__ import annotations

from typing import NamedTuple

MIB = 1 << 20


class Limits(NamedTuple):
    """Upper bounds; what exceeds one becomes damage, never an allocation.

    Attributes:
        chunk_bytes: log bytes held at once by a scan.
        max_batch_bytes: one batch as stored (`max.message.bytes` is 1 MiB unless raised).
        max_records_per_batch: records decoded from one batch.
        max_decompressed_bytes: one batch after decompression.
        max_segment_bytes: `segment.bytes` is an int32, so no segment exceeds 2 GiB plus one batch.
        max_sidecar_bytes: one index, snapshot or checkpoint file.
        max_partitions: topic partitions in one `__transaction_state` record.
        max_members: members in one group metadata record.
    """

    chunk_bytes: int = 4 * MIB
    max_batch_bytes: int = 64 * MIB
    max_records_per_batch: int = 4_000_000
    max_decompressed_bytes: int = 64 * MIB
    max_segment_bytes: int = 2048 * MIB + 64 * MIB
    max_sidecar_bytes: int = 64 * MIB
    max_partitions: int = 200_000
    max_members: int = 100_000


DEFAULT_LIMITS = Limits()
