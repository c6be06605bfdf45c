"""Contents that stand twice under other sequence numbers: `content_duplicate`."""

from __future__ import annotations

from tests import builders
from tests.planting.copied import CopiedLogs, Row
from tests.planting.expected import Planted, planted

OTHER_PRODUCER_ID = 777_001
VALUE = b"an order of the tests"
AT_MS = 1_000


def _topic(logs: CopiedLogs) -> tuple[str, int]:
    return next(name for name in logs.names() if not name[0].startswith(("__", "ctp")))


def written_twice(logs: CopiedLogs, sessions: list[tuple[int, int]], between_ms: int) -> Planted:
    """Append one record once for each (producer id, epoch), so many ms apart, and say where the last stands."""
    topic, partition = _topic(logs)
    rows = logs.rows(topic, partition)
    end = rows[-1].base_offset + rows[-1].delta + 1
    for number, (producer_id, epoch) in enumerate(sessions):
        rows.append(Row(builders.batch(
            0, [builders.Rec(b"k", VALUE)], producer_id=producer_id, producer_epoch=epoch,
            base_sequence=0 if producer_id >= 0 else -1,
            timestamp_ms=rows[-1].time_ms + AT_MS * (not number) + between_ms * (number > 0),
            partition_leader_epoch=rows[-1].leader_epoch,
        )))  # fmt: skip
    logs.save(topic, partition, rows)
    return planted("content_duplicate", ["resent", "repeated"], topic=topic, partition=partition,
                   first_offset=end + len(sessions) - 1)  # fmt: skip


def _found(expected: Planted, name: str, severity: str) -> Planted:
    return Planted(expected.must | {"class": name, "severity": severity}, expected.may)


def resent(logs: CopiedLogs) -> Planted:
    """A client raised its epoch and sent again what the broker had (librdkafka #4953)."""
    sessions = [(OTHER_PRODUCER_ID, 0), (OTHER_PRODUCER_ID, 1)]
    return _found(written_twice(logs, sessions, 0), "resent", "major")


def resent_without_id(logs: CopiedLogs) -> Planted:
    """A client without idempotence sent a batch again."""
    return _found(written_twice(logs, [(-1, -1), (-1, -1)], 0), "resent", "minor")


def repeated(logs: CopiedLogs) -> Planted:
    """An application sent a record again after a restart, at a later time."""
    sessions = [(OTHER_PRODUCER_ID, 0), (OTHER_PRODUCER_ID + 1, 0)]
    return _found(written_twice(logs, sessions, 5_000), "repeated", "major")
