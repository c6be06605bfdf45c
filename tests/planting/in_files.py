"""Damaged files: `damaged_log`."""

from __future__ import annotations

from pathlib import Path

from tests.planting.copied import CopiedLogs, Row, split
from tests.planting.expected import Planted, planted


def _segmented(logs: CopiedLogs) -> tuple[str, int, list[Path]]:
    """Return a user partition of several segments, the most first."""

    def segments(name: tuple[str, int]) -> list[Path]:
        return sorted(logs.folder(*name).glob("*.log"))

    names = [name for name in logs.names() if name[0].startswith(("orders", "audit", "payments"))]
    name = max(names, key=lambda n: len(segments(n)))
    return *name, segments(name)


def middle(file: Path) -> tuple[list[Row], int, int]:
    """Return a segment's rows, the middle data row and its byte position."""
    rows = split(file.read_bytes())
    half = len(rows) // 2
    index = next(i for i in range(half, len(rows)) if not rows[i].is_marker)
    return rows, index, sum(len(row.data) for row in rows[:index])


def _damage(
    name: str | list[str], topic: str, partition: int, *may: str, **fields: object
) -> Planted:
    return planted("damaged_log", name, *may, topic=topic, partition=partition, **fields)


def crc(logs: CopiedLogs) -> Planted:
    """One bit of a batch's records is flipped."""
    topic, partition, files = _segmented(logs)
    data = bytearray(files[0].read_bytes())
    rows, index, at = middle(files[0])
    data[at + len(rows[index].data) - 3] ^= 0x10
    files[0].write_bytes(data)
    return _damage("crc", topic, partition)


def torn_tail(logs: CopiedLogs) -> Planted:
    """An active segment ends inside a batch, as after a crash; nothing else is lost."""
    topic, partition, files = _segmented(logs)
    with files[-1].open("ab") as file:
        file.write(split(files[-1].read_bytes())[-1].data[:40])
    (logs.brokers[0] / ".kafka_cleanshutdown").unlink()
    return _damage("torn_tail", topic, partition, severity="info")


def zero_tail(logs: CopiedLogs) -> Planted:
    """An active segment ends with zeros, as when preallocated."""
    topic, partition, files = _segmented(logs)
    with files[-1].open("ab") as file:
        file.write(bytes(4096))
    (logs.brokers[0] / ".kafka_cleanshutdown").unlink()
    return _damage("zero_tail", topic, partition, severity="info")


def zeroed_block(logs: CopiedLogs) -> Planted:
    """512 bytes in the middle of a segment are zero, as after a lost disk write."""
    topic, partition, files = _segmented(logs)
    data = bytearray(files[0].read_bytes())
    at = middle(files[0])[2] + 4
    data[at : at + 512] = bytes(512)
    files[0].write_bytes(data)
    return _damage(["crc", "unreadable"], topic, partition, "damaged_log")


def unreadable(logs: CopiedLogs) -> Planted:
    """A segment is no Kafka log at all."""
    topic, partition, files = _segmented(logs)
    files[0].write_bytes(b"this is no segment of a log\n" * 800)
    return _damage("unreadable", topic, partition, "damaged_log", "duplicate_batch")


def segment_overlap(logs: CopiedLogs) -> Planted:
    """An old segment lies beside the merged one that replaced it."""
    topic, partition, files = _segmented(logs)
    merged = files[0].read_bytes() + files[1].read_bytes()
    aborted = [file.with_suffix(".txnindex") for file in files[:2]]
    listed = b"".join(file.read_bytes() for file in aborted if file.exists())
    for suffix in ("index", "timeindex"):
        (files[0].with_suffix(f".{suffix}")).unlink(missing_ok=True)
    aborted[0].write_bytes(listed)
    files[0].write_bytes(merged)
    return _damage("segment_overlap", topic, partition, severity="info")


def gap_between_segments(logs: CopiedLogs) -> Planted:
    """A segment in the middle is missing."""
    topic, partition, files = _segmented(logs)
    for file in files[1].parent.glob(f"{files[1].stem}.*"):
        file.unlink()
    return _damage("gap_between_segments", topic, partition, "sequence_gap", "marker_audit")
