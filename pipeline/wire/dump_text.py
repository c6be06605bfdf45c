"""Output of `kafka-dump-log`, every version, as the tuples that the bytes themselves give.

A text may hold several dumps with prompts, notes and cuts between them. Each `Dumping FILE` begins
a section; lines without one form a section of unknown name. Nothing is dropped silently: each line
that was not understood, or that contradicts its neighbours, is listed with its place.

What a text cannot tell stays unknown: its checksums were verified by the tool, not here, and a
hand may have changed any value. Payload may look like the tool's own lines; by the printed sizes
and positions it is told apart (`dump_text_section`).

Source: `DumpLogSegments` 0.8 to 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.wire import dump_text_lines as lines
from pipeline.wire.dump_text_files import SIDECARS
from pipeline.wire.dump_text_lines import read_line
from pipeline.wire.dump_text_parts import (
    EDITED,
    ELIDED,
    NOT_UNDERSTOOD,
    OTHER_TOOL,
    NotRead,
    Section,
)
from pipeline.wire.dump_text_section import SectionReader

__all__ = [
    "EDITED",
    "ELIDED",
    "NOT_UNDERSTOOD",
    "OTHER_TOOL",
    "NotRead",
    "Section",
    "is_dump",
    "parse",
]


def is_dump(head: bytes) -> bool:
    """Whether the beginning of a file looks like output of the tool."""
    if b"\x00" in head:
        return False
    known = lines.IS_DATA | {lines.TOOL, *SIDECARS}
    return any(read_line(raw).kind in known for raw in head.decode("utf-8", "replace").split("\n"))


def parse(text: bytes, start: int = 0, line: int = 1) -> Iterator[Section]:
    """Reads a text; never raises on its content.

    Args:
        text: The whole of it, or a section; UTF-8, other bytes are replaced.
        start: Byte of the file at which it begins.
        line: Number of its first line.

    Yields:
        The sections in order; those without any line of a dump hold what was not understood.
    """
    section = SectionReader(None, start, line)
    rows = text.split(b"\n")
    position, at = start, 0
    while at < len(rows):
        found = read_line(rows[at][: lines.MAX_LINE_BYTES].decode("utf-8", "replace"))
        if found.kind == lines.DUMPING or section.is_other(found):
            yield from section.finish(position)
            path = found.text if found.kind == lines.DUMPING else None
            section = SectionReader(path, position, line + at)
        here = NotRead(position, len(rows[at]), line + at, "", "")
        taken = section.add(found, here, rows, at)
        position += sum(len(row) + 1 for row in rows[at : at + taken])
        at += taken
    yield from section.finish(start + len(text))
