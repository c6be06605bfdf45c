"""Coordinator records read by position equal those decoded one by one, whatever the bytes."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline.spark import read_txn
from pipeline.spark.entry import Place, entry_batch
from pipeline.spark.read_records import data_batches
from pipeline.wire import txn_vector
from pipeline.wire.arrays import Chunk
from pipeline.wire.scan import scan
from tests import builders
from tests.builders import Rec
from tests.recordings import all_recordings

LISTS = [None, (), [("a", 0)], [("topic", 3), ("topic", 1), ("é", 7)], [("t" * 200, 9)]]


def chunks_of(data: bytes) -> list[Chunk]:
    pieces = scan(lambda position, length: data[position : position + length], len(data))
    return [piece for piece in pieces if isinstance(piece, Chunk)]


def check(chunk: Chunk) -> int:
    """Compares both ways; gives the number of records that were read by position."""
    place = Place(1, 2)
    groups, damages = read_txn.txn_rows(chunk)
    fast = [entry_batch(place, "txn_state", rows) for rows in groups]
    slow, expected_damages = read_txn._unusual_rows(chunk, data_batches(chunk).tolist())
    expected = [entry_batch(place, "txn_state", rows) for rows in slow]
    assert sorted(damages) == sorted(expected_damages)
    assert bool(fast) == bool(expected)
    if not expected:
        return 0
    found = pa.Table.from_batches(fast).sort_by("base_offset")
    assert found.to_pylist() == pa.Table.from_batches(expected).to_pylist()
    return len(txn_vector.read(chunk, data_batches(chunk))[0].batch_index)


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_recordings(folder: Path) -> None:
    for path in sorted((folder / "logs").glob("*/__transaction_state-*/*.log")):
        for chunk in chunks_of(path.read_bytes()):
            wanted = data_batches(chunk)
            found, rest = txn_vector.read(chunk, wanted)
            assert sorted([*found.batch_index, *rest]) == wanted.tolist()
            check(chunk)


def values(seed: int) -> list[bytes | None]:
    """Values of both versions with all tags, and such that no broker writes."""
    chosen = random.Random(seed)
    made: list[bytes | None] = [None, b"", b"\x00\x00", bytes(60), bytes(4000)]
    for _ in range(60):
        version = chosen.randint(0, 1)
        value = builders.txn_value(
            chosen.randint(0, 7),
            producer_id=chosen.choice([-1, 0, 2**63 - 1]),
            producer_epoch=chosen.choice([-1, 0, 32767]),
            partitions=chosen.choice(LISTS),
            start_ms=chosen.choice([-1, 0, 1_700_000_000_000]),
            last_update_ms=chosen.choice([-1, 1_700_000_000_000]),
            version=version,
            previous_producer_id=chosen.choice([None, None, 7]) if version else None,
            client_transaction_version=chosen.choice([None, 0, 2, -1]) if version else None,
            next_producer_epoch=chosen.choice([None, None, 3]) if version else None,
            unknown_tags={9: b"x"} if version and chosen.random() < 0.1 else None,
        )
        made.append(value)
        torn = bytearray(value)
        torn[chosen.randrange(len(torn))] = chosen.randrange(256)
        made += [bytes(torn), value[: chosen.randrange(len(value))], value + b"\x00"]
    return made


@pytest.mark.parametrize("seed", range(20))
def test_values_of_any_kind(seed: int) -> None:
    keys = [builders.txn_key(name) for name in ("id", "", "x" * 300, "ü")]
    keys += [
        b"",
        b"\x00",
        b"\x00\x01\x00\x02id",
        b"\x00\x00\x00\x09id",
        b"\x00\x00\x00\x02\xff\xfe",
    ]
    chosen = random.Random(seed)
    batches, offset = [], 0
    for value in values(seed):
        key = chosen.choice([keys[0], keys[0], chosen.choice(keys)])
        count = 2 if chosen.random() < 0.05 else 1
        codec = 1 if chosen.random() < 0.05 else 0
        batches.append(builders.batch(offset, [Rec(key, value)] * count, codec=codec))
        offset += count
    (chunk,) = chunks_of(b"".join(batches))
    assert check(chunk) > 40


def test_no_batches() -> None:
    (chunk,) = chunks_of(builders.batch(0, 1))
    found, rest = txn_vector.read(chunk, np.array([], np.int64))
    assert (len(found.batch_index), len(rest)) == (0, 0)


@pytest.mark.parametrize(
    ("version", "raw"), [(0, b""), (0, b"\x00\x00\x00\x00\x00"), (1, b"\x00\x00"), (1, b"\x05")]
)
def test_what_is_not_exactly_one_list_is_none(version: int, raw: bytes) -> None:
    assert txn_vector.partition_list(version, raw) is None
