"""Indexes, snapshots, checkpoints and names."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pipeline.wire import checkpoints, log_dir, offset_index, producer_snapshot, txn_index
from pipeline.wire.errors import WireError
from pipeline.wire.limits import Limits
from tests import log_layout
from tests.recordings import all_recordings


def test_snapshot() -> None:
    data = log_layout.snapshot([(7, 1, 5, 9, 0, 1000, 3, 8), (8, 0, -1, -1, 0, 1000, 3, -1)])
    snapshot = producer_snapshot.read(data)
    assert snapshot.crc_ok
    assert snapshot.entries[0] == producer_snapshot.SnapshotEntry(7, 1, 5, 9, 0, 1000, 3, 8)
    assert [entry.current_txn_first_offset for entry in snapshot.entries] == [8, -1]
    broken = bytearray(data)
    broken[-1] ^= 1
    assert not producer_snapshot.read(bytes(broken)).crc_ok
    for size in range(len(data)):
        with pytest.raises(WireError):
            producer_snapshot.read(data[:size])
    with pytest.raises(WireError):
        producer_snapshot.read(log_layout.snapshot([], version=2))
    with pytest.raises(WireError):
        producer_snapshot.read(data[:6] + struct.pack(">i", -1))


def test_txn_index() -> None:
    data = log_layout.txn_index([(7, 1, 5, 6), (8, 2, 9, 10)])
    entries, trailing = txn_index.read(data)
    assert entries[1] == txn_index.AbortedTxn(0, 8, 2, 9, 10)
    assert trailing == 0
    assert txn_index.read(data[:-1]) == (entries[:1], 33)
    assert txn_index.read(data + bytes(100)) == (entries, 100)
    with pytest.raises(WireError):
        txn_index.read(log_layout.txn_index([(7, 1, 5, 6)], version=1))


def test_indexes_end_at_their_zero_tail() -> None:
    data = log_layout.offset_index([(105, 4096), (109, 8192)], 100, zero_bytes=801)
    entries = offset_index.read_offset_index(data, 100)
    assert entries == [(105, 4096), (109, 8192)]
    data = log_layout.time_index([(1000, 100), (2000, 109)], 100, zero_bytes=121)
    assert offset_index.read_time_index(data, 100) == [(1000, 100), (2000, 109)]
    assert offset_index.read_offset_index(bytes(4096), 5) == []
    assert offset_index.read_time_index(bytes(4096), 5) == []
    with pytest.raises(WireError):
        offset_index.read_offset_index(data, 100, Limits(max_sidecar_bytes=8))


def test_checkpoints() -> None:
    data = log_layout.offset_checkpoint({("a-b", 0): 5, ("t", 11): -1})
    assert checkpoints.offset_checkpoint(data) == [("a-b", 0, 5), ("t", 11, -1)]
    assert checkpoints.offset_checkpoint(b"") == []
    data = log_layout.leader_epoch_checkpoint([(0, 0), (4, 17)])
    assert checkpoints.leader_epoch_checkpoint(data) == [(0, 0), (4, 17)]
    metadata = log_layout.partition_metadata("t")
    assert checkpoints.partition_metadata(metadata) == log_layout.topic_id("t")
    properties = checkpoints.meta_properties(b"#x\nnode.id=3\ncluster.id=c\nsecret=s\n")
    assert properties == {"node.id": "3", "cluster.id": "c"}
    assert checkpoints.clean_shutdown(b"") == (None, None)
    assert checkpoints.clean_shutdown(b'{"version":0,"brokerEpoch":9}') == (0, 9)


@pytest.mark.parametrize(
    "data",
    [
        b"0",
        b"1\n0\n",
        b"0\n2\nt 0 1\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt 0 x\n",
        b"0\n1\nt 0 99999999999999999999\n",
        b"0\n1\nt/../x 0 1\n",
        b"0\n1\n\x1b[31m 0 1\n",
        "0\n1\nt 0 \u0663\n".encode(),
        b"\xff\xfe",
    ],
)
def test_bad_offset_checkpoints(data: bytes) -> None:
    with pytest.raises(WireError):
        checkpoints.offset_checkpoint(data)


@pytest.mark.parametrize("data", [b"", b"version: 1\ntopic_id: x", b"version: 0\ntopic_id: short"])
def test_bad_partition_metadata(data: bytes) -> None:
    with pytest.raises(WireError):
        checkpoints.partition_metadata(data)


@pytest.mark.parametrize("data", [b"x", b"[]", b"{}", b'{"version":"0"}', b"[" * 100_000])
def test_bad_clean_shutdown(data: bytes) -> None:
    with pytest.raises(WireError):
        checkpoints.clean_shutdown(data)


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_every_checkpoint_of_the_recordings_is_read(folder: Path) -> None:
    for path in (folder / "logs").rglob("*checkpoint"):
        if path.name == "leader-epoch-checkpoint":
            checkpoints.leader_epoch_checkpoint(path.read_bytes())
        elif path.name.endswith("-offset-checkpoint"):
            checkpoints.offset_checkpoint(path.read_bytes())
    for path in (folder / "logs").rglob("partition.metadata"):
        checkpoints.partition_metadata(path.read_bytes())
    for path in (folder / "logs").rglob("meta.properties"):
        found = checkpoints.meta_properties(path.read_bytes())
        assert found.keys() & {"node.id", "broker.id"}  # cluster.id comes with 2.4
    for path in (folder / "logs").rglob(".kafka_cleanshutdown"):
        checkpoints.clean_shutdown(path.read_bytes())


def test_directory_names() -> None:
    assert log_dir.parse_name("a-b-12") == log_dir.PartitionDir("a-b", 12, "", "")
    code = "0123456789abcdef" * 2
    for suffix in ("future", "delete", "stray"):
        found = log_dir.parse_name(f"t-0.{code}-{suffix}")
        assert found == log_dir.PartitionDir("t", 0, suffix, code)
    for name in (
        "t",
        "t-",
        "-1",
        "t-01",
        "t-9999999999",
        "t-1\n",
        "t\x1b-1",
        "..-x",
        ".-1x",
        "é-1",
    ):
        assert log_dir.parse_name(name) is None


def test_file_names() -> None:
    stem = "00000000000000000042"
    for kind in ("log", "index", "timeindex", "snapshot", "txnindex"):
        assert log_dir.parse_file(f"{stem}.{kind}") == log_dir.SegmentFile(42, kind, "")
        for suffix in ("deleted", "cleaned", "swap"):
            found = log_dir.parse_file(f"{stem}.{kind}.{suffix}")
            assert found == log_dir.SegmentFile(42, kind, suffix)
    found = log_dir.parse_file(f"{stem}-0000000001.checkpoint")
    assert found == log_dir.SegmentFile(42, "checkpoint", "")
    for name in (
        f"{stem}.log\n",
        f"{stem}.txt",
        "42.log",
        f"{stem}-0000000001.log",
        f"{'9' * 20}.log",
    ):
        assert log_dir.parse_file(name) is None


def test_partition_of_an_id() -> None:
    assert log_dir.partition_for("kafka-txn-0", 50) == 30
    assert log_dir.partition_for("my-group", 50) == 12
    assert log_dir.java_hash("kafka-txn-0") == -1469191130
    assert log_dir.java_hash("my-group") == -1906497762
    assert log_dir.java_hash("polygenelubricants") == -(2**31)
    assert log_dir.partition_for("polygenelubricants", 50) == 0
    assert log_dir.java_hash("\U0001f600") == 0xD83D * 31 + 0xDE00
