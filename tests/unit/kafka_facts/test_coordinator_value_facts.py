"""Facts of Kafka's `TransactionLogTest`: records of `__transaction_state` in, what they say out."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pytest

from pipeline.wire import dump_text_keyed, scan, txn_state
from pipeline.wire.arrays import Chunk
from pipeline.wire.errors import WireError
from tests import builders
from tests.unit.kafka_facts.coordinator_rows import Refused, Written, check_refused, check_written
from tests.unit.replay.histories import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    row,
)

OF, SERDE = "TransactionLogTest", "TransactionCoordinatorRecordSerdeTest"
FIVE = (("topic1", 0), ("topic1", 1), ("topic2", 0), ("topic2", 1), ("topic2", 2))
FUTURE = 32767


class Read(NamedTuple):
    """A value (None: a tombstone), or the text of a dump's line, and what it says."""

    name: str
    source: bytes | str | None
    says: dict[str, Any]
    of: str = OF


def future_value() -> bytes:
    """Value version 1 of a later broker: its own tags behind the partitions and behind all."""
    own = builders.tags({100: struct.pack(">h", 3) + b"foo", 101: struct.pack(">i", 4000)})
    head = struct.pack(">hqhib", 1, 1000, 100, 1000, COMPLETE_COMMIT)
    one = builders.compact_string("topic") + builders.uvarint(2) + struct.pack(">i", 1) + own
    return head + builders.uvarint(2) + one + struct.pack(">qq", 2000, 3000) + own


STATES = (EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, PREPARE_ABORT, COMPLETE_ABORT)
READ = [
    *(
        Read("shouldReadWriteMessages",
             builders.txn_value(state, version=1, producer_id=at, timeout_ms=1000,
                                partitions=FIVE if state else None),
             {"producer_id": at, "producer_epoch": 0, "txn_timeout_ms": 1000, "state": state,
              "partitions": FIVE if state else ()})
        for at, state in enumerate(STATES)
    ),
    Read("testDeserializeHighestSupportedTransactionLogValue",
         builders.txn_value(COMPLETE_COMMIT, version=1, producer_id=100, producer_epoch=50,
                            timeout_ms=500, partitions=(("topic", 0),), last_update_ms=1000,
                            start_ms=750),
         {"producer_id": 100, "producer_epoch": 50, "state": COMPLETE_COMMIT, "start_ms": 750,
          "last_update_ms": 1000, "txn_timeout_ms": 500, "partitions": (("topic", 0),)}),
    Read("testDeserializeFutureTransactionLogValue", future_value(),
         {"producer_id": 1000, "producer_epoch": 100, "txn_timeout_ms": 1000,
          "state": COMPLETE_COMMIT, "partitions": (("topic", 1),), "last_update_ms": 2000,
          "start_ms": 3000}),
    Read("testAllPersistedFieldsRoundTrip",
         builders.txn_value(PREPARE_COMMIT, version=1, producer_id=100, producer_epoch=5,
                            timeout_ms=1000, partitions=FIVE, last_update_ms=750, start_ms=500,
                            previous_producer_id=50, next_producer_id=200, next_producer_epoch=10,
                            client_transaction_version=2),
         {"producer_id": 100, "previous_producer_id": 50, "next_producer_id": 200,
          "producer_epoch": 5, "next_producer_epoch": 10, "state": PREPARE_COMMIT,
          "txn_timeout_ms": 1000, "start_ms": 500, "last_update_ms": 750, "partitions": FIVE,
          "client_transaction_version": 2}),
    Read("shouldReturnTxnTombstoneForNullValue", None, {"value_version": None}),
    Read("testDeserialize", builders.txn_value(EMPTY, version=0, producer_id=0, timeout_ms=0,
                                               last_update_ms=0, start_ms=0),
         {"transactional_id": "id", "producer_id": 0, "state": EMPTY, "partitions": (),
          "value_version": 0}, SERDE),
    Read("testDeserializeWithTombstoneForValue", None,
         {"transactional_id": "id", "value_version": None}, SERDE),
    *(
        Read("testDeserializeAllRecordTypes", builders.txn_value(EMPTY, version=version),
             {"transactional_id": "id", "value_version": version}, SERDE)
        for version in (0, 1)
    ),
    Read("testTransactionMetadataParsing",
         "producerId:1334,producerEpoch:0,state=Ongoing,partitions=[topic-0],"
         "txnLastUpdateTimestamp=0,txnTimeoutMs=1000",
         {"transactional_id": "id", "producer_id": 1334, "producer_epoch": 0, "state": ONGOING,
          "partitions": (("topic", 0),), "last_update_ms": 0, "txn_timeout_ms": 1000}),
    Read("testTransactionMetadataTombstoneParsing", "<DELETE>",
         {"transactional_id": "id", "value_version": None}),
]  # fmt: skip

