"""Decoded bytes equal what the broker's own tool printed, for every recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.wire import (
    group_offsets,
    log_dir,
    offset_index,
    producer_snapshot,
    record,
    segment,
    txn_index,
    txn_state,
)
from pipeline.wire.batch import Batch
from tests.recordings import all_recordings
from tests.unit.wire import dump_lines

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def dumped(folder: Path, kind: str, suffix: str = ".txt") -> Iterator[tuple[Path, str]]:
    """Files of one kind with the text that the tool printed over them."""
    for path in sorted((folder / "logs").rglob(f"*.{kind}")):
        place = folder / "dump" / path.relative_to(folder / "logs")
        text = dump_lines.text_of(place.with_name(place.name + suffix))
        if text is not None:
            yield path, text


def optional(text: str) -> int | None:
    """Read `OptionalLong.empty`, `OptionalLong[1]`, `None` and `Some(1)`."""
    digits = "".join(character for character in text if character in "-0123456789")
    return int(digits) if digits else None


def check_batch(fields: dict[str, str], batch: Batch) -> None:
    wanted: dict[str, Any] = {
        "position": int(fields["position"]),
        "magic": int(fields["magic"]),
        "codec": CODECS.index(fields["compresscodec"].lower()),
        "crc": int(fields["crc"]),
    }
    names = {
        "baseOffset": "base_offset",
        "lastOffset": "last_offset",
        "offset": "last_offset",
        "count": "records_count",
        "baseSequence": "base_sequence",
        "lastSequence": "last_sequence",
        "producerId": "producer_id",
        "producerEpoch": "producer_epoch",
        "partitionLeaderEpoch": "partition_leader_epoch",
        "size": "size_bytes",
    }
    wanted |= {ours: int(fields[theirs]) for theirs, ours in names.items() if theirs in fields}
    for theirs, ours in (("isTransactional", "is_transactional"), ("isControl", "is_control")):
        if theirs in fields:
            wanted[ours] = fields[theirs] == "true"
    if "deleteHorizonMs" in fields:
        wanted["delete_horizon_ms"] = optional(fields["deleteHorizonMs"])
    timestamp_type, wanted["max_timestamp_ms"] = dump_lines.timestamp_of(fields)
    if timestamp_type >= 0:
        wanted["timestamp_type"] = timestamp_type
    assert {name: getattr(batch, name) for name in wanted} == wanted
    assert fields.get("isvalid", "true") == "true"


def size_of(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def check_record(line: dump_lines.Line, batch: Batch, item: record.Record, topic: str) -> None:
    fields = line.fields
    sizes = {name.lower(): int(value) for name, value in fields.items() if "ize" in name}
    assert int(fields["offset"]) == item.offset
    assert sizes["keysize"] == size_of(item.key)
    assert sizes["valuesize"] == size_of(item.value)
    assert int(fields.get("sequence", item.sequence)) == item.sequence
    if batch.magic == 2 or dump_lines.timestamp_of(fields)[0] >= 0:
        assert dump_lines.timestamp_of(fields)[1] == item.timestamp_ms
    if batch.is_control:
        if "endTxnMarker" in line.rest:
            name = ("ABORT", "COMMIT")[batch.control_type or 0]
            epoch = batch.coordinator_epoch
            assert line.rest.strip() == f"endTxnMarker: {name} coordinatorEpoch: {epoch}"
    elif topic == "__transaction_state":
        check_entry(
            dump_lines.txn_state(line.rest),
            txn_state.decode(item.key, item.value)._asdict(),
        )
    elif topic == "__consumer_offsets":
        wanted = dump_lines.group_record(line.rest)
        if wanted is not None:
            check_entry(wanted, group_offsets.decode(item.key, item.value)._asdict())
    elif topic != "__share_group_state" and line.rest.startswith(" key: "):
        printed = line.rest.split(" payload: ")[0].removeprefix(" key: ")
        assert printed == (item.key or b"").decode("utf-8", "replace")


def check_entry(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    is_tombstone = wanted.pop("tombstone", False)
    assert is_tombstone == (found["value_version"] is None)
    if is_tombstone:
        wanted.pop("value_version", None)
    if found.get("topic_id") is None:
        wanted.pop("topic_id", None)
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_batches_and_records_equal_the_dump(folder: Path) -> None:
    compared = 0
    for path, text in dumped(folder, "log"):
        data = path.read_bytes()
        partition = log_dir.parse_name(path.parent.name)
        topic = partition.topic if partition else ""
        items = list(segment.iterate(data))
        batches = [item for item in items if isinstance(item, Batch)]
        assert len(batches) == len(items), path
        lines = list(dump_lines.lines_of(text))
        headers = [line.fields for line in lines if not line.is_record]
        if headers:
            assert len(headers) == len(batches), path
            for fields, batch in zip(headers, batches, strict=True):
                check_batch(fields, batch)
        pairs = [
            (batch, item)
            for batch in batches
            for item in record.records(data[batch.position :][: batch.size_bytes])
        ]
        printed = [line for line in lines if line.is_record]
        if not printed:
            continue
        assert len(printed) == len(pairs), path
        for line, (batch, item) in zip(printed, pairs, strict=True):
            check_record(line, batch, item, topic)
            compared += 1
    for path, text in dumped(folder, "log", ".shallow.txt"):
        batches = [item for item in segment.iterate(path.read_bytes()) if isinstance(item, Batch)]
        for line, batch in zip(dump_lines.lines_of(text), batches, strict=True):
            check_batch(line.fields, batch)
            compared += 1
    print(folder.name, compared, "lines compared")
    assert compared or not list((folder / "dump").rglob("*.log.txt*"))


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_sidecars_equal_the_dump(folder: Path) -> None:
    for path, text in dumped(folder, "txnindex"):
        entries, trailing = txn_index.read(path.read_bytes())
        names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
        assert rows(text, names) == [tuple(entry) for entry in entries]
        assert trailing == 0
    for path, text in dumped(folder, "index"):
        base = int(path.stem)
        found = [tuple(entry) for entry in offset_index.read_offset_index(path.read_bytes(), base)]
        assert [row for row in rows(text, ("offset", "position")) if row != (base, 0)] == found
    for path, text in dumped(folder, "timeindex"):
        base = int(path.stem)
        found = [tuple(entry) for entry in offset_index.read_time_index(path.read_bytes(), base)]
        assert [row for row in rows(text, ("timestamp", "offset")) if row != (0, base)] == found
    for path, text in dumped(folder, "snapshot"):
        snapshot = producer_snapshot.read(path.read_bytes())
        assert snapshot.crc_ok
        check_snapshot(text, snapshot.entries)


def rows(text: str, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    found = []
    for line in text.splitlines():
        fields = dump_lines.fields_of(line)
        if set(names) == set(fields):
            found.append(tuple(int(fields[name]) for name in names))
    return found


def check_snapshot(text: str, entries: tuple[producer_snapshot.SnapshotEntry, ...]) -> None:
    by_id = {entry.producer_id: entry for entry in entries}
    printed = [dump_lines.fields_of(line) for line in text.splitlines()]
    printed = [fields for fields in printed if "producerId" in fields]
    assert len(printed) == len(by_id)
    for fields in printed:
        entry = by_id[int(fields["producerId"])]
        first_offset = optional(fields["currentTxnFirstOffset"])
        assert entry.producer_epoch == int(fields["producerEpoch"])
        assert entry.coordinator_epoch == int(fields["coordinatorEpoch"])
        assert entry.current_txn_first_offset == (-1 if first_offset is None else first_offset)
        assert entry.last_sequence == int(fields.get("lastSequence", -1))
        assert entry.last_offset == int(fields.get("lastOffset", -1))
        assert entry.offset_delta == int(fields.get("offsetDelta", entry.offset_delta))
        for name in ("timestamp", "lastTimestamp"):
            assert entry.timestamp_ms == int(fields.get(name, entry.timestamp_ms))
