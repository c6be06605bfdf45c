"""Replicas of one partition that part: detection 15."""

from __future__ import annotations

from tests import builders
from tests.planting.copied import CopiedLogs, Row
from tests.planting.expected import Planted, planted
from tests.planting.in_files import middle


def _replicated(logs: CopiedLogs) -> tuple[str, int]:
    names = [set(logs.names(broker)) for broker in range(len(logs.brokers))]
    shared = sorted(name for name in set.intersection(*names) if not name[0].startswith("__"))
    return shared[0]


def same_offset_other_bytes(logs: CopiedLogs) -> Planted:
    """One replica holds another batch below the high watermark of all."""
    topic, partition = _replicated(logs)
    file = sorted(logs.folder(topic, partition, 1).glob("*.log"))[0]
    rows, index, at = middle(file)
    data = bytearray(file.read_bytes())
    size = len(rows[index].data)
    changed = bytearray(rows[index].data)
    changed[-2] ^= 1
    data[at : at + size] = builders.with_crc(changed)
    file.write_bytes(data)
    return planted(
        "replica_divergence",
        "same_offset_other_bytes",
        topic=topic,
        partition=partition,
        first_offset=rows[index].base_offset,
    )


def lost_tail(logs: CopiedLogs) -> Planted:
    """A replica without the acknowledged tail became leader and wrote on from there."""
    topic, partition = _replicated(logs)
    rows = logs.rows(topic, partition)
    kept = rows[: len(rows) - 4]
    epoch = rows[-1].leader_epoch + 1
    first_lost = rows[len(kept)].base_offset
    fresh = Row(builders.batch(0, timestamp_ms=rows[-1].time_ms + 1, partition_leader_epoch=epoch))
    logs.save(topic, partition, [*kept, fresh])
    return planted("replica_divergence", "lost_tail", "replica_divergence", "marker_audit",
                   "hanging_transaction", "sequence_gap", topic=topic, partition=partition,
                   first_offset=first_lost)  # fmt: skip


def uncommitted_tail(logs: CopiedLogs) -> Planted:
    """A leader appended what no follower had, and another one was elected: above the high watermark nothing is lost."""
    topic, partition = _replicated(logs)
    rows = logs.rows(topic, partition, 1)
    last = rows[-1]
    fresh = Row(
        builders.batch(0, timestamp_ms=last.time_ms + 1, partition_leader_epoch=last.leader_epoch)
    )
    saved = logs.save(topic, partition, [*rows, fresh], 1)
    end = saved[-1].base_offset
    logs.set_checkpoint("replication-offset-checkpoint", topic, partition, end + 1, end, 1)
    for broker in (0, 2):
        elected = Row(builders.batch(0, timestamp_ms=last.time_ms + 5,
                                     partition_leader_epoch=last.leader_epoch + 1))  # fmt: skip
        logs.save(topic, partition, [*logs.rows(topic, partition, broker), elected], broker)
    return planted("replica_divergence", "uncommitted_tail", severity="info", topic=topic,
                   partition=partition, first_offset=end)  # fmt: skip


def other_incarnation(logs: CopiedLogs) -> Planted:
    """Without topic ids, one broker's directory is left of a deleted topic of the same name."""
    topic, partition = _replicated(logs)
    for broker in range(len(logs.brokers)):
        (logs.folder(topic, partition, broker) / "partition.metadata").unlink()
    rows = logs.rows(topic, partition)
    earlier = rows[0].time_ms - 86_400_000
    stale = [
        Row(builders.batch(0, [builders.Rec(None, b"of the deleted topic")], timestamp_ms=earlier + n,
                           partition_leader_epoch=0))
        for n in range(2 * len(rows))
    ]  # fmt: skip
    logs.save(topic, partition, stale, 1)
    return planted("replica_divergence", "other_incarnation", severity="info", topic=topic,
                   partition=partition, first_offset=rows[0].base_offset)  # fmt: skip
