"""The encoders against bytes and checksums of a published dump (strimzi debugging session 010)."""

from __future__ import annotations

import struct

import pytest

from tests import builders

SEGMENT = bytes.fromhex(
    "00000000000000000000004600000000022d3bd58000100000000000000195c361845000000195c3"
    "61845000000000000000010000000000000000000128000000011c74736574206120736920736968"
    "7400000000000000000100000042000000000298718b7800300000000000000195c36185c2000001"
    "95c36185c200000000000000010000ffffffff000000012000000008000000010c00000000000000"
)
OUTPUT, OFFSETS = ("output-topic", 0), ("__consumer_offsets", 12)
START_MS = 0x195C361845C
SECOND_MS = 1_742_739_702_000


def _crc(data: bytes) -> int:
    return int(struct.unpack_from(">I", data, 17)[0])


def test_data_batch_and_marker_are_the_published_bytes() -> None:
    data = builders.batch(
        0, [builders.Rec(None, b"tset a si siht")], producer_id=1, producer_epoch=0,
        base_sequence=0, transactional=True, timestamp_ms=0x195C3618450,
    )  # fmt: skip
    assert data + builders.marker(1, builders.COMMIT, timestamp_ms=0x195C36185C2) == SEGMENT


@pytest.mark.parametrize(
    ("offset", "state", "partitions", "update_ms", "append_ms", "crc"),
    [
        (1, builders.ONGOING, [OUTPUT], START_MS, 876, 563111626),
        (2, builders.ONGOING, [OUTPUT, OFFSETS], 0x195C3618462, 882, 1296972565),
        (3, builders.PREPARE_COMMIT, [OUTPUT, OFFSETS], 0x195C361855C, 1134, 598474139),
        (4, builders.COMPLETE_COMMIT, [], 0x195C3618566, 1240, 4205821491),
    ],
)
def test_coordinator_records_have_the_published_checksums(
    offset: int, state: int, partitions: list[tuple[str, int]], update_ms: int, append_ms: int,
    crc: int,
) -> None:  # fmt: skip
    value = builders.txn_value(
        state, partitions=partitions, last_update_ms=update_ms, start_ms=START_MS
    )
    batch = builders.txn_entry(offset, "kafka-txn-0", value, timestamp_ms=SECOND_MS + append_ms)
    assert _crc(batch) == crc


def test_offset_commit_and_its_marker_have_the_published_checksums() -> None:
    record = builders.Rec(
        builders.offset_key("my-group", "input-topic", 0),
        builders.offset_value(1, commit_ms=0x195C36184D1),
    )
    commit = builders.batch(
        0, [record], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True,
        timestamp_ms=SECOND_MS + 1027,
    )  # fmt: skip
    marker = builders.marker(0, builders.COMMIT, timestamp_ms=SECOND_MS + 1213)
    assert (_crc(commit), _crc(marker), len(commit)) == (4292816145, 1231080676, 121)
