"""Where a large segment may be split: at positions of `.index` entries that the bytes confirm."""

from __future__ import annotations

from itertools import pairwise

from pipeline.spark.files import is_forward_only, opened, read_bounded
from pipeline.wire.errors import WireError
from pipeline.wire.header import MAGIC_AT, MIN_LENGTH
from pipeline.wire.limits import DEFAULT_LIMITS
from pipeline.wire.offset_index import read_offset_index

PART_BYTES = 32 << 20
"""A file of at least two such parts is split into parts of about this size."""
_HEAD = MAGIC_AT + 1


def split_points(
    path: str, size: int, index_path: str, base_offset: int, part_bytes: int = PART_BYTES
) -> list[tuple[int, int | None]]:
    """(start, end) byte ranges that cover the file; the last end is None.

    An index can lie: an entry is taken only where a batch header lies, at or below its offset. A
    header that a record merely quotes would pass too; then the parts do not meet, and the file is
    read once more in one piece (`bronze.ingest`).

    Args:
        path: Segment file.
        size: Its size in bytes.
        index_path: Its offset index.
        base_offset: Offset in its name.
        part_bytes: Wanted size of a part.
    """
    if size < 2 * part_bytes or is_forward_only(path):
        return [(0, None)]
    cuts = [0]
    try:
        entries = read_offset_index(read_bounded(index_path), base_offset)
        with opened(path) as file:
            for entry in entries:
                if (
                    entry.position - cuts[-1] < part_bytes
                    or size - entry.position < part_bytes // 2
                ):
                    continue
                if _confirms(file.read_at(entry.position, _HEAD), entry.offset):
                    cuts.append(entry.position)
    except (OSError, WireError):
        # Without its index a file is read in one piece; whoever reads it reports what is wrong.
        return [(0, None)]
    return [*pairwise(cuts), (cuts[-1], None)]


def _confirms(head: bytes, indexed_offset: int) -> bool:
    """A batch of magic 2 with a sane length begins here, at or below the indexed offset."""
    if len(head) < _HEAD or head[MAGIC_AT] != 2:
        return False
    base = int.from_bytes(head[:8], "big", signed=True)
    length = int.from_bytes(head[8:12], "big", signed=True)
    return 0 <= base <= indexed_offset and MIN_LENGTH <= length <= DEFAULT_LIMITS.max_batch_bytes
