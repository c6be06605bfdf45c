"""Dump text of every version: people's tickets, and the tool's output beside the bytes it read."""

from __future__ import annotations

import gzip
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.spark.plan import plan
from pipeline.spark.read_file import read_task
from pipeline.spark.tasks import tasks_of
from pipeline.wire import group_offsets, producer_snapshot, record, segment, txn_index, txn_state
from pipeline.wire.batch import Batch
from pipeline.wire.dump_text import Section, is_dump, parse
from pipeline.wire.log_dir import parse_name
from tests.recordings import all_recordings

DUMPS = Path(__file__).parents[2] / "dumps"
# name, batches, records of internal topics, producers of snapshots, lines that gave no row
TICKETS = [
    ("01-commit", 2, 0, 0, {'not_understood': 2}),
    ("02-close-without-commit", 2, 0, 0, {'not_understood': 2}),
    ("03-open-transaction", 1, 0, 0, {'not_understood': 2}),
    ("04-abort-marker-without-data", 1, 0, 0, {'not_understood': 2}),
    ("05-open-after-abort", 2, 0, 0, {'not_understood': 2}),
    ("06-timeout-abort-epoch-bump", 3, 0, 0, {'not_understood': 2}),
    ("07-three-txns-pid-change", 5, 0, 0, {'not_understood': 2}),
    ("08-txnstate-abort-data", 2, 0, 0, {'not_understood': 2}),
    ("09-txnstate-abort-state", 4, 4, 0, {'not_understood': 2}),
    ("10-txnstate-commit-before", 1, 0, 0, {'not_understood': 2}),
    ("11-txnstate-commit-after", 2, 0, 0, {'not_understood': 2}),
    ("12-txnstate-commit-state", 4, 4, 0, {'not_understood': 2}),
    ("13-numbered-and-edited", 9, 6, 0, {'edited': 7, 'elided': 2, 'not_understood': 5}),
    ("14-canary-v27-keysize", 4, 0, 0, {'bad_record': 1, 'elided': 4, 'not_understood': 2}),
    ("15-rpw-output-topic", 2, 0, 0, {'not_understood': 2}),
    ("16-rpw-consumer-offsets-json", 2, 1, 0, {'elided': 2, 'not_understood': 2}),
    ("17-rpw-txnstate", 5, 5, 0, {'not_understood': 2}),
    ("18-hanging-consumer-offsets-27", 0, 0, 0, {'not_understood': 20, 'other_tool': 1}),
    ("19-rpw-2022-offsets-text", 2, 3, 0, {'elided': 2, 'not_understood': 2}),
    ("20-rpw-2024-offsets-json", 2, 3, 0, {'elided': 2, 'not_understood': 2}),
    ("22-snapshot-kafka2", 0, 0, 3, {'not_understood': 2}),
    ("23-snapshot-kafka3", 0, 0, 3, {'not_understood': 2}),
    ("24-real-hanging-894436", 0, 0, 0, {'not_understood': 2, 'other_tool': 11}),
    ("26-aborted", 2, 0, 0, {'not_understood': 2}),
    ("27-open-txn-171100", 0, 0, 0, {'not_understood': 8, 'other_tool': 1}),
    ("28-offset-demo", 7, 5, 0, {'not_understood': 6}),
    ("29-timeouts-states", 7, 7, 0, {'bad_record': 1, 'not_understood': 6}),
    ("30-librdkafka-3020-lz4-interleaved-zombie", 24, 0, 0, {'not_understood': 1}),
    ("39-describe-producers-43", 0, 0, 0, {'not_understood': 3, 'other_tool': 1}),
    ("40-cp75-snapshot-and-timeindex", 0, 0, 1, {'not_understood': 2}),
    ("41-console-offsets-formatter-010-to-20", 8, 8, 0, {'not_understood': 2}),
    ("43-magic0-magic1-dumps", 5, 0, 0, {'not_understood': 2}),
    ("44-kafka-utils-isvalid-false", 0, 0, 0, {'crc': 1, 'not_understood': 2}),
    ("45-transactional-foo-30", 6, 0, 0, {'not_understood': 2}),
    ("46-transaction-state-4-30", 7, 7, 0, {'not_understood': 2}),
    ("49-mixed-case-edited", 0, 0, 0, {'bad_record': 6, 'not_understood': 2}),
]  # fmt: skip


def sections(name: str) -> list[Section]:
    return list(parse((DUMPS / f"{name}.txt").read_bytes()))


