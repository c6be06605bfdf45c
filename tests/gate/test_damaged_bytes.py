"""Every byte of files that are really damaged is in a whole batch or skipped with a reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.gate.frames import bytes_of
from tests.pure_input import Read, read
from tests.recordings import recording

Damage = Callable[[bytes], bytes]
SEGMENT = "orders-0/00000000000000000000.log"
DAMAGES: dict[str, Damage] = {
    "a bit flipped in a batch": lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
    "a bit flipped in a length": lambda data: data[:9] + bytes([data[9] ^ 0x40]) + data[10:],
    "cut inside a batch": lambda data: data[:-37],
    "cut inside a header": lambda data: data + data[:20],
    "a page of zeroes": lambda data: data[:3000] + bytes(4096) + data[7096:],
    "zeroes at the end": lambda data: data + bytes(10_000),
    "noise in the middle": lambda data: data[:4000] + b"\xa7" * 777 + data[4000:],
    "noise alone": lambda data: b"\x13\x37" * 4000,
    "a batch twice": lambda data: data + data,
    "empty": lambda _: b"",
    "a single byte": lambda data: data[:1],
}


def _read(root: Path, damage: Damage) -> tuple[Read, Path]:
    shutil.copytree(recording("02") / "logs", root)
    file = next(root.glob(f"*/{SEGMENT}"))
    file.write_bytes(damage(file.read_bytes()))
    return read(root, Config()), file


@pytest.mark.parametrize("name", DAMAGES)
def test_every_byte_is_accounted_for(name: str, tmp_path: Path) -> None:
    found, file = _read(tmp_path / "in", DAMAGES[name])
    frame = bytes_of(found.segments, found.unreadable)
    assert (frame["found"] == frame["expected"]).all(), frame[frame["found"] != frame["expected"]]
    sizes = {one["file"]: one["size_bytes"] for one in found.segments}
    assert sizes[str(file.relative_to(tmp_path / "in"))] == file.stat().st_size


@pytest.mark.parametrize("name", ["a bit flipped in a batch", "zeroes at the end", "noise alone"])
def test_damage_that_nobody_tells_is_missed(name: str, tmp_path: Path) -> None:
    found, file = _read(tmp_path / "in", DAMAGES[name])
    frame = bytes_of(found.segments, [])
    assert list(frame[frame["found"] != frame["expected"]]["what"]) == [
        str(file.relative_to(tmp_path / "in"))
    ]
