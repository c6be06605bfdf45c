"""Records of `__transaction_state` and `__consumer_offsets`."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from pipeline.wire import arrays, group_offsets, scan, txn_state
from pipeline.wire.errors import WireError
from tests import builders


def test_golden_coordinator_records() -> None:
    key = builders.txn_key("kafka-txn-0")
    empty = bytes.fromhex(
        "0000000000000000000100000000ea6000ffffffff00000195c35f2cfbffffffffffffffff"
    )
    entry = txn_state.decode(key, empty)
    assert entry == txn_state.TxnEntry(
        "kafka-txn-0", 0, 0, 1, 0, 60000, 0, (), True, 1742739549435, -1, -1, -1, None, -1, b""
    )
    ongoing = bytes.fromhex("0000000000000000000100000000ea600100000002")
    ongoing += b"\0\x0coutput-topic" + struct.pack(">ii", 1, 0)
    ongoing += b"\0\x12__consumer_offsets" + struct.pack(">ii", 1, 12)
    ongoing += bytes.fromhex("00000195c361846200000195c361845c")
    entry = txn_state.decode(key, ongoing)
    assert entry.partitions == (("__consumer_offsets", 12), ("output-topic", 0))
    assert (entry.last_update_ms, entry.start_ms) == (1742739702882, 1742739702876)
    assert txn_state.decode(key, ongoing) == entry


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("partitions", [None, (), (("t", 3), ("t", 1), ("a-b", 0))])
def test_values_round_trip(version: int, partitions: tuple[tuple[str, int], ...] | None) -> None:
    value = builders.txn_value(
        4, version=version, partitions=partitions, producer_id=9, producer_epoch=3, start_ms=5
    )
    for _ in range(2):  # the second time from the cache
        entry = txn_state.decode(builders.txn_key("id"), value)
        assert entry.partitions == tuple(sorted(partitions or ()))
        assert entry.is_partitions_null == (partitions is None)
        assert (entry.producer_id, entry.producer_epoch, entry.start_ms) == (9, 3, 5)
        assert (entry.value_version, entry.client_transaction_version) == (version, None)


def test_tags() -> None:
    many = builders.txn_value(
        5,
        version=1,
        partitions=(("t", 0),),
        previous_producer_id=7,
        next_producer_id=8,
        client_transaction_version=2,
        next_producer_epoch=4,
        unknown_tags={9: b"abc"},
    )
    for _ in range(2):
        entry = txn_state.decode(builders.txn_key("id"), many)
        assert entry[11:] == (7, 8, 2, 4, b"\x09\x03abc")
    one = builders.txn_value(1, version=1, partitions=(("t", 0),), client_transaction_version=2)
    for _ in range(2):
        assert txn_state.decode(builders.txn_key("id"), one)[11:] == (-1, -1, 2, -1, b"")


def test_tombstone_and_odd_text() -> None:
    entry = txn_state.decode(builders.txn_key("id"), None)
    assert (entry.transactional_id, entry.value_version, entry.partitions) == ("id", None, ())
    odd = txn_state.decode(b"\0\0\0\2\xff\n", None)
    assert odd.transactional_id == "\\xff\n"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", b""),
        (b"\0\1\0\0", b""),
        (b"\0\0\0\5a", b""),
        (builders.txn_key("x"), b""),
        (builders.txn_key("x"), b"\0\2" + bytes(60)),
        (builders.txn_key("x"), builders.txn_value() + b"\0"),
        (builders.txn_key("x"), builders.txn_value(version=1) + b"\0"),
        (builders.txn_key("x"), builders.txn_value()[:17] + b"\x7f\xff\xff\xff" + bytes(30)),
    ],
)
def test_bad_transaction_records(key: bytes | None, value: bytes) -> None:
    with pytest.raises(WireError):
        txn_state.decode(key, value)


def test_offset_commit_versions() -> None:
    key = builders.offset_key("my-group", "input-topic", 3)
    for version in range(5):
        value = builders.offset_value(
            41,
            version=version,
            leader_epoch=6,
            metadata="mé",
            commit_ms=77,
            expire_ms=99,
            topic_id=bytes(range(16)) if version == 4 else None,
        )
        assert group_offsets.decode(key, value) == group_offsets.OffsetCommit(
            "my-group",
            "input-topic",
            3,
            version,
            41,
            6 if version >= 3 else -1,
            3,
            77,
            99 if version == 1 else -1,
            "AAECAwQFBgcICQoLDA0ODw" if version == 4 else None,
        )
    tombstone = group_offsets.decode(key, None)
    assert isinstance(tombstone, group_offsets.OffsetCommit)
    assert (tombstone.value_version, tombstone.offset) == (None, -1)


def test_golden_offset_commit() -> None:
    key = bytes.fromhex("00010008") + b"my-group" + b"\0\x0binput-topic" + bytes(4)
    value = bytes.fromhex("00030000000000000001ffffffff000000000195c36184d1")
    found = group_offsets.decode(key, value)
    assert found == group_offsets.OffsetCommit(
        "my-group", "input-topic", 0, 3, 1, -1, 0, 1742739702993, -1, None
    )


def test_group_metadata() -> None:
    member = builders.string("m") + struct.pack(">h", -1) + builders.string("c")
    member += builders.string("/h") + struct.pack(">ii", 1, 2) + struct.pack(">i", 2) + b"ab"
    member += struct.pack(">i", 0)
    value = struct.pack(">h", 3) + builders.string("consumer") + struct.pack(">i", 5)
    value += struct.pack(">hhq", -1, -1, 9) + struct.pack(">i", 2) + member * 2
    found = group_offsets.decode(builders.group_key("g"), value)
    assert found == group_offsets.GroupRecord(2, "g", None, 3, 5, 2, "consumer", False)
    with pytest.raises(WireError):
        group_offsets.decode(builders.group_key("g"), value + b"\0")
    gone = group_offsets.decode(builders.group_key("g"), None)
    assert gone == group_offsets.GroupRecord(2, "g", None, None, None, None, None, True)


def test_newer_and_unknown_records() -> None:
    epoch = struct.pack(">hi", 0, 12) + b"\0"
    found = group_offsets.decode(builders.group_key("g", 3), epoch)
    assert found == group_offsets.GroupRecord(3, "g", None, 0, 12, None, None, False)
    found = group_offsets.decode(builders.group_key("g", 8, "m"), epoch)
    assert found == group_offsets.GroupRecord(8, "g", "m", 0, 12, None, None, False)
    assert group_offsets.decode(b"\0\x63abc", b"xy") == group_offsets.UnknownGroupRecord(99, 5, 2)
    newer = group_offsets.decode(builders.group_key("g", 3), b"\0\7zz")
    assert newer == group_offsets.UnknownGroupRecord(3, 5, 4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"\0", None),
        (b"\0\1", None),
        (b"\0\1\0\1", None),
        (b"\0\1\0\1g\0\1t\0\0\0", None),
        (b"\0\2\0\5g", None),
        (builders.offset_key("g", "t", 0), b""),
        (builders.offset_key("g", "t", 0), b"\0\5" + bytes(40)),
        (builders.offset_key("g", "t", 0), b"\xff\xff" + bytes(40)),
        (builders.offset_key("g", "t", 0), builders.offset_value(1) + b"\0"),
        (builders.offset_key("g", "t", 0), builders.offset_value(1)[:-1]),
        (builders.offset_key("g", "t", 0), builders.offset_value(1, version=4, topic_id=b"x")),
    ],
)
def test_bad_group_records(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(WireError):
        group_offsets.decode(key, value)


def the_chunk(data: bytes) -> arrays.Chunk:
    (chunk,) = scan.scan(lambda position, length: data[position : position + length], len(data))
    assert isinstance(chunk, arrays.Chunk)
    return chunk


@pytest.mark.parametrize("pad", [0, 1, 40, 63, 64, 100, 8190, 8200, 70000])
def test_batches_short_and_long_way(pad: int) -> None:
    name = "x" * pad
    value = builders.txn_value(1, partitions=((name or "t", 0),), version=1) if pad < 32000 else b""
    data = b"".join(
        [
            builders.txn_entry(0, name[:30000], value),
            builders.txn_entry(1, "gone", None),
            builders.batch(
                2,
                [
                    builders.Rec(builders.txn_key("a"), None),
                    builders.Rec(builders.txn_key("b"), None),
                ],
            ),
            builders.batch(4, [builders.Rec(builders.txn_key("h"), None, headers=(("k", b""),))]),
            builders.batch(5, [builders.Rec(b"bad", None)]),
            builders.batch(6, [builders.Rec(None, None)], codec=builders.ZSTD),
            builders.batch(
                7, [builders.Rec(builders.txn_key("d"), None, offset_delta=2)], last_offset_delta=3
            ),
        ]
    )
    found = txn_state.decode_batches(the_chunk(data), range(7))
    ids = [entry.transactional_id for entry in found.entries]
    first = [name[:30000]] if pad < 32000 else []
    assert ids == [*first, "gone", "a", "b", "h", "d"]
    assert found.offset == ([0] if first else []) + [1, 2, 3, 4, 9]
    failed = [(failure.batch_index, failure.offset) for failure in found.failures]
    assert failed == ([] if first else [(0, 0)]) + [(4, 5), (5, 6)]


@pytest.mark.parametrize("decode", [txn_state.decode_batches, group_offsets.decode_batches])
def test_undecodable_batch_is_listed(decode: Callable[..., group_offsets.Decoded[object]]) -> None:
    data = bytearray(builders.batch(0, [builders.Rec(b"k" * 10, b"v" * 10)]))
    data[61] = 0x7E
    found = decode(the_chunk(builders.with_crc(data)), [0])
    assert found.entries == []
    assert [failure[:3] for failure in found.failures] == [(0, None, "bad_record")]