@pytest.mark.parametrize(("name", "batches", "entries", "snapshots", "not_read"), TICKETS)
def test_tickets(
    name: str, batches: int, entries: int, snapshots: int, not_read: dict[str, int]
) -> None:
    found = sections(name)
    assert sum(len(one.batches) for one in found) == batches
    assert sum(len(one.entries) for one in found) == entries
    assert sum(len(one.snapshots) for one in found) == snapshots
    assert Counter(row.reason for one in found for row in one.not_read) == not_read
    assert is_dump((DUMPS / f"{name}.txt").read_bytes())
    lines = (DUMPS / f"{name}.txt").read_bytes().split(b"\n")
    for row in (row for one in found for row in one.not_read):
        assert row.size_bytes == len(lines[row.line - 1])


def test_every_ticket_is_named_here() -> None:
    assert {path.stem for path in DUMPS.glob("*.txt")} == {ticket[0] for ticket in TICKETS}


def test_values_of_a_hand_are_told() -> None:
    details = {row.detail for one in sections("13-numbered-and-edited") for row in one.not_read}
    assert "a record that is newer than its batch" in details
    assert "the key has another size than printed" in details
    details = {row.detail for one in sections("49-mixed-case-edited") for row in one.not_read}
    assert "2 records between offsets 933607637 and 933607637" in details


def dumped(folder: Path) -> Iterator[tuple[Path, Section]]:
    """Each file of a recording with what the tool printed of it."""
    for path in sorted((folder / "dump").rglob("*.txt*")):
        name = path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".shallow")
        source = folder / "logs" / path.parent.relative_to(folder / "dump") / name
        data = path.read_bytes()
        if source.exists() and "stderr" not in path.name:
            text = gzip.decompress(data) if path.name.endswith(".gz") else data
            for section in parse(text):
                assert not section.not_read, (path, section.not_read[:3])
                yield source, section


# What a version does not print, by field: then it is unknown, never another value.
UNKNOWN = {
    "attributes": None, "base_timestamp_ms": -1, "partition_leader_epoch": -1, "crc": 0,
    "size_bytes": 0, "control_type": None, "coordinator_epoch": None,
}  # fmt: skip


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_text_gives_what_the_bytes_give(folder: Path) -> None:
    compared = 0
    for source, section in dumped(folder):
        data = source.read_bytes()
        if source.suffix == ".txnindex":
            assert section.aborted == list(txn_index.read(data)[0])
        elif source.suffix == ".snapshot":
            wanted = sorted(producer_snapshot.read(data).entries)
            known = [one._replace(timestamp_ms=0) for one in wanted]
            assert sorted(one._replace(timestamp_ms=0) for one in section.snapshots) == known
        elif source.suffix == ".log":
            batches = [one for one in segment.iterate(data) if isinstance(one, Batch)]
            if any(one.magic < 2 for one in batches):
                continue
            check_batches(section.batches, batches)
            check_entries(section, data, batches, source.parent.name)
            compared += len(batches)
    print(folder.name, compared, "batches compared")


def check_batches(found: list[Batch], wanted: list[Batch]) -> None:
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        for name in Batch._fields:
            value = getattr(mine, name)
            if name in UNKNOWN and (name == "attributes" or value == UNKNOWN[name]):
                continue
            if mine.crc == 0 and name in ("base_offset", "records_count", "size_bytes"):
                continue  # 0.11 deep: known by the records that are left
            if name == "base_timestamp_ms" and mine.base_offset != theirs.base_offset:
                continue
            if name in ("base_timestamp_ms", "records_count"):
                continue  # a batch that compaction shortened
            assert value == getattr(theirs, name), name


def check_entries(section: Section, data: bytes, batches: list[Batch], folder: str) -> None:
    partition = parse_name(folder)
    if partition is None or not section.entries:
        return
    decode = {
        "__transaction_state": txn_state.decode,
        "__consumer_offsets": group_offsets.decode,
    }.get(partition.topic)
    if decode is None:
        return
    wanted = {
        item.offset: decode(item.key, item.value)
        for batch in batches
        if not batch.is_control
        for item in record.records(data[batch.position :][: batch.size_bytes])
    }
    assert len(section.entries) == len(wanted)
    same = ("transactional_id", "producer_id", "producer_epoch", "txn_timeout_ms", "partitions",
            "last_update_ms", "group_id", "topic", "partition", "offset")  # fmt: skip
    for _, offset, entry in section.entries:
        theirs = wanted[offset]
        assert type(entry) is type(theirs)
        for name in same:
            assert getattr(entry, name, None) == getattr(theirs, name, None), name
        is_gone = getattr(theirs, "value_version", 0) is None
        assert (getattr(entry, "value_version", 0) is None) == is_gone
        if not is_gone:
            assert getattr(entry, "state", None) == getattr(theirs, "state", None)


