"""Records, markers, and decompression within bounds."""

from __future__ import annotations

import struct
import zlib

import google_crc32c
import pyarrow as pa
import pytest

from pipeline.wire import codecs, legacy, record
from pipeline.wire.cursor import read_varint, read_varlong
from pipeline.wire.errors import WireError
from tests import builders

# A transaction of one record, from a published dump (CRCs 36518872 and 2557578104).
GOLDEN_DATA = bytes.fromhex(
    "00000000000000000000004600000000022d3bd58000100000000000000195c361845000000195c36184500000"
    "0000000000010000000000000000000128000000011c747365742061207369207369687400"
)
GOLDEN_COMMIT = bytes.fromhex(
    "000000000000000100000042000000000298718b7800300000000000000195c36185c200000195c36185c20000"
    "0000000000010000ffffffff000000012000000008000000010c00000000000000"
)


def test_golden_batches() -> None:
    (item,) = record.records(GOLDEN_DATA)
    assert item == record.Record(0, 1742739702864, 0, None, b"tset a si siht", 0)
    assert record.control_marker(GOLDEN_COMMIT) == (1, 0)
    assert builders.marker(1, producer_id=1, timestamp_ms=1742739703234) == GOLDEN_COMMIT


def test_null_and_empty_are_different() -> None:
    recs = [
        builders.Rec(None, b""),
        builders.Rec(b"", None, headers=(("h", None), ("", b"x"))),
    ]
    first, second = record.records(builders.batch(5, recs, base_sequence=2**31 - 1))
    assert (first.key, first.value, first.header_count, first.sequence) == (None, b"", 0, 2**31 - 1)
    assert (second.key, second.value, second.header_count, second.sequence) == (b"", None, 2, 0)


def test_append_time_is_the_time_of_every_record() -> None:
    recs = [builders.Rec(timestamp_ms=10), builders.Rec(timestamp_ms=20)]
    data = builders.batch(0, recs, log_append_time=True, max_timestamp_ms=99)
    assert [item.timestamp_ms for item in record.records(data)] == [99, 99]
    assert [item.timestamp_ms for item in record.records(builders.batch(0, recs))] == [10, 20]


def test_offsets_left_by_compaction() -> None:
    recs = [builders.Rec(offset_delta=2), builders.Rec(offset_delta=5)]
    data = builders.batch(100, recs, last_offset_delta=9, base_sequence=50)
    found = [(item.offset, item.sequence) for item in record.records(data)]
    assert found == [(102, 52), (105, 55)]


@pytest.mark.parametrize("codec", range(5))
def test_codecs_round_trip(codec: int) -> None:
    recs = [builders.Rec(b"k%d" % n, b"v" * n) for n in range(300)]
    found = record.records(builders.batch(0, recs, codec=codec))
    assert [(item.key, item.value) for item in found] == [(r.key, r.value) for r in recs]


def test_every_truncated_record_section_is_an_error() -> None:
    recs = [builders.Rec(b"key", b"value", headers=(("a", b"b"),)), builders.Rec()]
    data = builders.batch(0, recs)
    for size in range(len(data)):
        cut = data[:size]
        if size >= 12:
            cut = cut[:8] + struct.pack(">i", size - 12) + cut[12:]
        with pytest.raises(WireError):
            record.records(cut)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0" * 6),
        (b"\0\0\0", b"\0" * 6),
        (b"\xff\xff\0\1", b"\0" * 6),
        (b"\0\0\xff\xff", b"\0" * 6),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0" * 5),
        (b"\0\0\0\1", b"\xff\xff" + b"\0" * 4),
    ],
)
def test_bad_markers(key: bytes | None, value: bytes | None) -> None:
    data = builders.batch(0, [builders.Rec(key, value)], control=True)
    with pytest.raises(WireError):
        record.control_marker(data)


def test_markers_of_other_kinds() -> None:
    other = builders.batch(0, [builders.Rec(b"\0\0\0\2", b"anything")], control=True)
    assert record.control_marker(other) == (2, None)
    newer = builders.batch(0, [builders.Rec(b"\0\7\0\0xx", b"\0\7\0\0\0\4xx")], control=True)
    assert record.control_marker(newer) == (0, 4)
    empty = builders.batch(0, 0, control=True)
    assert len(empty) == 61
    assert record.control_marker(empty) == (None, None)
    sizes = {len(builders.marker(delete_horizon_ms=builders.NOW_MS - ms)) for ms in (1000, 10**7)}
    assert sizes == {79, 81}


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"\0", 0), (b"\1", -1), (b"\2", 1), (b"\xff\xff\xff\xff\x0f", -(2**31))],
)
def test_varints(data: bytes, value: int) -> None:
    assert read_varint(data, 0) == (value, len(data))
    assert read_varlong(builders.varint(value), 0)[0] == value


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80" * 5 + b"\0"])
def test_bad_varints(data: bytes) -> None:
    with pytest.raises(WireError):
        read_varint(data, 0)
    with pytest.raises(WireError):
        read_varlong(data[:-1] * 2 + data if len(data) > 4 else data, 0)


def test_legacy_messages() -> None:
    plain = builders.legacy_message(7, b"v", magic=1, key=b"k", timestamp_ms=5)
    assert record.records(plain) == [record.Record(7, 5, -1, b"k", b"v", 0)]
    inner = b"".join(builders.legacy_message(n, b"v%d" % n, magic=1) for n in range(3))
    value = pa.compress(inner, codec="gzip", asbytes=True)
    body = struct.pack(">bbqii", 1, 1, 9, -1, len(value)) + value
    outer = struct.pack(">qiI", 12, len(body) + 4, zlib.crc32(body)) + body
    assert legacy.crc_ok(outer)
    assert [item.offset for item in record.records(outer)] == [10, 11, 12]
    backwards = struct.pack(">q", 1) + outer[8:]
    with pytest.raises(WireError):
        record.records(backwards)


def test_unknown_codec() -> None:
    with pytest.raises(WireError) as caught:
        codecs.decompress(6, b"")
    assert caught.value.reason == "codec"


def test_forged_record_count() -> None:
    data = builders.batch(0, 1, last_offset_delta=2**31 - 1)
    forged = builders.with_crc(data[:57] + struct.pack(">i", 2**31 - 1) + data[61:])
    with pytest.raises(WireError) as caught:
        record.records(forged)
    assert caught.value.reason == "too_large"
    forged = builders.with_crc(data[:57] + struct.pack(">i", 1_000_000) + data[61:])
    with pytest.raises(WireError):
        record.records(forged)


def test_golden_checksums() -> None:
    for data in (GOLDEN_DATA, GOLDEN_COMMIT):
        assert google_crc32c.value(data[21:]) == struct.unpack_from(">I", data, 17)[0]
