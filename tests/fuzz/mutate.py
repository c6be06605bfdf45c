"""Mutated inputs of every wire format: no exception but WireError, nothing slow.

A plain loop, as fast as it gets: bytes are changed blindly or field by field, and for batches the
checksum is put right again, so that the decoders behind it see the damage. Run it as a
program, or as a test with a small count; `AUDIT_FUZZ_COUNT` sets the count and
`AUDIT_FUZZ_SEED` the seed.
"""

from __future__ import annotations

import collections
import os
import random
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from pipeline.wire.errors import WireError
from tests import builders
from tests.fuzz.targets import Target, make_targets

SLOW_SECONDS = 1.0
_INTERESTING = (0, 1, -1, 2, 127, 128, 255, 0x7FFF, -0x8000, 2**31 - 1, -(2**31), 2**63 - 1)
# Offset and struct code of the header fields that are changed on purpose.
_HEADER_FIELDS = (
    (0, ">q"),
    (8, ">i"),
    (12, ">i"),
    (16, ">b"),
    (21, ">h"),
    (23, ">i"),
    (27, ">q"),
    (35, ">q"),
    (43, ">q"),
    (51, ">h"),
    (53, ">i"),
    (57, ">i"),
)

Mutate = Callable[[bytearray, random.Random], None]


class Result(NamedTuple):
    """Counts of one run; `slowest_seconds` is processor time, so that a busy machine does not count."""

    count: int
    refused: int
    foreign: collections.Counter[str]
    slowest_seconds: float
    seconds: float


def run(count: int, seed: int) -> Result:
    """Feed `count` mutated inputs to the targets in turn."""
    rng = random.Random(seed)
    targets = make_targets()
    refused, slowest = 0, 0.0
    foreign: collections.Counter[str] = collections.Counter()
    started = time.perf_counter()
    for number in range(count):
        target = targets[number % len(targets)]
        data = mutated(target, rng)
        before = time.process_time()
        try:
            target.run(data)
        except WireError:
            refused += 1
        except Exception as error:
            text = f"{target.name}: {type(error).__name__}: {error} <- {data.hex()[:3000]}"
            foreign[text] += 1
        slowest = max(slowest, time.process_time() - before)
    return Result(count, refused, foreign, slowest, time.perf_counter() - started)


def mutated(target: Target, rng: random.Random) -> bytes:
    """Change one seed a few times; put the checksum right in two cases of three."""
    data = bytearray(rng.choice(target.seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        kinds: tuple[Mutate, ...] = (flip, overwrite, number, cut, insert, duplicate)
        rng.choice(kinds + ((header,) * 3 if target.has_crc else ()))(data, rng)
    if target.has_crc and len(data) >= 61 and rng.random() < 0.67:
        if rng.random() < 0.8:
            data[8:12] = struct.pack(">i", len(data) - 12)
        return builders.with_crc(data)
    return bytes(data)


def flip(data: bytearray, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(data: bytearray, rng: random.Random) -> None:
    if data:
        at = rng.randrange(len(data))
        data[at : at + rng.randrange(1, 9)] = rng.randbytes(rng.randrange(1, 9))


def number(data: bytearray, rng: random.Random) -> None:
    if len(data) >= 8:
        code = rng.choice((">b", ">h", ">i", ">q"))
        put(data, rng.randrange(len(data) - 7), code, rng.choice(_INTERESTING))


def cut(data: bytearray, rng: random.Random) -> None:
    if data:
        at = rng.randrange(len(data))
        del data[at : at + rng.choice((1, 2, 8, len(data)))]


def insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice((rng.randbytes(rng.randrange(1, 9)), bytes(rng.randrange(1, 99))))


def duplicate(data: bytearray, rng: random.Random) -> None:
    if data:
        at = rng.randrange(len(data))
        data[at:at] = data[at : at + rng.randrange(1, 200)]


def header(data: bytearray, rng: random.Random) -> None:
    at, code = rng.choice(_HEADER_FIELDS)
    if len(data) >= 61:
        put(data, at, code, rng.choice((*_INTERESTING, rng.getrandbits(64))))


def put(data: bytearray, at: int, code: str, value: int) -> None:
    bits = struct.calcsize(code) * 8
    wrapped = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    struct.pack_into(code, data, at, wrapped)


def from_environment(default_count: int) -> tuple[int, int]:
    """Count and seed of this run."""
    environment = os.environ
    count = int(environment.get("AUDIT_FUZZ_COUNT", str(default_count)))
    return count, int(environment.get("AUDIT_FUZZ_SEED", "20261128"))


def describe(result: Result, seed: int) -> str:
    """One line of figures."""
    return (
        f"seed {seed}: {result.count} mutated inputs in {result.seconds:.1f} s, "
        f"{result.refused} refused, {result.foreign.total()} foreign exceptions, "
        f"slowest {result.slowest_seconds:.3f} s"
    )


def main() -> int:
    count, seed = from_environment(1_000_000)
    result = run(count, seed)
    print(describe(result, seed))
    for text, times in result.foreign.most_common(20):
        print(times, text)
    return 1 if result.foreign or result.slowest_seconds > SLOW_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
