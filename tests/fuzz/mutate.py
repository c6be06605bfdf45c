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

from pipeline.wire import (
    arrays,
    checkpoints,
    group_offsets,
    offset_index,
    producer_snapshot,
    record,
    scan,
    segment,
    txn_index,
    txn_state,
)
from pipeline.wire.batch import Batch, Damage
from pipeline.wire.errors import WireError
from pipeline.wire.limits import Limits
from tests import builders, log_layout

SLOW_SECONDS = 1.0
LIMITS = Limits(chunk_bytes=4096, max_decompressed_bytes=1 << 20)
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


class Target(NamedTuple):
    """A decoder with its seeds; `has_crc` says that the seeds are single batches."""

    name: str
    seeds: list[bytes]
    run: Callable[[bytes], object]
    has_crc: bool


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


def read_segment(data: bytes) -> None:
    """Both ways agree on every verified batch, and account for every byte once.

    Which of several contradicting base offsets lies is judged within what is at hand, so there
    the two may differ.
    """
    reference = list(segment.iterate(data, LIMITS))
    found = list(scan.scan(lambda at, size: data[at : at + size], len(data), limits=LIMITS))
    batches = [b for f in found if isinstance(f, arrays.Chunk) for b in arrays.to_batches(f.arrays)]
    verified = [item for item in reference if isinstance(item, Batch)]
    regressed = regressions(reference) | regressions(found)
    batches_left = [batch for batch in batches if batch.position not in regressed]
    assert batches_left == [batch for batch in verified if batch.position not in regressed]
    assert sum(item.size_bytes for item in reference) == len(data)
    skipped = sum(item.size_bytes for item in found if isinstance(item, Damage))
    assert skipped + sum(batch.size_bytes for batch in batches) == len(data)
    for item in found:
        if isinstance(item, arrays.Chunk):
            txn_state.decode_batches(item, range(len(item.arrays.position)), LIMITS)
            group_offsets.decode_batches(item, range(len(item.arrays.position)), LIMITS)


def regressions(items: list[arrays.Chunk | Damage] | list[Batch | Damage]) -> set[int]:
    """Byte positions within damage of this reason."""
    return {
        position
        for item in items
        if isinstance(item, Damage) and item.reason == "offset_regression"
        for position in range(item.position, item.position + item.size_bytes)
    }


def read_batch(data: bytes) -> None:
    record.records(data, LIMITS)
    record.control_marker(data, LIMITS)


def pair(decode: Callable[[bytes, bytes, Limits], object]) -> Callable[[bytes], object]:
    """Seeds of key and value: one byte of key size first."""
    return lambda data: decode(data[1 : 1 + data[0]], data[1 + data[0] :], LIMITS) if data else None


def make_targets() -> list[Target]:
    """All decoders; segments come first, so that they get their full share."""
    recs = [builders.Rec(b"k%d" % n, b"v" * n, headers=(("h", b"x"),)) for n in range(5)]
    batches = [builders.batch(3, recs, codec=codec, producer_id=1) for codec in range(5)]
    batches += [builders.marker(9), builders.batch(9, 0, control=True), builders.batch(9, 1)]
    legacy = [builders.legacy_message(n, b"v", magic=n % 2) for n in range(2)]
    key = builders.txn_key("some-id")
    parts = (("topic-a", 1), ("topic-b", 2))
    states = [
        builders.txn_value(1, version=version, partitions=parts, client_transaction_version=2)
        for version in (0, 1)
    ]
    states.append(builders.txn_value(5, version=1, previous_producer_id=1, unknown_tags={9: b"x"}))
    segments = [
        b"".join([*legacy, *batches[:2], builders.marker(20), builders.batch(21, recs)]),
        b"".join(builders.txn_entry(n, "id", states[n % 3]) for n in range(6)),
        b"".join(builders.batch(n, 1) for n in range(8)) + bytes(300),
    ]
    offset = builders.offset_key("group", "topic", 1)
    member = builders.string("m") + struct.pack(">h", -1) + builders.string("c")
    member += builders.string("h") + struct.pack(">iiii", 1, 2, 0, 0)
    group = struct.pack(">h", 3) + builders.string("consumer") + struct.pack(">ihhq", 5, -1, -1, 9)
    group += struct.pack(">i", 2) + member * 2
    commits = [builders.offset_value(5, version=version, metadata="m") for version in range(5)]

    def paired(some_key: bytes, value: bytes) -> bytes:
        return bytes([len(some_key)]) + some_key + value

    groups = [paired(offset, value) for value in commits] + [
        paired(builders.group_key("g"), group),
        paired(builders.group_key("g", 8, "m"), struct.pack(">hi", 0, 3)),
    ]
    entry = (7, 1, 5, 9, 0, 1000, 3, 8)
    return [
        Target("segment", segments, read_segment, False),
        Target("batch", batches, read_batch, True),
        Target("batch in a segment", batches, read_segment, True),
        Target("legacy", legacy, read_batch, False),
        Target("txn_state", [paired(key, v) for v in states], pair(txn_state.decode), False),
        Target("group_offsets", groups, pair(group_offsets.decode), False),
        Target("snapshot", [log_layout.snapshot([entry] * 3)], producer_snapshot.read, False),
        Target("txnindex", [log_layout.txn_index([entry[:4]] * 3)], txn_index.read, False),
        Target(
            "index",
            [log_layout.offset_index([(5, 9), (7, 99)], zero_bytes=32)],
            lambda data: (
                offset_index.read_offset_index(data, 0),
                offset_index.read_time_index(data, 0),
            ),
            False,
        ),
        Target(
            "checkpoint",
            [
                log_layout.offset_checkpoint({("t", 0): 5}),
                log_layout.leader_epoch_checkpoint([(0, 1)]),
            ],
            read_checkpoints,
            False,
        ),
    ]


def read_checkpoints(data: bytes) -> None:
    for read in (
        checkpoints.offset_checkpoint,
        checkpoints.leader_epoch_checkpoint,
        checkpoints.partition_metadata,
        checkpoints.meta_properties,
        checkpoints.clean_shutdown,
    ):
        try:
            read(data)
        except WireError:
            continue


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
