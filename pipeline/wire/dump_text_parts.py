"""What a dump text gives: its sections, and the lines that gave no row."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.wire.batch import Batch
from pipeline.wire.dump_text_keyed import Entry
from pipeline.wire.producer_snapshot import SnapshotEntry
from pipeline.wire.txn_index import AbortedTxn

TXN_TOPIC, OFFSETS_TOPIC = "__transaction_state", "__consumer_offsets"
NOT_UNDERSTOOD = "not_understood"
"""Reason of a line that is no dump: text of a person, or of another tool."""
EDITED = "edited"
"""Reason of a line that cannot be as the broker wrote it; its batch is still used."""
ELIDED = "elided"
"""Reason of `...`: something was cut out."""
OTHER_TOOL = "other_tool"
"""Reason of what another tool printed of batches and transactions: nothing of it is judged."""
MAX_NOT_READ = 10_000
"""Lines listed a section; more of them are one row."""


class NotRead(NamedTuple):
    """A line that is not in the rows.

    Attributes:
        position: Byte of the text at which it begins.
        size_bytes: Its length; of several lines where the list was full.
        line: Its number, from 1.
        reason: `not_understood`, `edited`, `elided`, `other_tool` or a reason of `pipeline.wire.batch`.
        detail: Why, without any of its text.
    """

    position: int
    size_bytes: int
    line: int
    reason: str
    detail: str


class Section(NamedTuple):
    """One dumped file.

    Attributes:
        path: As printed behind `Dumping`; None for lines without it.
        kind: log, console, snapshot, txnindex, index, timeindex; None when nothing was in it.
            What a console consumer printed has no offsets and times: its lines are counted instead.
        topic: Topic by the path, or by the decoder's notation; None when nothing tells.
        position: Byte of the text at which it begins.
        end: Byte behind it.
        line: Number of its first line.
        batches: In the order of the text.
        entries: (index of the batch, offset, record) of the internal topics.
        snapshots: Of a `.snapshot`.
        aborted: Of a `.txnindex`.
        not_read: Lines that gave no row.
    """

    path: str | None
    kind: str | None
    topic: str | None
    position: int
    end: int
    line: int
    batches: list[Batch]
    entries: list[tuple[int, int, Entry]]
    snapshots: list[SnapshotEntry]
    aborted: list[AbortedTxn]
    not_read: list[NotRead]
