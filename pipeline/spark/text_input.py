"""Dump texts in the input: which partitions they show, as if each were a directory."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from typing import NamedTuple

from pipeline.spark.files import TEXT, place
from pipeline.text import counted, sanitise
from pipeline.wire.dump_text import (
    EDITED,
    ELIDED,
    NOT_UNDERSTOOD,
    OTHER_TOOL,
    NotRead,
    Section,
    is_dump,
    parse,
)
from pipeline.wire.errors import WireError
from pipeline.wire.limits import MIB
from pipeline.wire.log_dir import parse_file, parse_name
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

SNIFFED_BYTES = 64 << 10
"""A text shows what it is in its first bytes."""
MAX_TEXT_BYTES = 256 * MIB
_FILE = f"{0:020d}.log"
_SHOWN_LINES = 8
_WORDS = {
    ELIDED: "in place of others that were cut out",
    EDITED: "as no broker writes them",
    OTHER_TOOL: "of another tool, which are not judged",
    "bad_record": "not whole, or against their neighbours",
}


class Dump(NamedTuple):
    """One section that becomes a file.

    Attributes:
        number: Tells apart sections that show the same file: each is a copy of its own.
        partition: Name of the directory, `topic-0`.
        base_name: Name of the file.
        path: Place for the reader.
        size: Bytes of the section.
    """

    number: int
    partition: str
    base_name: str
    path: str
    size: int


class Sections(NamedTuple):
    """What a text holds.

    Attributes:
        dumps: Sections that become files.
        doubts: (reason, detail) of what stands against a verdict on this text.
    """

    dumps: list[Dump]
    doubts: list[tuple[str, str]]


def sections(path: str, size: int) -> Sections | None:
    """What a text shows; None for a file that is no dump.

    Args:
        path: The file.
        size: Its bytes.

    Raises:
        WireError: `too_large`.
        OSError: It cannot be read.
    """
    with open(path, "rb") as stream:
        head = stream.read(SNIFFED_BYTES)
        if not is_dump(head):
            return None
        if size > MAX_TEXT_BYTES:
            raise WireError(
                f"a dump text of more than {MAX_TEXT_BYTES >> 20} MiB: split it", "too_large"
            )
        text = head + stream.read(MAX_TEXT_BYTES)
    seen: Counter[tuple[str, str]] = Counter()
    dumps, doubts = [], Counter[str]()
    lines: dict[str, list[int]] = defaultdict(list)
    consoles = 0
    stem = os.path.splitext(os.path.basename(path))[0]
    for one in parse(text):
        for row in one.not_read:
            lines[row.reason].append(row.line)
        if one.kind == "console":
            consoles += len(one.entries)
        if one.kind not in ("log", "snapshot", "txnindex"):
            doubts["index"] += one.kind is not None and one.kind != "console"
            continue
        key = _names(one, stem)
        at = place(TEXT, f"{one.position:020d}", one.end - one.position, one.line, path)
        dumps.append(Dump(seen[key], *key, at, one.end - one.position))
        seen[key] += 1
    found = [
        (
            reason,
            f"{counted(len(numbers), 'line')} {_WORDS[reason]} (line {_listed(numbers)})",
        )
        for reason, numbers in lines.items()
        if reason in _WORDS
    ]
    if consoles:
        said = f"{counted(consoles, 'line')} of a console consumer: without offsets"
        found.append(("no_offsets", said))
    return Sections(dumps, found)


def _names(one: Section, stem: str) -> tuple[str, str]:
    """Directory and file of a section; what the text does not name gets the name of the text."""
    parts = (one.path or "").replace("\\", "/").split("/")
    base_name = parts[-1]
    if parse_file(base_name) is None:
        base_name = _FILE if one.kind == "log" else _FILE.replace("log", str(one.kind))
    if len(parts) > 1 and parse_name(parts[-2]) is not None:
        return sanitise(parts[-2]), base_name
    topic = one.topic if one.topic in (TXN_TOPIC, OFFSETS_TOPIC) else sanitise(stem)
    return f"{topic}-0", base_name


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN_LINES]))
    return (
        shown if len(numbers) <= _SHOWN_LINES else f"{shown} and {len(numbers) - _SHOWN_LINES} more"
    )


def is_damage(row: NotRead) -> bool:
    """Whether the log itself was wrong, and not its copy on paper: the tool checked the bytes."""
    return row.reason == "crc"


__all__ = ["NOT_UNDERSTOOD", "Dump", "Sections", "is_damage", "sections"]
