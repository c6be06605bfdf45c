"""The two ways to read a segment, as one list of batches and damage each."""

from __future__ import annotations

from pipeline.wire import arrays, scan, segment
from pipeline.wire.batch import Batch, Damage
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

SMALL_CHUNKS = Limits(chunk_bytes=700)


def scanned(
    data: bytes,
    limits: Limits = DEFAULT_LIMITS,
    *,
    start: int = 0,
    end: int | None = None,
    first_offset: int = 0,
) -> list[Batch | Damage]:
    """What `scan.scan` gives, damage that touches joined."""
    batches: list[Batch] = []
    damages: list[Damage] = []
    for item in scan.scan(
        lambda position, length: data[position : position + length],
        len(data),
        start=start,
        end=end,
        limits=limits,
        first_offset=first_offset,
    ):
        if isinstance(item, Damage):
            damages.append(item)
            continue
        found = arrays.to_batches(item.arrays)
        for index, batch in enumerate(found):
            bytes_of_batch = data[batch.position : batch.position + batch.size_bytes]
            assert item.batch_bytes(index) == bytes_of_batch
        batches += found
    return in_order([*batches, *segment.merge(damages)])


def walked(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[Batch | Damage]:
    """What `segment.iterate` gives."""
    return list(segment.iterate(data, limits))


def in_order(items: list[Batch | Damage]) -> list[Batch | Damage]:
    return sorted(items, key=lambda item: item.position)


def without_words(items: list[Batch | Damage]) -> list[tuple[int, ...]]:
    """Positions and sizes with the kind of each item: what both ways must agree on."""
    return [(item.position, item.size_bytes, isinstance(item, Damage)) for item in items]


def damages_of(items: list[Batch | Damage]) -> list[tuple[str, int, int]]:
    return [(i.reason, i.position, i.size_bytes) for i in items if isinstance(i, Damage)]


def covers(items: list[Batch | Damage], size: int) -> bool:
    """Whether every byte is in exactly one batch or damage."""
    at = 0
    for item in items:
        if item.position != at:
            return False
        at += item.size_bytes
    return at == size
