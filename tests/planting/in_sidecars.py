"""Sidecars that do not fit their logs: `visibility` and the rest of `damaged_log`."""

from __future__ import annotations

import struct
from pathlib import Path

import google_crc32c

from tests.planting.copied import CopiedLogs, Row
from tests.planting.expected import Planted, planted

_ABORTED = struct.Struct(">hqqqq")
_SNAPSHOT = struct.Struct(">qhiqiqiq")
_FIRST_ENTRY = 10


def _largest(logs: CopiedLogs, suffix: str) -> tuple[str, int, Path]:
    """The user partition with the largest file of a kind, and that file."""
    found = [
        (file.stat().st_size, name, file)
        for name in logs.names()
        if not name[0].startswith("__")
        for file in sorted(logs.folder(*name).glob(f"*.{suffix}"))
    ]
    _, name, file = max(found)
    return *name, file


def _damage(name: str, topic: str, partition: int) -> Planted:
    return planted("damaged_log", name, topic=topic, partition=partition)


def index_mismatch(logs: CopiedLogs) -> Planted:
    """An entry of an offset index points into the middle of a batch."""
    topic, partition, file = _largest(logs, "index")
    data = bytearray(file.read_bytes())
    struct.pack_into(">i", data, 4, struct.unpack_from(">i", data, 4)[0] + 7)
    file.write_bytes(data)
    return _damage("index_mismatch", topic, partition)


def timeindex_mismatch(logs: CopiedLogs) -> Planted:
    """An entry of a time index has another time than its batch."""
    topic, partition, file = _largest(logs, "timeindex")
    data = bytearray(file.read_bytes())
    struct.pack_into(">q", data, 0, struct.unpack_from(">q", data)[0] + 1_000)
    file.write_bytes(data)
    return _damage("timeindex_mismatch", topic, partition)


def snapshot_mismatch(logs: CopiedLogs) -> Planted:
    """A producer snapshot holds a sequence that its producer never wrote."""
    topic, partition, file = _largest(logs, "snapshot")
    data = bytearray(file.read_bytes())
    entries = range(_FIRST_ENTRY, len(data), _SNAPSHOT.size)
    at = next(at for at in entries if struct.unpack_from(">i", data, at + 10)[0] >= 0)
    struct.pack_into(">i", data, at + 10, struct.unpack_from(">i", data, at + 10)[0] + 3)
    struct.pack_into(">I", data, 2, google_crc32c.value(bytes(data[6:])))
    file.write_bytes(data)
    return _damage("snapshot_mismatch", topic, partition)


def leader_epoch_mismatch(logs: CopiedLogs) -> Planted:
    """`leader-epoch-checkpoint` begins an epoch ten offsets behind its first batch."""
    topic, partition, _ = _largest(logs, "log")
    file = logs.folder(topic, partition) / "leader-epoch-checkpoint"
    lines = file.read_text().splitlines()
    epoch, start = (int(part) for part in lines[-1].split())
    if len(lines) == 3:
        lines.insert(2, f"{epoch - 1} {start}")
        lines[1] = "2"
    lines[-1] = f"{epoch} {start + 10}"
    file.write_text("\n".join([*lines, ""]))
    return _damage("leader_epoch_mismatch", topic, partition)


def _aborted(logs: CopiedLogs) -> tuple[str, int, Path, bytearray, list[Row]]:
    topic, partition, file = _largest(logs, "txnindex")
    return topic, partition, file, bytearray(file.read_bytes()), logs.rows(topic, partition)


def aborted_exposed(logs: CopiedLogs) -> Planted:
    """The last entry of a transaction index is lost."""
    topic, partition, file, data, _ = _aborted(logs)
    _, producer_id, first, _, _ = _ABORTED.unpack_from(data, len(data) - _ABORTED.size)
    file.write_bytes(data[: -_ABORTED.size])
    return planted("visibility", "aborted_exposed", topic=topic, partition=partition,
                   producer_id=producer_id, first_offset=first)  # fmt: skip


def committed_hidden(logs: CopiedLogs) -> Planted:
    """A transaction index lists a transaction that was committed."""
    topic, partition, file, data, rows = _aborted(logs)
    at = next(i for i in reversed(range(len(rows))) if rows[i].outcome == 1)
    marker = rows[at]
    mine = [row for row in rows[:at] if row.producer_id == marker.producer_id]
    first = mine[-1].base_offset
    while mine and not mine[-1].is_marker:
        first = mine.pop().base_offset
    entry = (0, marker.producer_id, first, marker.base_offset, marker.base_offset + 1)
    file.write_bytes(data + _ABORTED.pack(*entry))
    return planted("visibility", "committed_hidden", topic=topic, partition=partition,
                   producer_id=marker.producer_id)  # fmt: skip


def index_wrong(logs: CopiedLogs) -> Planted:
    """An entry of a transaction index begins behind its transaction's first batch."""
    topic, partition, file, data, _ = _aborted(logs)
    at = len(data) - _ABORTED.size
    _, producer_id, first, _, _ = _ABORTED.unpack_from(data, at)
    struct.pack_into(">q", data, at + 10, first + 1)
    file.write_bytes(data)
    return planted("visibility", "index_wrong", topic=topic, partition=partition,
                   producer_id=producer_id)  # fmt: skip
