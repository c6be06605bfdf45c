"""Names of directories and files in a log directory.

Source: `LogFileUtils`, `UnifiedLog.parseTopicPartitionName`, `Utils.abs`,
`TransactionStateManager.partitionFor`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1

_DIRECTORY = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})"
    r"(?:\.(?P<hex>[0-9a-f]{32})-(?P<suffix>future|delete|stray))?"
)
_FILE = re.compile(
    r"(?P<offset>[0-9]{20})(?:-[0-9]{10})?\.(?P<kind>log|index|timeindex|snapshot|txnindex|checkpoint)"
    r"(?:\.(?P<suffix>deleted|cleaned|swap))?"
)


class PartitionDir(NamedTuple):
    """A partition directory; suffix is '', 'future', 'delete' or 'stray', hex is '' without one."""

    topic: str
    partition: int
    suffix: str
    hex: str


class SegmentFile(NamedTuple):
    """A file of one segment.

    Attributes:
        base_offset: the number in the name (for a snapshot the exclusive end offset).
        kind: log, index, timeindex, snapshot, txnindex or checkpoint (a KRaft snapshot).
        suffix: '', deleted, cleaned or swap.
    """

    base_offset: int
    kind: str
    suffix: str


def parse_name(name: str) -> PartitionDir | None:
    """Split a directory name at its last dash; None when it is no partition directory."""
    match = _DIRECTORY.fullmatch(name)
    if match is None or match["topic"] in (".", ".."):
        return None
    partition = int(match["partition"])
    if partition > MAX_INT32 or str(partition) != match["partition"]:
        return None
    return PartitionDir(match["topic"], partition, match["suffix"] or "", match["hex"] or "")


def parse_file(name: str) -> SegmentFile | None:
    """Read a segment file's name; None for every other file."""
    match = _FILE.fullmatch(name)
    if match is None or ("-" in name) != (match["kind"] == "checkpoint"):
        return None
    base_offset = int(match["offset"])
    if base_offset > MAX_INT64:
        return None
    return SegmentFile(base_offset, match["kind"], match["suffix"] or "")


def java_hash(text: str) -> int:
    """`String.hashCode` over UTF-16 code units, as a signed 32-bit value."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(id: str, n: int) -> int:
    """Partition of a transactional or group id in an internal topic of `n` partitions.

    Source: `Utils.abs(id.hashCode) % n`, where the absolute of the smallest int is 0.
    """
    value = java_hash(id)
    return (0 if value == -(2**31) else abs(value)) % n