VERSIONS = [
    Written(OF, "testSerializeTransactionLogValueToHighestNonFlexibleVersion", 0,
            [row(COMPLETE_COMMIT, value_version=0)], "", {"versions": [0]}),
    Written(OF, "testSerializeTransactionLogValueToFlexibleVersion", 1,
            [row(COMPLETE_COMMIT, value_version=1)], "", {"versions": [1]}),
]  # fmt: skip

REFUSED = [
    Refused(OF, "shouldThrowExceptionWriteInvalidTxn", version,
            [row(COMPLETE_COMMIT)], row(EMPTY, 1, partitions="a+b"), "impossible_state_on_disk")
    for version in (0, 1)
]  # fmt: skip


class Unreadable(NamedTuple):
    """Bytes of key and value that are no record, and why."""

    name: str
    key: bytes
    value: bytes
    reason: str
    of: str = SERDE


KEY, SHORT = builders.txn_key("id"), struct.pack(">h", 0)
UNREADABLE = [
    Unreadable("testReadTxnRecordKeyCanReadUnknownMessage", struct.pack(">hh", FUTURE, 0), b"",
               "bad_version", OF),
    Unreadable("testReadReturnsUnknownValueVersionForInvalidValue", KEY, struct.pack(">h", FUTURE),
               "bad_version", OF),
    Unreadable("testDeserializeWithInvalidRecordType", struct.pack(">h", 255) + bytes(62),
               bytes(64), "bad_version"),
    Unreadable("testDeserializeWithKeyEmptyBuffer", b"", bytes(64), "bad_record"),
    Unreadable("testDeserializeWithValueEmptyBuffer", KEY, b"", "bad_record"),
    Unreadable("testDeserializeWithInvalidKeyBytes", SHORT, SHORT, "bad_record"),
    Unreadable("testDeserializeWithInvalidValueBytes", KEY, SHORT, "bad_record"),
]  # fmt: skip


def says(entry: txn_state.TxnEntry, names: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in names}


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_what_a_value_says(case: Read) -> None:
    if not isinstance(case.source, str):
        entry = txn_state.decode(builders.txn_key("id"), case.source)
    else:
        key = " key: transaction_metadata::transactionalId=id payload: "
        entry = dump_text_keyed.txn_entry(key + case.source)
    assert says(entry, case.says) == case.says


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: case.name)
def test_the_version_of_a_value_tells_the_clusters(case: Written) -> None:
    check_written(case)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_no_value_says(case: Refused) -> None:
    check_refused(case)


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.name)
def test_what_is_no_record(case: Unreadable) -> None:
    with pytest.raises(WireError) as told:
        txn_state.decode(case.key, case.value)
    assert told.value.reason == case.reason
    if case.reason == "bad_version":
        assert str(told.value).endswith(("32767", "255"))


def test_records_beside_one_of_another_version_are_read() -> None:
    """`TransactionStateManagerTest.testIgnoreUnknownRecordType`."""
    unknown = struct.pack(">hh", FUTURE, 0)
    value = builders.txn_value(PREPARE_COMMIT, version=1, partitions=FIVE[:2])
    known = builders.Rec(builders.txn_key("one"), value)
    data = builders.batch(0, [builders.Rec(unknown, unknown), known])
    (chunk,) = scan.scan(lambda position, length: data[position : position + length], len(data))
    assert isinstance(chunk, Chunk)
    found = txn_state.decode_batches(chunk, [0])
    wanted = {
        "transactional_id": "one", "producer_id": 1, "producer_epoch": 0, "txn_timeout_ms": 60_000,
        "state": PREPARE_COMMIT, "partitions": FIVE[:2],
    }  # fmt: skip
    assert [says(entry, wanted) for entry in found.entries] == [wanted]
    assert [(one.offset, one.reason) for one in found.failures] == [(0, "bad_version")]
