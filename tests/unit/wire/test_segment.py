"""Damage is found, named, and gone round."""

from __future__ import annotations

import struct

import pytest

from pipeline.wire.batch import Batch, Damage
from pipeline.wire.limits import Limits
from tests import builders
from tests.unit.wire.walks import (
    SMALL_CHUNKS,
    covers,
    damages_of,
    scanned,
    walked,
    without_words,
)


def plain_segment(count: int = 12, first: int = 0) -> tuple[bytes, list[int]]:
    """Data, markers and a compressed batch; the bytes, and where each batch starts."""
    parts, offset = [], first
    for index in range(count):
        if index % 4 == 3:
            parts.append(builders.marker(offset, producer_id=7))
            offset += 1
            continue
        codec = builders.GZIP if index % 5 == 2 else builders.NONE
        records = [builders.Rec(b"key", b"value-%d" % index) for _ in range(1 + index % 3)]
        parts.append(
            builders.batch(
                offset,
                records,
                producer_id=7,
                base_sequence=offset,
                transactional=True,
                codec=codec,
            )
        )
        offset += len(records)
    starts = [sum(map(len, parts[:index])) for index in range(len(parts))]
    return b"".join(parts), starts


def check_both(data: bytes) -> list[Batch | Damage]:
    """Both ways agree, with large and small chunks, and account for every byte."""
    reference = walked(data)
    assert scanned(data) == reference
    assert without_words(scanned(data, SMALL_CHUNKS)) == without_words(reference)
    assert covers(reference, len(data))
    return reference


def test_clean_segment() -> None:
    data, starts = plain_segment()
    items = check_both(data)
    assert [item.position for item in items] == starts
    assert not damages_of(items)


def test_empty_file() -> None:
    assert check_both(b"") == []


def test_every_truncation_gives_the_intact_prefix_and_a_torn_tail() -> None:
    data, starts = plain_segment()
    whole = walked(data)
    ends = [*starts[1:], len(data)]
    for size in range(len(data)):
        items = check_both(data[:size])
        kept = sum(end <= size for end in ends)
        assert items[:kept] == whole[:kept]
        rest = size - ([0, *ends][kept])
        expected = [("torn_tail", size - rest, rest)] if rest else []
        if rest and not any(data[size - rest : size]):
            expected = [("zero_tail", size - rest, rest)]  # the first bytes of offset 0
        assert damages_of(items) == expected


def test_every_bit_flip_is_found_where_the_checksum_covers() -> None:
    data, starts = plain_segment(8)
    whole = walked(data)
    ends = [*starts[1:], len(data)]
    unprotected = {"flips": 0, "unseen": 0}
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        for bit in range((end - start) * 8):
            flipped = bytearray(data)
            flipped[start + bit // 8] ^= 1 << bit % 8
            items = check_both(bytes(flipped)) if bit % 7 == 0 else walked(bytes(flipped))
            is_seen = bool(damages_of(items))
            if bit // 8 >= 16:
                assert is_seen, (index, bit)
                assert items[:index] == whole[:index]
                assert [i for i in items if i.position >= end] == whole[index + 1 :]
            else:
                unprotected["flips"] += 1
                unprotected["unseen"] += not is_seen
                if is_seen:  # never more than one neighbour is lost
                    assert len([i for i in items if isinstance(i, Batch)]) >= len(whole) - 2
    print("bytes 0-15:", unprotected)
    # The leader epoch (32 of 128 bits) is seen by nothing here; the rest mostly is.
    assert unprotected["unseen"] / unprotected["flips"] < 0.4


def test_zero_tail_and_zero_block() -> None:
    data, starts = plain_segment(200)
    items = check_both(data + bytes(10_000))
    assert damages_of(items) == [("zero_tail", len(data), 10_000)]
    hole = bytearray(data)
    hole[4096:8192] = bytes(4096)
    items = check_both(bytes(hole))
    first = max(start for start in starts if start < 4096)
    behind = min(start for start in starts if start >= 8192)
    damages = [item for item in items if isinstance(item, Damage)]
    # The last batch in the hole lost no covered byte, only its offset: it is not believed either.
    assert [damage.reason for damage in damages] == ["crc", "offset_regression"]
    assert damages[0].position == first
    assert sum(damage.size_bytes for damage in damages) == behind - first
    following = next(item for item in items if item.position == behind)
    assert isinstance(following, Batch)
    assert following.base_offset > 0


def test_wrong_checksum_in_the_middle() -> None:
    data, starts = plain_segment()
    broken = bytearray(data)
    broken[starts[5] - 1] ^= 0xFF
    broken[starts[9] - 1] ^= 0xFF
    items = check_both(bytes(broken))
    assert damages_of(items) == [
        ("crc", starts[4], starts[5] - starts[4]),
        ("crc", starts[8], starts[9] - starts[8]),
    ]


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (8, struct.pack(">i", 0), "bad_length"),
        (8, struct.pack(">i", -1), "bad_length"),
        (8, struct.pack(">i", 48), "bad_length"),
        (8, struct.pack(">i", 2**31 - 1), "bad_length"),
        (16, b"\x03", "bad_magic"),
        (16, b"\xff", "bad_magic"),
    ],
)
def test_broken_header_field(offset: int, value: bytes, reason: str) -> None:
    data, starts = plain_segment()
    broken = bytearray(data)
    broken[starts[5] + offset : starts[5] + offset + len(value)] = value
    items = check_both(bytes(broken))
    assert damages_of(items) == [(reason, starts[5], starts[6] - starts[5])]


