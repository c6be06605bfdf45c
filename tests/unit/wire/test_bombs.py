"""Decompression bombs, forged sizes and broken streams: refused, with little memory and time (figure 5)."""

from __future__ import annotations

import resource
import struct
import time
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.wire import codecs, record
from pipeline.wire.errors import WireError
from pipeline.wire.limits import Limits
from tests import builders

CODECS = (builders.GZIP, builders.SNAPPY, builders.LZ4, builders.ZSTD)
TEXT = b"value " * 100


def bomb(codec: int, size: int) -> bytes:
    """A batch of one block of zeros behind its header; the checksum is right."""
    zeros = bytes(size)
    if codec == builders.SNAPPY:
        packed = pa.compress(zeros, codec="snappy", asbytes=True)
    else:
        packed = builders.compress(codec, zeros)
    head = bytearray(builders.batch(0, 1)[:61])
    head[22] = codec
    head[8:12] = struct.pack(">i", 49 + len(packed))
    return builders.with_crc(bytes(head) + packed)


FORGED = {
    "snappy raw length": (builders.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\0" * 20),
    "snappy raw length within the limit": (builders.SNAPPY, b"\x80\x80\x80\x18" + b"\0" * 20),
    "snappy block size": (
        builders.SNAPPY,
        b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, 2**31 - 1) + b"\0" * 20,
    ),
    "snappy negative block size": (
        builders.SNAPPY,
        b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, -5) + b"\0" * 20,
    ),
    "snappy block announces much": (
        builders.SNAPPY,
        b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, 9) + b"\xff\xff\xff\xff\x0f" + b"\0" * 4,
    ),
    "zstd window": (builders.ZSTD, bytes.fromhex("28b52ffd00f8") + b"\0" * 20),
    "zstd content size": (builders.ZSTD, bytes.fromhex("28b52ffde0") + b"\xff" * 8 + b"\1\0\0"),
    "lz4 content size": (builders.LZ4, bytes.fromhex("04224d186c70") + b"\xff" * 8 + b"\0" * 8),
    "lz4 block size": (builders.LZ4, bytes.fromhex("04224d186070") + b"s\xff\xff\xff\x7f" * 2),
    "gzip header": (builders.GZIP, b"\x1f\x8b\x08\0" + b"\xff" * 30),
    "gzip extra field": (builders.GZIP, b"\x1f\x8b\x08\x04" + bytes(6) + b"\xff\xff" + b"\0" * 20),
    "zstd dictionary": (builders.ZSTD, bytes.fromhex("28b52ffd03ffffffff00") + b"\0" * 20),
    "zstd skippable frame": (builders.ZSTD, bytes.fromhex("502a4d18ffffffff") + b"\0" * 20),
    "lz4 skippable frame": (builders.LZ4, bytes.fromhex("502a4d18ffffffff") + b"\0" * 20),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_sizes(name: str) -> None:
    codec, payload = FORGED[name]
    check_bounded(codec, payload)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("mib", [65, 256])
def test_decompression_bombs(codec: int, mib: int) -> None:
    data = bomb(codec, mib << 20)
    check_bounded(codec, data[61:])
    with pytest.raises(WireError):
        record.records(data)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_of_many_frames(codec: int) -> None:
    """300 frames (snappy: runs of blocks) of 1 MiB each, none of which is too large."""
    head = 16 if codec == builders.SNAPPY else 0
    frame = builders.compress(codec, bytes(1 << 20))
    check_bounded(codec, frame[:head] + frame[head:] * 300)


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_that_ends_early(codec: int) -> None:
    whole = builders.compress(codec, TEXT)
    check_bounded(codec, whole[: len(whole) * 2 // 3])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("written", CODECS)
def test_a_stream_of_another_codec(codec: int, written: int) -> None:
    data = builders.compress(written, TEXT)
    if codec == written:
        assert codecs.decompress(codec, data) == TEXT
    else:
        check_bounded(codec, data)


@pytest.mark.parametrize("codec", [builders.GZIP, builders.LZ4, builders.ZSTD])
def test_broken_streams_leave_no_memory_behind(codec: int) -> None:
    """`read` of an Arrow stream loses its buffer of 64 KiB with each error: 1,000 of them 62 MiB."""
    whole = builders.compress(codec, b"value " * 100)
    before = resident_mib()
    for _ in range(1000):
        with pytest.raises(WireError):
            codecs.decompress(codec, whole[: len(whole) * 2 // 3])
    assert resident_mib() - before < 20


def resident_mib() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def check_bounded(codec: int, payload: bytes) -> None:
    limits = Limits(max_decompressed_bytes=16 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    with pytest.raises(WireError) as caught:
        codecs.decompress(codec, payload, limits)
    seconds = time.process_time() - started
    rise_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{caught.value.reason}: {seconds:.3f} s, {rise_mib:.0f} MiB more at most")
    assert caught.value.reason in ("codec", "too_large")
    assert rise_mib < 64
    assert seconds < 1
