"""Facts of Kafka's own tests of bytes: markers, control records, batches, and records of the newer coordinator."""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest

from pipeline.wire import group_offsets
from pipeline.wire.batch import MAX_SEQUENCE, Batch, Damage
from pipeline.wire.errors import WireError
from pipeline.wire.group_offsets import GroupRecord, UnknownGroupRecord
from pipeline.wire.record import control_marker, records
from pipeline.wire.segment import iterate
from tests import builders
from tests.builders import ABORT, COMMIT, GZIP, NONE, Rec

MARKER, CONTROL = "EndTransactionMarkerTest", "ControlRecordTypeTest"
BATCH, SERDE, MEMORY = (
    "DefaultRecordBatchTest",
    "GroupCoordinatorRecordSerdeTest",
    "MemoryRecordsTest",
)


class Control(NamedTuple):
    """Key and value of a control record; type and coordinator epoch that are read, None where it is refused."""

    of: str
    name: str
    key: bytes
    value: bytes
    wanted: tuple[int | None, int | None] | None


def key(control_type: int, version: int = 0) -> bytes:
    return struct.pack(">hh", version, control_type)


CONTROLS = [
    Control(MARKER, "testIllegalNegativeVersion", key(ABORT), struct.pack(">h", -1), None),
    Control(MARKER, "a negative version with an epoch", key(ABORT), struct.pack(">hi", -1, 79), None),
    Control(MARKER, "testNotEnoughBytes", key(COMMIT), b"", None),
    Control(MARKER, "testSerde", key(COMMIT), struct.pack(">hi", 0, 79), (COMMIT, 79)),
    Control(MARKER, "testDeserializeNewerVersion", key(COMMIT), struct.pack(">hih", 5, 79, 0), (COMMIT, 79)),
    Control(CONTROL, "testParseUnknownType", key(337), b"", (337, None)),
    Control(CONTROL, "testParseUnknownVersion", key(ABORT, 5) + struct.pack(">i", 23432),
            struct.pack(">hi", 0, 7), (ABORT, 7)),
    Control(BATCH, "testReadAndWriteControlBatch", key(COMMIT), struct.pack(">hi", 0, 15), (COMMIT, 15)),
]  # fmt: skip


@pytest.mark.parametrize("case", CONTROLS, ids=lambda case: f"{case.of}.{case.name}")
def test_control_records(case: Control) -> None:
    raw = builders.batch(
        0, [Rec(case.key, case.value)], producer_id=1, producer_epoch=0, transactional=True, control=True
    )  # fmt: skip
    if case.wanted is None:
        with pytest.raises(WireError):
            control_marker(raw)
        return
    assert control_marker(raw) == case.wanted
    (batch,) = iterate(raw)
    assert isinstance(batch, Batch)
    assert batch.is_control
    assert (batch.control_type, batch.coordinator_epoch) == case.wanted


class Broken(NamedTuple):
    """Three records, and what was written over them: (byte, int32); `crc`: the checksum was put right again."""

    of: str
    name: str
    codec: int
    at: int
    value: int
    crc: bool


