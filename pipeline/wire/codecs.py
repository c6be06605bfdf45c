"""Decompression of record batches, bounded.

Source: `CompressionType`; snappy comes in Kafka's xerial framing from Java clients and raw from others.
"""

from __future__ import annotations

import io

import pyarrow as pa

from pipeline.wire.batch import CODEC_GZIP, CODEC_LZ4, CODEC_NONE, CODEC_SNAPPY, CODEC_ZSTD
from pipeline.wire.cursor import read_uvarint
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_STREAMS = {CODEC_GZIP: "gzip", CODEC_LZ4: "lz4", CODEC_ZSTD: "zstd"}


def decompress(codec: int, data: bytes, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Decompress the records of one batch.

    Raises:
        WireError: unknown codec, broken stream, or more than `limits.max_decompressed_bytes`.
    """
    if codec == CODEC_NONE:
        return data
    if codec == CODEC_SNAPPY:
        return _snappy(data, limits)
    if codec not in _STREAMS:
        raise WireError(f"codec {codec}", "codec")
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), _STREAMS[codec]) as stream:
            plain: bytes = stream.read(limits.max_decompressed_bytes + 1)
    except (OSError, pa.ArrowException) as error:
        raise WireError(f"{_STREAMS[codec]} stream is broken", "codec") from error
    if len(plain) > limits.max_decompressed_bytes:
        raise WireError("decompresses beyond the limit", "too_large")
    return plain


def _snappy(data: bytes, limits: Limits) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limits.max_decompressed_bytes)
    out = io.BytesIO()
    at = _XERIAL_HEADER
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if size <= 0 or at + size > len(data):
            raise WireError("snappy block beyond the batch", "codec")
        out.write(_snappy_block(data[at : at + size], limits.max_decompressed_bytes - out.tell()))
        at += size
    return out.getvalue()


def _snappy_block(block: bytes, limit: int) -> bytes:
    size, _ = read_uvarint(block, 0)
    if size > limit:
        raise WireError("decompresses beyond the limit", "too_large")
    try:
        plain: bytes = pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise WireError("snappy block is broken", "codec") from error
    return plain
