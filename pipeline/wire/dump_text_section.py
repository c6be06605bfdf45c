"""One section of a dump text while its lines come in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeline.wire import dump_text_keyed as keyed
from pipeline.wire import dump_text_lines as lines
from pipeline.wire.batch import Batch
from pipeline.wire.dump_text_batch import (
    TextRecord,
    bare_batch,
    batch_of,
    contradiction,
    is_in_range,
    joined,
    record_of,
    with_records,
)
from pipeline.wire.dump_text_files import CONSOLE, SIDECARS, aborted, file_kind, snapshot, topic_of
from pipeline.wire.dump_text_keyed import Entry
from pipeline.wire.dump_text_lines import Line
from pipeline.wire.dump_text_parts import (
    EDITED,
    ELIDED,
    MAX_NOT_READ,
    NOT_UNDERSTOOD,
    OFFSETS_TOPIC,
    OTHER_TOOL,
    TXN_TOPIC,
    NotRead,
    Section,
)
from pipeline.wire.dump_text_repair import (
    has_wrong_key_size,
    with_sizes,
    with_versions,
    without_quoted,
)
from pipeline.wire.errors import WireError
from pipeline.wire.log_dir import parse_name
from pipeline.wire.producer_snapshot import SnapshotEntry
from pipeline.wire.txn_index import AbortedTxn
from pipeline.wire.txn_state import TxnEntry

_NO_BATCH = Batch(
    0, 0, 0, 0, -1, 2, 0, 0, 0, 0, False, False, None, -1, -1, -1, -1, -1, -1, 1, None, None
)  # fmt: skip
"""Stands for the batch of a record whose batch was not printed."""


class SectionReader:
    """A section while its lines come in; `finish` gives it."""

    def __init__(self, path: str | None, position: int, line: int) -> None:
        self.path = path
        self.position = position
        self.line = line
        self.kind: str | None = None
        parts = (path or "").replace("\\", "/").rsplit("/", 2)
        parsed = parse_name(parts[-2]) if len(parts) > 1 else None
        self.topic = parsed.topic if parsed else None
        self.batches: list[Batch] = []
        self.entries: list[tuple[int, int, Entry]] = []
        self.snapshots: list[SnapshotEntry] = []
        self.aborted: list[AbortedTxn] = []
        self.not_read: list[NotRead] = []
        self._current: Batch | None = None
        self._records: list[tuple[TextRecord, NotRead]] = []
        self._place = NotRead(position, 0, line, "", "")
        self._is_bare = False

    def is_other(self, line: Line) -> bool:
        """Whether a line is of another kind of file than the lines before it."""
        kind = file_kind(line)
        return self.path is None and None not in (kind, self.kind) and kind != self.kind

    def add(self, line: Line, here: NotRead, rows: list[bytes], at: int) -> int:
        """Takes a line.

        Args:
            line: The line.
            here: Its place.
            rows: All lines.
            at: Its index in them.

        Returns:
            The number of lines that it goes over: a payload may hold line breaks.
        """
        taken = 1
        try:
            if line.kind in (lines.RECORD, lines.BARE):
                wanted = (
                    lines.sized_rest(line) if self.topic not in (TXN_TOPIC, OFFSETS_TOPIC) else None
                )
                taken = _goes_on(line, wanted, rows, at)
            self._take(line, here)
        except WireError as error:
            self._note(here, error.reason, str(error))
        self.kind = self.kind or file_kind(line)
        return taken

    def _take(self, line: Line, here: NotRead) -> None:
        if line.kind == lines.BATCH:
            self._flush()
            self._place = here
            self._current = batch_of(line.fields)
        elif line.kind == lines.RECORD:
            if self._current is None:
                raise WireError("a record without its batch", "bad_record")
            self._records.append((record_of(line), here))
        elif line.kind == lines.BARE:
            self._bare(line, here)
        elif line.kind in SIDECARS:
            self._sidecar(line)
        elif line.kind in CONSOLE:
            self._console(line, here)
        elif line.kind == lines.BROKEN:
            raise WireError("a line of a dump that is not whole", "bad_record")
        elif line.kind == lines.ELISION:
            self._flush()
            self._note(here, ELIDED, "lines were cut out")
        elif line.kind == lines.TOOL:
            self._note(here, OTHER_TOOL, "what another tool printed of batches and transactions")
        elif line.kind == lines.OTHER:
            self._note(here, NOT_UNDERSTOOD, "not a line of kafka-dump-log")

    def _bare(self, line: Line, here: NotRead) -> None:
        """A record that is printed with its batch's fields; one position, one batch."""
        record = record_of(line)
        batch = bare_batch(line.fields, record)
        before = self._current
        if (
            before is not None
            and self._is_bare
            and batch.magic == 2
            and batch.position == before.position
        ):
            self._current = joined(before, batch)
        else:
            self._flush()
            self._current, self._place, self._is_bare = batch, here, True
        self._records.append((record, here))

    def _flush(self) -> None:
        """Judges the batch that is now whole."""
        batch, records = self._current, self._records
        was_bare = self._is_bare
        self._current, self._records, self._is_bare = None, [], False
        if batch is None:
            return
        wrong = contradiction(batch, [one for one, _ in records])
        if wrong is not None and not was_bare:
            self._note(self._place, EDITED, wrong)
        whole = with_records(batch, [one for one, _ in records])
        if not is_in_range(whole):
            self._note(self._place, "bad_record", "a value that its field cannot hold")
            return
        self.batches.append(whole)
        index = len(self.batches) - 1
        if batch.is_control:
            return
        for number_, (record, here) in enumerate(records):
            offset = batch.base_offset + number_ if record.offset is None else record.offset
            self._decode(index, offset, record, here)

    def _decode(self, index: int, offset: int, record: TextRecord, here: NotRead) -> None:
        if self.topic is None:
            self.topic = topic_of(record.rest)
        readers: dict[str, Callable[[str], Entry]] = {
            TXN_TOPIC: keyed.txn_entry,
            OFFSETS_TOPIC: keyed.group_entry,
        }
        reader = readers.get(self.topic or "")
        if reader is None or not record.rest.startswith((" key: ", " payload: ")):
            return
        try:
            entry = reader(record.rest.rstrip("\r"))
            keyed.check(entry)
        except WireError as error:
            self._note(here, error.reason, f"{error}: was it printed with the topic's decoder?")
            return
        self.entries.append((index, offset, entry))
        if has_wrong_key_size(entry, record.key_size):
            self._note(here, EDITED, "the key has another size than printed")

    def _sidecar(self, line: Line) -> None:
        if line.kind == lines.SNAPSHOT:
            self.snapshots.append(snapshot(line))
        elif line.kind == lines.ABORTED:
            self.aborted.append(aborted(line))

    def _console(self, line: Line, here: NotRead) -> None:
        """A line of the console consumer: a record without offset, time or batch."""
        reader: dict[str, Callable[[str], Entry]] = {
            lines.CONSOLE_TXN: keyed.console_txn,
            lines.CONSOLE_OFFSETS: keyed.console_offset,
            lines.CONSOLE_JSON: keyed.console_json,
        }
        entry = reader[line.kind](line.text)
        keyed.check(entry)
        topic = TXN_TOPIC if isinstance(entry, TxnEntry) else OFFSETS_TOPIC
        if self.topic not in (None, topic):
            raise WireError("a record of another topic", "bad_record")
        self.topic = topic
        at = len(self.batches)
        self.batches.append(_NO_BATCH._replace(position=at, base_offset=at, last_offset=at))
        self.entries.append((at, at, entry))

    def _note(self, here: NotRead, reason: str, detail: str) -> None:
        if len(self.not_read) < MAX_NOT_READ:
            self.not_read.append(here._replace(reason=reason, detail=detail))
            return
        last = self.not_read[-1]
        self.not_read[-1] = last._replace(
            size_bytes=here.position + here.size_bytes - last.position,
            detail="this and all lines that follow",
        )

    def finish(self, end: int) -> Iterator[Section]:
        """The section, when it holds anything."""
        self._flush()
        batches, entries, quoted = without_quoted(self.batches, self.entries)
        for batch in quoted:
            self._note(self._place, EDITED, f"a batch at {batch.base_offset} that a payload quotes")
        sized = with_sizes(batches)
        entries = with_versions(entries)
        if self.kind is not None or self.not_read or self.path is not None:
            yield Section(
                self.path, self.kind, self.topic, self.position, end, self.line, sized, entries,
                self.snapshots, self.aborted, self.not_read,
            )  # fmt: skip


def _goes_on(line: Line, wanted: int | None, rows: list[bytes], at: int) -> int:
    """Lines of a record: a payload may hold line breaks; its printed size tells, to the byte."""
    if wanted is None:
        return 1
    size = len(line.rest.encode("utf-8", "replace"))
    count = 1
    while size < wanted and at + count < len(rows):
        size += 1 + len(rows[at + count])
        count += 1
    return count if size == wanted else 1