LENGTH, LAST_DELTA, COUNT = 8, 23, 57
BROKEN = [
    Broken(BATCH, "testInvalidRecordSize", NONE, LENGTH, 10, crc=False),
    Broken(BATCH, "testInvalidCrc", NONE, LAST_DELTA, 23, crc=False),
    Broken(BATCH, "testInvalidRecordCountTooManyNonCompressedV2", NONE, COUNT, 5, crc=True),
    Broken(BATCH, "testInvalidRecordCountTooLittleNonCompressedV2", NONE, COUNT, 2, crc=True),
    Broken(BATCH, "testInvalidRecordCountTooManyCompressedV2", GZIP, COUNT, 5, crc=True),
    Broken(BATCH, "testInvalidRecordCountTooLittleCompressedV2", GZIP, COUNT, 2, crc=True),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_batch_that_is_not_valid(case: Broken) -> None:
    raw = bytearray(builders.batch(0, 3, codec=case.codec))
    struct.pack_into(">i", raw, case.at, case.value)
    if case.crc:
        with pytest.raises(WireError):
            records(builders.with_crc(raw))
    else:
        assert [type(one) for one in iterate(bytes(raw))] == [Damage]


def test_sequences_of_records_wrap() -> None:
    """`DefaultRecordBatchTest.buildDefaultRecordBatchWithSequenceWrapAround`."""
    raw = builders.batch(
        1234567, 3, producer_id=23423, producer_epoch=145, base_sequence=MAX_SEQUENCE - 1
    )
    (batch,) = iterate(raw)
    assert isinstance(batch, Batch)
    assert (batch.producer_id, batch.producer_epoch) == (23423, 145)
    assert (batch.base_sequence, batch.last_sequence) == (MAX_SEQUENCE - 1, 0)
    assert [one.sequence for one in records(raw)] == [MAX_SEQUENCE - 1, MAX_SEQUENCE, 0]


@pytest.mark.parametrize("transactional", [True, False])
def test_what_an_emptied_batch_keeps(transactional: bool) -> None:
    """`MemoryRecordsTest.testFilterToEmptyBatchRetention`."""
    raw = builders.batch(
        3, 0, producer_id=23, producer_epoch=5, base_sequence=10, transactional=transactional,
        max_timestamp_ms=12, partition_leader_epoch=293, last_offset_delta=1,
    )  # fmt: skip
    (batch,) = iterate(raw)
    assert isinstance(batch, Batch)
    assert (batch.records_count, batch.max_timestamp_ms, batch.timestamp_type) == (0, 12, 0)
    assert (batch.base_offset, batch.last_offset) == (3, 4)
    assert (batch.base_sequence, batch.last_sequence) == (10, 11)
    assert batch.is_transactional == transactional


def test_a_marker_as_it_is_built() -> None:
    """`MemoryRecordsTest.testBuildEndTxnMarker`."""
    (batch,) = iterate(builders.marker(
        983, COMMIT, producer_id=73, producer_epoch=13, coordinator_epoch=347, partition_leader_epoch=29,
    ))  # fmt: skip
    assert isinstance(batch, Batch)
    assert (batch.is_control, batch.is_transactional, batch.records_count) == (True, True, 1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (73, 13, -1)
    assert (batch.base_offset, batch.partition_leader_epoch) == (983, 29)
    assert (batch.control_type, batch.coordinator_epoch) == (COMMIT, 347)


class Newer(NamedTuple):
    """A record of a consumer group (KIP-848): what is read of it; None where it is refused."""

    of: str
    name: str
    key: bytes
    value: bytes | None
    wanted: GroupRecord | UnknownGroupRecord | None


CONSUMER_GROUP = builders.group_key("foo", 3)
NEWER = [
    Newer(SERDE, "testDeserialize", CONSUMER_GROUP, struct.pack(">hib", 0, 10, 0),
          GroupRecord(3, "foo", None, 0, 10, None, None, False)),
    Newer(SERDE, "testDeserializeWithTombstoneForValue", CONSUMER_GROUP, None,
          GroupRecord(3, "foo", None, None, None, None, None, True)),
    Newer(SERDE, "testDeserializeWithInvalidRecordType", struct.pack(">h", 255) + bytes(62), bytes(64),
          UnknownGroupRecord(255, 64, 64)),
    Newer(SERDE, "testDeserializeWithKeyEmptyBuffer", b"", bytes(64), None),
    Newer(SERDE, "testDeserializeWithValueEmptyBuffer", CONSUMER_GROUP, b"", None),
    Newer(SERDE, "testDeserializeWithInvalidKeyBytes", struct.pack(">h", 3), struct.pack(">h", 0), None),
    Newer(SERDE, "testDeserializeWithInvalidValueBytes", CONSUMER_GROUP, struct.pack(">h", 0), None),
]  # fmt: skip


@pytest.mark.parametrize("case", NEWER, ids=lambda case: case.name)
def test_records_of_the_newer_coordinator(case: Newer) -> None:
    if case.wanted is None:
        with pytest.raises(WireError):
            group_offsets.decode(case.key, case.value)
    else:
        assert group_offsets.decode(case.key, case.value) == case.wanted


TABLES = [*CONTROLS, *BROKEN, *NEWER]
