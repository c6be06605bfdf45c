"""A segment of 16 KB cut at every byte and with every bit flipped, one at a time (figures 3 and 4).

`make test` flips one bit of each byte, the full run all eight.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

import pytest

from pipeline.wire import scan
from pipeline.wire.arrays import Chunk
from tests import builders

pytestmark = pytest.mark.slow
COVERED_FROM = 16
"""Bytes of a batch before it are not protected: base offset, length and leader epoch. Magic, at 16, has few values."""
FIELDS = ((8, "base offset"), (12, "length"), (16, "leader epoch"))
SEED = 20261128


class Read(NamedTuple):
    """What a scan gives: (position, size, crc) of the batches, and where damage begins."""

    batches: list[tuple[int, int, int]]
    damaged: list[tuple[int, int]]


def segment() -> bytes:
    """Batches of all codecs and sizes, with markers between them, a little more than 16 KB."""
    rng = random.Random(SEED)
    parts: list[bytes] = []
    size, offset = 0, 0
    while size < 16 << 10:
        if rng.random() < 0.2:
            part, count = builders.marker(offset, producer_id=offset), 1
        else:
            count = rng.randrange(1, 9)
            records = [builders.Rec(b"k", rng.randbytes(rng.randrange(60))) for _ in range(count)]
            part = builders.batch(
                offset, records, codec=rng.randrange(5), producer_id=offset, base_sequence=0
            )
        parts.append(part)
        size, offset = size + len(part), offset + count
    return b"".join(parts)


def read(data: bytes) -> Read:
    """Both are told apart; no exception leaves the scan."""
    batches: list[tuple[int, int, int]] = []
    damaged: list[tuple[int, int]] = []
    for item in scan.scan(lambda at, size: data[at : at + size], len(data)):
        if isinstance(item, Chunk):
            held = item.arrays
            batches += zip(
                held.position.tolist(), held.size_bytes.tolist(), held.crc.tolist(), strict=True
            )
        else:
            damaged.append((item.position, item.size_bytes))
    assert sum(one[1] for one in batches) + sum(one[1] for one in damaged) == len(data)
    return Read(batches, damaged)


def test_every_truncation() -> None:
    data = segment()
    whole = read(data).batches
    for size in range(len(data)):
        prefix = [one for one in whole if one[0] + one[1] <= size]
        end = prefix[-1][0] + prefix[-1][1] if prefix else 0
        found = read(data[:size])
        assert found.batches == prefix
        assert found.damaged == ([(end, size - end)] if size > end else [])
    print(f"{len(data)} truncations of {len(whole)} batches")


@pytest.mark.parametrize("every", ["one bit a byte", pytest.param("all", marks=pytest.mark.full)])
@pytest.mark.timeout(1800)
def test_flipped_bits(every: str) -> None:
    """A covered flip loses its own batch and no other; one that is not covered may be seen or not, and is counted.

    None makes a batch of what was none, as the bytes that name its place, size and checksum are in their places.
    """
    data = bytearray(segment())
    whole = read(bytes(data)).batches
    rng = random.Random(SEED)
    flips: Counter[str] = Counter()
    unseen: Counter[str] = Counter()
    for batch in whole:
        position, size, _ = batch
        others = {one for one in whole if one != batch}
        for at in range(size):
            field = next((name for end, name in FIELDS if at < end), "covered")
            for bit in range(8) if every == "all" else (rng.randrange(8),):
                data[position + at] ^= 1 << bit
                found = read(bytes(data))
                data[position + at] ^= 1 << bit
                flips[field] += 1
                unseen[field] += not found.damaged
                assert set(found.batches) <= set(whole), (position, at, bit)
                if field == "covered":
                    assert set(found.batches) == others, (position, at, bit)
                    assert found.damaged == [(position, size)], (position, at, bit)
                else:
                    before = {one for one in others if one[0] < position}
                    assert before - set(found.batches) <= {max(before, default=(0, 0, 0))}
    for name, count in flips.items():
        print(f"{name}: {unseen[name]} of {count} flips unseen")
    assert unseen["covered"] == 0
    assert unseen["length"] == 0
