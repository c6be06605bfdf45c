"""Decompression with a bound.

Source: `CompressionType`; snappy comes in the framing of snappy-java (xerial) or raw.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from pipeline.wire.batch import CODEC_GZIP, CODEC_LZ4, CODEC_NONE, CODEC_SNAPPY, CODEC_ZSTD
from pipeline.wire.cursor import read_uvarint
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

_STREAM_CODECS = {CODEC_GZIP: "gzip", CODEC_LZ4: "lz4", CODEC_ZSTD: "zstd"}
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")  # magic, version, lowest compatible version
_BLOCK_SIZE = struct.Struct(">i")
_PIECE_BYTES = 1 << 16
# A snappy element of 3 bytes (copy with 2-byte offset) yields at most 64 bytes.
_SNAPPY_MAX_RATIO = 64


def decompress(codec: int, data: bytes, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Decompress the records of one batch.

    Args:
        codec: as in the batch attributes.
        data: the bytes behind the batch header.
        limits: `max_decompressed_bytes` bounds the result and the memory used on the way.

    Raises:
        WireError: reason `codec` (unknown or broken), or `too_large`.
    """
    if codec == CODEC_NONE:
        return data
    if codec == CODEC_SNAPPY:
        return _snappy(data, limits)
    name = _STREAM_CODECS.get(codec)
    if name is None:
        raise WireError(f"unknown compression {codec}", "codec")
    pieces: list[pa.Buffer] = []
    size = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), name) as stream:
            # `read` would leak its 64 KiB whenever the stream is broken; `read_buffer` does not.
            while (piece := stream.read_buffer(_PIECE_BYTES)).size:
                size += piece.size
                if size > limits.max_decompressed_bytes:
                    raise WireError(f"{name} beyond {limits.max_decompressed_bytes}", "too_large")
                pieces.append(piece)
    except (pa.ArrowException, OSError) as error:
        raise WireError(f"broken {name}: {type(error).__name__}", "codec") from None
    except MemoryError:
        raise WireError(f"{name} needs too much memory", "too_large") from None
    return b"".join(pieces)


def _snappy(data: bytes, limits: Limits) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, limits.max_decompressed_bytes)
    if len(data) < _XERIAL_HEADER.size:
        raise WireError("broken snappy: short framing header", "codec")
    at = _XERIAL_HEADER.size
    pieces: list[bytes] = []
    room = limits.max_decompressed_bytes
    while at < len(data):
        if at + _BLOCK_SIZE.size > len(data):
            raise WireError("broken snappy: ends inside a block size", "codec")
        size = _BLOCK_SIZE.unpack_from(data, at)[0]
        at += _BLOCK_SIZE.size
        if not 0 < size <= len(data) - at:
            raise WireError("broken snappy: impossible block size", "codec")
        pieces.append(_snappy_block(data[at : at + size], room))
        room -= len(pieces[-1])
        at += size
    return b"".join(pieces)


def _snappy_block(block: bytes, room: int) -> bytes:
    """Decompress one raw block, whose own length announcement is checked before it is believed."""
    try:
        announced, start = read_uvarint(block, 0)
    except WireError:
        raise WireError("broken snappy: no length", "codec") from None
    if announced > room:
        raise WireError(f"snappy beyond {room}", "too_large")
    if announced > (len(block) - start) * _SNAPPY_MAX_RATIO:
        raise WireError("broken snappy: announces more than it can hold", "codec")
    try:
        return bytes(
            pa.decompress(block, decompressed_size=announced, codec="snappy", asbytes=True)
        )
    except (pa.ArrowException, OSError) as error:
        raise WireError(f"broken snappy: {type(error).__name__}", "codec") from None
