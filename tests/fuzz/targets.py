"""The decoders under test, each with small seeds that it reads."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pipeline.wire import (
    arrays,
    checkpoints,
    dump_text,
    group_offsets,
    log_dir,
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

LIMITS = Limits(chunk_bytes=4096, max_decompressed_bytes=1 << 20)
DUMPS = Path(__file__).resolve().parents[1] / "dumps"
SHORT_BYTES = 2_000


class Target(NamedTuple):
    """A decoder with its seeds; `has_crc` says that the seeds are single batches."""

    name: str
    seeds: list[bytes]
    run: Callable[[bytes], object]
    has_crc: bool


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
    """As a marker whatever its records are, and as records whether it is a marker or not."""
    try:
        record.control_marker(data, LIMITS)
    except WireError:
        """Most are none."""
    record.records(data, LIMITS)


def pair(decode: Callable[[bytes, bytes, Limits], object]) -> Callable[[bytes], object]:
    """Seeds of key and value: one byte of key size first."""
    return lambda data: decode(data[1 : 1 + data[0]], data[1 + data[0] :], LIMITS) if data else None


def make_targets() -> list[Target]:
    """All decoders; segments come first, so that they get their full share."""
    recs = [builders.Rec(b"k%d" % n, b"v" * n, headers=(("h", b"x"),)) for n in range(5)]
    batches = [builders.batch(3, recs, codec=codec, producer_id=1) for codec in range(5)]
    batches += [builders.marker(9), builders.batch(9, 0, control=True), builders.batch(9, 1)]
    gzipped = builders.batch(8, recs, codec=1, producer_id=1)
    legacy = [builders.legacy_message(n, b"v", magic=n % 2) for n in range(2)]
    key = builders.txn_key("some-id")
    parts = (("topic-a", 1), ("topic-b", 2))
    states = [
        builders.txn_value(1, version=version, partitions=parts, client_transaction_version=2)
        for version in (0, 1)
    ]
    states.append(builders.txn_value(5, version=1, previous_producer_id=1, unknown_tags={9: b"x"}))
    segments = [
        b"".join([*legacy, batches[0], gzipped, builders.marker(20), builders.batch(21, recs)]),
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
    texts = [file.read_bytes() for file in sorted(DUMPS.glob("*.txt"))]
    texts = [text for text in texts if len(text) < SHORT_BYTES]
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
        Target("dump text", texts, read_text, False),
        Target(
            "name", [b"a-topic-0", b"t-1.0123456789abcdef0123456789abcdef-delete"], read_name, False
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


def read_text(data: bytes) -> None:
    """Sections follow each other and hold every byte; what no tool printed is listed, never raised."""
    dump_text.is_dump(data)
    end = 0
    for section in dump_text.parse(data):
        assert end <= section.position <= section.end <= len(data) + 1
        end = section.end


def read_name(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    log_dir.parse_name(text)
    log_dir.parse_file(text)