def with_field(batch: bytes, offset: int, value: bytes) -> bytes:
    return builders.with_crc(batch[:offset] + value + batch[offset + len(value) :])


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (21, struct.pack(">h", 5), "codec"),
        (23, struct.pack(">i", -1), "bad_record"),
        (57, struct.pack(">i", -1), "bad_record"),
        (57, struct.pack(">i", 1000), "bad_record"),
        (0, struct.pack(">q", 2**63 - 1), "bad_record"),
    ],
)
def test_header_that_contradicts_itself_with_a_right_checksum(
    offset: int, value: bytes, reason: str
) -> None:
    broken = with_field(builders.batch(5, 2), offset, value)
    data = builders.batch(0, 5) + broken + builders.batch(7, 1)
    items = check_both(data)
    assert [found[0] for found in damages_of(items)] == [reason]
    assert len(items) == 3


def test_control_batch_without_a_type() -> None:
    broken = builders.batch(5, [builders.Rec(b"\0", b"")], control=True, producer_id=1)
    items = check_both(builders.batch(0, 5) + broken + builders.batch(6, 1))
    assert [found[0] for found in damages_of(items)] == ["bad_record"]


def test_batch_beyond_the_limit() -> None:
    data = builders.batch(0, 1) + builders.batch(1, [builders.Rec(None, bytes(5000))])
    data += builders.batch(2, 1)
    limits = Limits(chunk_bytes=1000, max_batch_bytes=4000)
    for items in (walked(data, limits), scanned(data, limits)):
        assert [found[0] for found in damages_of(items)] == ["too_large"]
        assert [item.base_offset for item in items if isinstance(item, Batch)] == [0, 2]


def test_segment_beyond_the_limit_is_read_no_further() -> None:
    data, _ = plain_segment(40)
    items = scanned(data, Limits(chunk_bytes=500, max_segment_bytes=1000))
    assert damages_of(items)[-1] == ("too_large", 1000, len(data) - 1000)


@pytest.mark.parametrize("wrong", [3, 2**40])
def test_base_offset_that_lies_is_dropped_and_its_neighbours_kept(wrong: int) -> None:
    parts = [builders.batch(offset, 1) for offset in range(10, 20)]
    parts[5] = struct.pack(">q", wrong) + parts[5][8:]
    items = check_both(b"".join(parts))
    size = len(parts[0])
    assert damages_of(items) == [("offset_regression", 5 * size, size)]


def test_last_but_one_base_offset_that_lies() -> None:
    parts = [builders.batch(offset, 1) for offset in range(5)]
    parts[3] = struct.pack(">q", 2**40) + parts[3][8:]
    items = check_both(b"".join(parts))
    assert damages_of(items) == [("offset_regression", 3 * len(parts[0]), len(parts[0]))]


def test_offsets_below_the_segment() -> None:
    data = builders.batch(4, 1) + builders.batch(100, 1)
    reasons = [found[0] for found in damages_of(scanned(data, first_offset=100))]
    assert reasons == ["offset_regression"]


def test_legacy_entries_before_batches() -> None:
    parts = [builders.legacy_message(0, magic=0), builders.legacy_message(1, magic=1)]
    data = b"".join([*parts, builders.batch(2, 3)])
    items = check_both(data)
    assert [(i.magic, i.base_offset, i.producer_id) for i in items if isinstance(i, Batch)] == [
        (0, 0, -1),
        (1, 1, -1),
        (2, 2, -1),
    ]
    broken = bytearray(data)
    broken[len(parts[0]) + 20] ^= 1
    assert damages_of(check_both(bytes(broken))) == [("crc", len(parts[0]), len(parts[1]))]