BATCH = (
    "baseOffset: {base} lastOffset: {base} count: 1 baseSequence: {base} lastSequence: {base} "
    "producerId: 1 producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: true isControl: false "
    "deleteHorizonMs: OptionalLong.empty position: {position} CreateTime: 1000 size: {size} "
    "magic: 2 compresscodec: none crc: 1 isvalid: true"
)
RECORD = (
    "| offset: {base} CreateTime: 1000 keySize: -1 valueSize: {size} sequence: {base} "
    "headerKeys: [] payload: {payload}"
)


def of_payload(payload: str, size: int | None = None) -> str:
    size = len(payload.encode()) if size is None else size
    rows = [
        "Dumping /data/t-0/00000000000000000000.log",
        BATCH.format(base=0, position=0, size=100),
        RECORD.format(base=0, size=size, payload=payload),
        BATCH.format(base=1, position=100, size=90),
        RECORD.format(base=1, size=2, payload="ok"),
    ]
    return "\n".join(rows) + "\n"


INSIDE = BATCH.format(base=7, position=50, size=20).replace("producerId: 1", "producerId: 666")


@pytest.mark.parametrize(
    "payload",
    [
        f"a\n{INSIDE}\nb",
        f"{INSIDE}\n{INSIDE}",
        "\n\n\n",
        f"Dumping /data/x-0/00000000000000000000.log\n{INSIDE}",
        "payload: x key: y headerKeys: [] offset: 5",
        "] payload: x",
    ],
)
def test_a_payload_that_looks_like_a_dump_is_payload(payload: str) -> None:
    (only,) = parse(of_payload(payload).encode())
    assert [one.base_offset for one in only.batches] == [0, 1]
    assert {one.producer_id for one in only.batches} == {1}
    assert not only.not_read


def test_a_payload_with_a_wrong_size_is_told_apart_by_positions() -> None:
    (only,) = parse(of_payload(f"\ufffd\n{INSIDE}\nz", size=30).encode())
    assert {one.producer_id for one in only.batches} == {1}
    assert {row.reason for row in only.not_read} == {"edited", "not_understood"}


@pytest.mark.parametrize("number", range(0, 2000, 7))
def test_cut_anywhere_never_raises(number: int) -> None:
    text = (DUMPS / "17-rpw-txnstate.txt").read_bytes()
    for one in parse(text[number:]):
        assert one.end <= len(text)
    for one in parse(text[:-number] if number else text):
        assert all(row.detail for row in one.not_read)


def test_prompts_and_several_dumps_in_one_text() -> None:
    text = "$ kafka-dump-log.sh --files /data/t-0/0.log\n" + of_payload("x")
    text += "$ ls\nuser@host:~$ kafka-dump-log.sh --files u\n" + of_payload("y").replace(
        "t-0", "u-3"
    )
    found = list(parse(text.encode()))
    assert [one.topic for one in found if one.kind] == ["t", "u"]
    assert not [row for one in found for row in one.not_read]


VALUES = (
    b"-1",
    b"9223372036854775807",
    b"99999999999999999999",
    b"2147483648",
    b"",
    b"NaN",
    b"\xd9\xa1",
)


@pytest.mark.parametrize("ticket", [ticket[0] for ticket in TICKETS])
def test_changed_numbers_and_bytes_are_rows_or_lines_but_no_exception(
    tmp_path: Path, ticket: str
) -> None:
    chance = random.Random(ticket)
    text = (DUMPS / f"{ticket}.txt").read_bytes()
    numbers = list(re.finditer(rb"-?\d+", text))
    for _ in range(60):
        one = chance.choice(numbers)
        changed = text[: one.start()] + chance.choice(VALUES) + text[one.end() :]
        cut = chance.randrange(len(changed))
        changed = chance.choice(
            (changed, changed[:cut], changed[:cut] + b"\x00\xff\n" + changed[cut:])
        )
        (tmp_path / "ticket.txt").write_bytes(changed)
        for task in tasks_of(plan([str(tmp_path)])):
            for rows in read_task(task):
                rows.validate()
