"""What one line of `kafka-dump-log` output is, whatever a person put around it.

Source: `DumpLogSegments` of Kafka 0.8 to 4.3, `ConsoleConsumer` with the formatters of
`TransactionLog` and `GroupMetadataManager`. Tickets and notes number the lines, indent or quote
them, cut them and write text between them; a line counts only where its fields are whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DUMPING, BATCH, RECORD, BARE = "dumping", "batch", "record", "bare"
SNAPSHOT, ABORTED, OFFSET_INDEX, TIME_INDEX = "snapshot", "aborted", "index", "timeindex"
CONSOLE_TXN, CONSOLE_OFFSETS, CONSOLE_JSON = "console_txn", "console_offsets", "console_json"
CHATTER, ELISION, TOOL, BROKEN, OTHER = "chatter", "elision", "tool", "broken", "other"
IS_DATA = frozenset(
    {BATCH, RECORD, BARE, SNAPSHOT, ABORTED, CONSOLE_TXN, CONSOLE_OFFSETS, CONSOLE_JSON}
)
"""Kinds of lines that become rows."""

MAX_LINE_BYTES = 4 << 20
"""A longer line is cut there: the rest is payload."""

# A line number, then the sign of a comment or a quotation; `|` belongs to the tool.
_DECORATION = re.compile(r"[ \t]*(?:\d{1,7}[:.)]?[ \t]+)?(?:(?://|[>#*])[ \t]*)?")
_BATCH = re.compile(r"baseOffset: -?\d+ ")
_RECORD = re.compile(r"\| (?:offset: -?\d+|key: |payload: |headerKeys: )")
_BARE = re.compile(r"offset: -?\d+ position: -?\d+ .*\bmagic: ")
_SNAPSHOT = re.compile(r"producerId: -?\d+ producerEpoch: -?\d+ .*\bcurrentTxnFirstOffset: ")
_ABORTED = re.compile(
    r"version: \d+ producerId: -?\d+ firstOffset: -?\d+ lastOffset: -?\d+ lastStableOffset: "
)
_OFFSET_INDEX = re.compile(r"offset: -?\d+ position: -?\d+$")
_TIME_INDEX = re.compile(r"timestamp: -?\d+ offset: -?\d+$")
_CONSOLE_TXN = re.compile(r".*::(?:TransactionMetadata\(|NULL$)")
_CONSOLE_OFFSETS = re.compile(
    r"\[.*,.*,\d+\]::(?:\[?OffsetMetadata\[|OffsetAndMetadata\(|\[OffsetMetadata|NULL$)"
)
_CONSOLE_JSON = re.compile(r'\{"key":\{"(?:version|type)":')
_BROKEN = re.compile(r"(?:\| )?(?:baseOffset|offset): ?-?\d")
_ELISION = re.compile(r"\.{2,}|…|\[\.\.\.\]")
_CHATTER = re.compile(
    r"$|Starting offset: |Log starting offset: |Snapshot end offset: |KRaft bootstrap snapshot"
    r"|Found \d+ invalid bytes|.* is empty\.$|.* passed sanity check\.$|Non-consecutive offsets in"
    r"|\d+ is followed by \d+$|Mismatches in ?:|Index offset: |kafka\.serializer\."
    r"|Unknown record type \d+ at offset |Error at offset \d+, skipping|```|\$ |\S*[$%#] .*kafka"
    r"|\S*kafka-dump-log(?:\.sh)? |\S*kafka-run-class(?:\.sh)? |-{3,}"
)
_TOOL = re.compile(
    r"(?:\w+: )?(?:ProducerSession|EmptyTransaction|Batch|DataMessage|ControlMessage)[\[(]"
    r"|num_committed: |num_aborted: |txn_(?:size|duration)_stats"
    r"|(?:TransactionalId|CoordinatorId|ProducerId|Topic)\s+(?:\S+\s+)*(?:TransactionState|ProducerEpoch)\b"
)
"""Klog, and the headings of `kafka-transactions.sh`."""
_HEAD_END = re.compile(
    r" (?:headerKeys: \[|key: |payload: |endTxnMarker: |controlType: |LeaderChange: "
    r"|SnapshotHeader |SnapshotFooter |KRaftVersion |KRaftVoters )"
)
_HEADERS_END = re.compile(
    r" headerKeys: \[.*?\](?= key: | payload: | endTxnMarker: | controlType: | LeaderChange: "
    r"| SnapshotHeader | SnapshotFooter | KRaftVersion | KRaftVoters |\}? *$)",
    re.DOTALL,
)
_FIELD = re.compile(r"(\w+): ?(OptionalLong\[-?\d+\]|Some\(-?\d+\)|\S+)")


class Line(NamedTuple):
    """A line that was recognised.

    Attributes:
        kind: One of the kinds above.
        text: Without decoration.
        fields: Name in lower case -> value, of the part in front of headers, key and payload.
        rest: Headers removed: ` key: ... payload: ...` or a marker; empty where there is none.
    """

    kind: str
    text: str
    fields: dict[str, str]
    rest: str


def read_line(raw: str) -> Line:
    """Recognises a line; never raises."""
    text = raw[_DECORATION.match(raw).end() :]  # type: ignore[union-attr]  # matches everywhere
    bare = raw.strip()
    trimmed = text.rstrip("\r \t")
    if _BATCH.match(text):
        return Line(BATCH, text, fields_of(trimmed), "")
    if _RECORD.match(text) or _RECORD.match(bare):
        return _record(RECORD, text if text.startswith("|") else bare)
    if _BARE.match(trimmed):
        return _record(BARE, text)
    for kind, pattern in (
        (SNAPSHOT, _SNAPSHOT),
        (ABORTED, _ABORTED),
        (OFFSET_INDEX, _OFFSET_INDEX),
        (TIME_INDEX, _TIME_INDEX),
    ):
        if pattern.match(trimmed):
            return Line(kind, trimmed, fields_of(trimmed), "")
    return _without_fields(trimmed, bare)


def _without_fields(trimmed: str, bare: str) -> Line:
    if trimmed.startswith("Dumping "):
        return Line(DUMPING, trimmed.removeprefix("Dumping ").strip(), {}, "")
    for kind, pattern in (
        (CONSOLE_OFFSETS, _CONSOLE_OFFSETS),
        (CONSOLE_TXN, _CONSOLE_TXN),
        (CONSOLE_JSON, _CONSOLE_JSON),
        (BROKEN, _BROKEN),
    ):
        if pattern.match(trimmed):
            return Line(kind, trimmed, {}, "")
    if _TOOL.match(trimmed) or _TOOL.match(bare.removeprefix("$ ")):
        return Line(TOOL, trimmed, {}, "")
    if _ELISION.match(trimmed):
        return Line(ELISION, trimmed, {}, "")
    is_chatter = _CHATTER.match(trimmed) or _CHATTER.match(bare)
    return Line(CHATTER if is_chatter else OTHER, trimmed, {}, "")


def _record(kind: str, text: str) -> Line:
    end = _HEAD_END.search(text)
    if text.startswith(("| key: ", "| payload: ", "| headerKeys: ")):
        return Line(kind, text, {}, _HEADERS_END.sub("", text[1:], count=1))
    if end is None:
        return Line(kind, text, fields_of(text.rstrip("\r \t}")), "")
    rest = _HEADERS_END.sub("", text[end.start() :], count=1)
    return Line(kind, text, fields_of(text[: end.start()]), rest)


def fields_of(head: str) -> dict[str, str]:
    """`name: value` pairs, names in lower case (versions write keysize and keySize)."""
    return {name.lower(): value for name, value in _FIELD.findall(head)}


def number(value: str | None) -> int | None:
    """An integer of up to 64 bits, also as `OptionalLong[5]` and `Some(5)`; else None."""
    if value is None:
        return None
    match = re.fullmatch(r"(?:OptionalLong\[|Some\()?(-?\d{1,20})[\])}]?", value)
    found = int(match[1]) if match else None
    return found if found is not None and -(2**63) <= found < 2**63 else None


def sized_rest(line: Line) -> int | None:
    """Bytes that ` key: ... payload: ...` must have by the printed sizes; None where none tells."""
    key, value = (number(line.fields.get(name)) for name in ("keysize", "valuesize"))
    if key is None or value is None:
        return None
    wanted = 0
    if line.rest.startswith(" key: "):
        wanted += len(" key: ") + max(key, 0)
    elif not line.rest.startswith(" payload: "):
        return None
    return wanted if value < 0 else wanted + len(" payload: ") + value
