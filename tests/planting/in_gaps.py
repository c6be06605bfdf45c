"""Sequence numbers that are missing or start anew, one plant a cause: `sequence_gap`."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders, log_layout
from tests.planting.copied import CopiedLogs, Row
from tests.planting.expected import Planted, planted
from tests.property.model_output import producer_state

PRODUCER_ID, OTHER_PRODUCER_ID = 778_001, 778_002
Place = tuple[str, int]
Edit = Callable[[CopiedLogs], Planted]


def _topic(logs: CopiedLogs) -> Place:
    return next(name for name in logs.names() if not name[0].startswith(("__", "ctp")))


def _batch(after: Row, sequence: int, *, producer_id: int = PRODUCER_ID, **more: int) -> Row:
    fields = {"producer_epoch": 0, "partition_leader_epoch": after.leader_epoch} | more
    return Row(builders.batch(0, [builders.Rec(b"k", b"%d of %d" % (sequence, producer_id))], producer_id=producer_id,
                              base_sequence=sequence, timestamp_ms=after.time_ms + 10, **fields))  # fmt: skip


def _written(logs: CopiedLogs, second: int, **more: int) -> tuple[Place, list[Row]]:
    """Append sequence 0 and then `second` of a new producer; returns the partition's rows."""
    place = _topic(logs)
    rows = logs.rows(*place)
    rows.append(_batch(rows[-1], 0))
    rows.append(_batch(rows[-1], 0, producer_id=OTHER_PRODUCER_ID))
    rows.append(_batch(rows[-1], second, **more))
    return place, logs.save(*place, rows)


def _told(place: Place, rows: list[Row], name: str, severity: str) -> Planted:
    return planted("sequence_gap", name, topic=place[0], partition=place[1], severity=severity,
                   producer_id=PRODUCER_ID, first_offset=rows[-1].base_offset)  # fmt: skip


def gap_unexplained(logs: CopiedLogs) -> Planted:
    """Four numbers are missing, and nothing happened to the partition."""
    return _told(*_written(logs, 5), "lost", "major")


def gap_at_leader_change(logs: CopiedLogs) -> Planted:
    """The next leader never had four of them."""
    place = _topic(logs)
    epoch = logs.rows(*place)[-1].leader_epoch + 1
    return _told(*_written(logs, 5, partition_leader_epoch=epoch), "lost", "major")


def gap_after_expiry(logs: CopiedLogs) -> Planted:
    """A snapshot between the two batches no longer names the producer."""
    place, rows = _written(logs, 5)
    known = [(row.base_offset, row.entry()) for row in rows[:-1] if row.producer_id != PRODUCER_ID]
    file = log_layout.segment_name(rows[-1].base_offset, "snapshot")
    (logs.folder(*place) / file).write_bytes(log_layout.snapshot(producer_state(known)[0]))
    return _told(place, rows, "lost", "major")


def gap_at_epoch_bump(logs: CopiedLogs) -> Planted:
    """A new epoch begins at 5."""
    return _told(*_written(logs, 5, producer_epoch=1), "reset", "info")


def gap_of_first_batch(logs: CopiedLogs) -> Planted:
    """The first request of a producer was refused (KAFKA-15591)."""
    place = _topic(logs)
    rows = logs.rows(*place)
    rows.append(_batch(rows[-1], 17))
    return _told(place, logs.save(*place, rows), "lost", "info")


def behind_log_start(logs: CopiedLogs) -> None:
    """DeleteRecords removed the first batch, and the broker forgot the producer: a twin."""
    place, rows = _written(logs, 5)
    logs.set_checkpoint("log-start-offset-checkpoint", *place, None, rows[-2].base_offset)


def behind_cleaner(logs: CopiedLogs) -> None:
    """The cleaner worked on the partition up to the second batch: a twin."""
    place, rows = _written(logs, 5)
    logs.set_checkpoint("cleaner-offset-checkpoint", *place, None, rows[-2].base_offset)


def wraparound(logs: CopiedLogs) -> None:
    """0 follows 2147483647: a twin."""
    place = _topic(logs)
    rows = logs.rows(*place)
    rows.append(_batch(rows[-1], 2147483647))
    rows.append(_batch(rows[-1], 0))
    logs.save(*place, rows)
    logs.set_checkpoint("log-start-offset-checkpoint", *place, None, 1)


def next_number(logs: CopiedLogs) -> None:
    """Nothing is missing: a twin."""
    _written(logs, 1)


CAUSES = {
    gap_unexplained: "unexplained",
    gap_at_leader_change: "leader change",
    gap_after_expiry: "producer expiry",
    gap_at_epoch_bump: "epoch bump",
    gap_of_first_batch: "first batch",
}
"""Plant -> the probable cause that has to be told (`pipeline.replay.gap_cause.CAUSES`)."""
TWINS = (next_number, behind_log_start, behind_cleaner, wraparound)
