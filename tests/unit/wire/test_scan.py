"""The array scan equals the plain one, in any chunks and splits."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest

from pipeline.wire import arrays, scan
from pipeline.wire.batch import Batch, Damage
from pipeline.wire.crc_chain import Verifier
from pipeline.wire.header import HEADER_DTYPE
from pipeline.wire.limits import Limits
from pipeline.wire.vector import walk
from tests import builders
from tests.recordings import all_recordings
from tests.unit.wire.walks import scanned, walked


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_scan_equals_the_plain_walk_on_every_recording(folder: Path) -> None:
    for path in sorted((folder / "logs").rglob("*.log")):
        data = path.read_bytes()
        reference = walked(data)
        for chunk_bytes in (1 << 22, 1500):
            assert scanned(data, Limits(chunk_bytes=chunk_bytes)) == reference, path


def big_segment() -> tuple[bytes, list[int]]:
    parts = [
        builders.marker(n, n % 2, producer_id=n % 5, coordinator_epoch=n)
        if n % 4 == 0
        else builders.batch(n, [builders.Rec(b"k" * (n % 9), b"v" * (n % 50))], producer_id=n % 5)
        for n in range(400)
    ]
    return b"".join(parts), [sum(map(len, parts[:index])) for index in range(len(parts))]


def test_splits_cover_every_batch_once() -> None:
    data, starts = big_segment()
    reference = walked(data)
    cuts = [0, starts[1], starts[100], starts[101], starts[333], len(data)]
    for limits in (Limits(), Limits(chunk_bytes=900)):
        found = []
        for start, end in itertools.pairwise(cuts):
            found += scanned(data, limits, start=start, end=end)
        assert found == reference


def test_damage_across_a_split_is_clipped_and_the_next_split_starts_at_its_batch() -> None:
    data, starts = big_segment()
    broken = bytearray(data)
    broken[starts[98] + 30 : starts[103]] = bytes(starts[103] - starts[98] - 30)
    first = scanned(bytes(broken), end=starts[102])
    last = first[-1]
    assert isinstance(last, Damage)
    assert last.position + last.size_bytes == starts[102]


def test_failing_read_is_damage() -> None:
    data, starts = big_segment()

    def read_at(position: int, length: int) -> bytes:
        if position > starts[200]:
            raise OSError(5, "Input/output error")
        return data[position : position + length]

    items = list(scan.scan(read_at, len(data), limits=Limits(chunk_bytes=2000)))
    last = items[-1]
    assert isinstance(last, Damage)
    assert last.reason == "io"
    assert last.position + last.size_bytes == len(data)


def test_file_that_shrinks_while_it_is_read() -> None:
    data, starts = big_segment()
    short = data[: starts[200] + 10]
    items = list(scan.scan(lambda p, n: short[p : p + n], len(data)))
    found = [b for item in items if isinstance(item, arrays.Chunk) for b in item.arrays.position]
    assert found == starts[:200]


def test_empty_and_wrapped_and_horizon_fields() -> None:
    data = b"".join(
        [
            builders.batch(0, 3, producer_id=1, base_sequence=2**31 - 2, transactional=True),
            builders.batch(3, 0, producer_id=1, base_sequence=1, last_offset_delta=4),
            builders.batch(8, 0, producer_id=1, control=True, transactional=True),
            builders.marker(9, 0, coordinator_epoch=3, delete_horizon_ms=builders.NOW_MS - 5000),
            builders.batch(10, 1, log_append_time=True),
        ]
    )
    items = [item for item in scanned(data) if isinstance(item, Batch)]
    assert items == walked(data)
    wrapped, empty, control, horizon, appended = items
    assert (wrapped.base_sequence, wrapped.last_sequence) == (2**31 - 2, 0)
    assert (empty.records_count, empty.last_offset, empty.last_sequence) == (0, 7, 5)
    assert (control.size_bytes, control.control_type, control.coordinator_epoch) == (61, None, None)
    assert horizon.delete_horizon_ms == builders.NOW_MS - 5000
    assert (horizon.control_type, horizon.coordinator_epoch) == (0, 3)
    assert (appended.timestamp_type, appended.is_control) == (1, False)


def test_chained_checksum_sees_every_flip_of_a_covered_bit() -> None:
    data, _ = big_segment()
    data = data[:3000]
    positions, stop = walk(data, len(data))
    places = np.array(positions)
    stored = arrays.gather(data, HEADER_DTYPE, places)["crc"]
    verifier = Verifier()
    assert verifier.all_right(data, places, stop, stored)
    covered = [
        at
        for start, end in zip(positions, [*positions[1:], stop], strict=True)
        for at in range(start + 21, end)
    ]
    choice = random.Random(1)
    for at in covered:
        broken = bytearray(data)
        broken[at] ^= 1 << choice.randrange(8)
        assert not verifier.all_right(bytes(broken), places, stop, stored)
    for index in range(len(positions)):
        wrong = stored.copy()
        wrong[index] ^= 1 << choice.randrange(32)
        assert not verifier.all_right(data, places, stop, wrong)
