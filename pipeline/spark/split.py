"""Where a large segment may be split: at positions of `.index` entries that the bytes confirm."""

from __future__ import annotations

from pathlib import Path

from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS
from pipeline.wire.offset_index import read_offset_index

PART_BYTES = 32 << 20
"""A file is split into parts of about this size."""
_HEAD = 17


def split_points(
    path: str, size: int, index_path: str | None, base_offset: int, part_bytes: int = PART_BYTES
) -> list[tuple[int, int | None]]:
    """(start, end) byte ranges that cover the file; the last end is None. An index can lie, so each is checked.

    Args:
        path: Segment file.
        size: Its size.
        index_path: Its offset index, if any.
        base_offset: Offset in its name.
        part_bytes: Wanted size of a part.
    """
    if size < 2 * part_bytes or index_path is None:
        return [(0, None)]
    try:
        entries = read_offset_index(Path(index_path).read_bytes(), base_offset)
        cuts = [0]
        with open(path, "rb") as stream:
            for entry in entries:
                if entry.position - cuts[-1] < part_bytes or entry.position >= size:
                    continue
                stream.seek(entry.position)
                if _confirms(stream.read(_HEAD), entry.offset):
                    cuts.append(entry.position)
    except (OSError, WireError):
        return [(0, None)]
    return [*zip(cuts[:-1], cuts[1:], strict=True), (cuts[-1], None)]


def _confirms(head: bytes, indexed_offset: int) -> bool:
    """A batch of magic 2 with a sane length begins here, at or below the indexed offset."""
    if len(head) < _HEAD or head[16] != 2:
        return False
    base = int.from_bytes(head[:8], "big", signed=True)
    length = int.from_bytes(head[8:12], "big", signed=True)
    return 0 <= base <= indexed_offset and 49 <= length <= DEFAULT_LIMITS.max_batch_bytes
