"""Reading primitive types of Kafka's protocol, with bounds.

Source: `ByteUtils` (varints), `Type` and the generated message classes (strings, tagged fields).
"""

from __future__ import annotations

import struct

from pipeline.wire.errors import WireError

Buffer = bytes | memoryview

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


def text(raw: bytes) -> str:
    r"""Decode UTF-8; bytes that are none become `\xNN`."""
    return raw.decode("utf-8", "backslashreplace")


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes; give the value and the position after it."""
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF, at
            shift += 7
            if shift > 28:
                raise WireError("varint longer than 5 bytes")
    except IndexError:
        raise WireError("ends inside a varint") from None


def read_varint(data: Buffer, at: int) -> tuple[int, int]:
    """Read a zig-zag int32."""
    byte = data[at] if at < len(data) else 0x80
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, at = read_uvarint(data, at)
    return (value >> 1) ^ -(value & 1), at


def read_varlong(data: Buffer, at: int) -> tuple[int, int]:
    """Read a zig-zag int64 of at most 10 bytes."""
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value &= 0xFFFFFFFFFFFFFFFF
                return (value >> 1) ^ -(value & 1), at
            shift += 7
            if shift > 63:
                raise WireError("varlong longer than 10 bytes")
    except IndexError:
        raise WireError("ends inside a varlong") from None


class Cursor:
    """A position in one structure; every read checks the bounds and raises WireError."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    @property
    def remaining(self) -> int:
        """Bytes that are left."""
        return len(self.data) - self.at

    def _number(self, layout: struct.Struct) -> int:
        at = self.at
        if at + layout.size > len(self.data):
            raise WireError("ends inside a number")
        self.at = at + layout.size
        value: int = layout.unpack_from(self.data, at)[0]
        return value

    def int8(self) -> int:
        """Read a signed byte."""
        value = self.take(1)[0]
        return value - 256 if value > 127 else value

    def int16(self) -> int:
        """Read an int16."""
        return self._number(_INT16)

    def int32(self) -> int:
        """Read an int32."""
        return self._number(_INT32)

    def int64(self) -> int:
        """Read an int64."""
        return self._number(_INT64)

    def uvarint(self) -> int:
        """Read an unsigned varint."""
        value, self.at = read_uvarint(self.data, self.at)
        return value

    def take(self, size: int) -> bytes:
        """Read exactly `size` bytes."""
        if size < 0 or size > len(self.data) - self.at:
            raise WireError(f"{size} bytes announced, {self.remaining} left")
        at = self.at
        self.at = at + size
        return self.data[at : at + size]

    def string(self) -> str:
        """Read a string with an int16 length."""
        return text(self.take(self.int16()))

    def sized_bytes(self) -> bytes:
        """Read bytes with an int32 length."""
        return self.take(self.int32())

    def compact_bytes(self) -> bytes | None:
        """Read bytes with a compact length, None for null."""
        size = self.uvarint()
        return None if size == 0 else self.take(size - 1)

    def compact_string(self) -> str:
        """Read a compact string that may not be null."""
        value = self.compact_nullable_string()
        if value is None:
            raise WireError("null in a field that may not be null")
        return value

    def compact_nullable_string(self) -> str | None:
        """Read a compact string, None for null."""
        raw = self.compact_bytes()
        return None if raw is None else text(raw)

    def count(self, value: int, item_size: int, limit: int) -> int:
        """Check an announced number of items of at least `item_size` bytes each."""
        if value > limit:
            raise WireError(f"{value} items announced, limit {limit}", "too_large")
        if value < 0 or value * item_size > self.remaining:
            raise WireError(f"{value} items announced in {self.remaining} bytes")
        return value

    def tagged_fields(self) -> list[tuple[int, bytes]]:
        """Read the tag section that ends a flexible structure; tags ascend."""
        fields: list[tuple[int, bytes]] = []
        last_tag = -1
        for _ in range(self.count(self.uvarint(), 2, self.remaining)):
            tag = self.uvarint()
            if tag <= last_tag:
                raise WireError("tags out of order")
            last_tag = tag
            fields.append((tag, self.take(self.uvarint())))
        return fields

    def end(self) -> None:
        """Check that nothing is left."""
        if self.remaining:
            raise WireError(f"{self.remaining} bytes left over")
