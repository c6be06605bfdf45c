"""Faults in data partitions and their markers: detections 1 to 5 and 18."""

from __future__ import annotations

from dataclasses import replace

from tests import builders, log_layout
from tests.planting.copied import CopiedLogs, Row
from tests.planting.expected import Planted, planted
from tests.planting.transactions import COMPLETE, PREPARE, TOPIC, Coordinator, Run, State, runs

LATE_MS = 120_000
UNKNOWN_PRODUCER_ID = 777_777


def user_runs(logs: CopiedLogs) -> list[Run]:
    """Return closed runs in topics that no group reads."""
    every = runs(logs, lambda topic: not topic.startswith(("__", "ctp")))
    return [run for run in every if run.marker >= 0]


def last_run(logs: CopiedLogs) -> tuple[Run, list[Row]]:
    """Return a run that is its producer's last in a partition, with the partition's rows."""
    for run in reversed(user_runs(logs)):
        rows = logs.rows(run.topic, run.partition)
        if all(row.producer_id != run.producer_id for row in rows[run.marker + 1 :]):
            return run, rows
    raise LookupError("no such run in this recording")


def middle_run(logs: CopiedLogs, *, least: int = 1, records: int = 1) -> tuple[Run, list[Row]]:
    """Return a run between two others of its producer in the partition, with the rows.

    Args:
        least: how many batches it has at least.
        records: how many records its last batch has at least.
    """
    every = user_runs(logs)
    for before, run, after in zip(every, every[1:], every[2:], strict=False):
        place = (run.topic, run.partition)
        if place != (before.topic, before.partition) or place != (after.topic, after.partition):
            continue
        mine = [
            r for r in every if (r.topic, r.partition, r.producer_id) == (*place, run.producer_id)
        ]
        rows = logs.rows(*place)
        if (mine[0] != run != mine[-1] and len(run.data) >= least
                and rows[run.data[-1]].records >= records):  # fmt: skip
            return run, rows
    raise LookupError("no such run in this recording")


def _where(run: Run, **fields: object) -> dict[str, object]:
    return {
        "topic": run.topic,
        "partition": run.partition,
        "producer_id": run.producer_id,
        **fields,
    }


def orphan_producer(logs: CopiedLogs) -> Planted:
    """An open run of a producer id that no transactional id owns, at the end of a partition."""
    run, rows = last_run(logs)
    late = rows[run.data[-1]].set(producer_id=UNKNOWN_PRODUCER_ID, epoch=0, sequence=0)
    rows = logs.save(run.topic, run.partition, [*rows, late])
    where = _where(run, producer_id=UNKNOWN_PRODUCER_ID, first_offset=rows[-1].base_offset)
    return planted("hanging_transaction", "orphan_producer", **where)


def pinned(logs: CopiedLogs) -> Planted:
    """What stands behind a run that nobody owns waits: the last stable offset is held by it."""
    must = orphan_producer(logs).must
    where = {name: must[name] for name in ("topic", "partition", "first_offset")}
    return planted("lso_pinned", "pinned", "hanging_transaction/orphan_producer", **where)


def not_in_transaction(logs: CopiedLogs) -> Planted:
    """A producer's last marker never came to a partition; its coordinator says complete."""
    run, rows = last_run(logs)
    first = rows[run.data[0]].base_offset
    del rows[run.marker]
    logs.save(run.topic, run.partition, rows)
    where = _where(run, first_offset=first)
    return planted("hanging_transaction", "not_in_transaction", "marker_audit/missing", **where)


def owner_not_copied(logs: CopiedLogs) -> Planted:
    """As before, and the owner's coordinator partition is not in the copy."""
    found = not_in_transaction(logs)
    coordinator = Coordinator(logs)
    owner = coordinator.owner(int(str(found.must["producer_id"])))
    folder = logs.folder(TOPIC, coordinator.of(owner)[0].partition)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    return Planted({**found.must, "class": "owner_not_copied", "severity": "info"})


def epoch_mismatch(logs: CopiedLogs) -> Planted:
    """As before, and the owner's next life has the partition in a transaction of its own."""
    found = not_in_transaction(logs)
    coordinator = Coordinator(logs)
    last = coordinator.of(coordinator.owner(int(str(found.must["producer_id"]))))[-1]
    time_ms = coordinator.rows[last.partition][-1].time_ms
    name = (str(found.must["topic"]), int(str(found.must["partition"])))
    opened = replace(last, epoch=last.epoch + 1, state=builders.ONGOING, partitions=(name,),
                     last_update_ms=time_ms + 60, start_ms=time_ms + 60)  # fmt: skip
    empty = replace(opened, state=builders.EMPTY, partitions=None, start_ms=-1,
                    last_update_ms=time_ms + 50)  # fmt: skip
    for state in (empty, opened):
        end = len(coordinator.rows[last.partition])
        coordinator.insert(last.partition, end, last.transactional_id, state.value(),
                           state.last_update_ms)  # fmt: skip
    coordinator.save()
    return Planted({**found.must, "class": "epoch_mismatch"}, found.may)


def _open_transaction(logs: CopiedLogs, drop: tuple[int, ...], *, every_marker: bool) -> list[Run]:
    """Take the last transaction of an id apart; its coordinator lives on for two minutes.

    Args:
        drop: states whose records go.
        every_marker: whether all its markers go, else the one of its first partition.
    """
    coordinator = Coordinator(logs)
    for owner in coordinator.ids():
        states = coordinator.last(owner)
        prepare = [s for s in states if s.state in PREPARE]
        if states[-1].state not in COMPLETE or not prepare or owner.startswith("ctp"):
            continue
        listed = prepare[0].partitions or ()
        mine = [r for r in user_runs(logs) if r.producer_id == states[0].producer_id]
        last = {(r.topic, r.partition): r for r in mine}
        chosen = [last[name] for name in listed if name in last]
        if len(chosen) < len(listed):
            continue
        chosen = chosen if every_marker else chosen[:1]
        for run in chosen:
            rows = logs.rows(run.topic, run.partition)
            del rows[run.marker]
            logs.save(run.topic, run.partition, rows)
        coordinator.drop(*[s for s in states if s.state in drop])
        coordinator.tick(states[0].partition, LATE_MS)
        coordinator.save()
        return chosen
    raise LookupError("no such transaction in this recording")


def prepare_stuck(logs: CopiedLogs) -> Planted:
    """The coordinator decided, one marker and Complete* never came."""
    run = _open_transaction(logs, COMPLETE, every_marker=False)[0]
    return planted("hanging_transaction", "prepare_stuck", "marker_audit/missing", **_where(run))


def past_deadline(logs: CopiedLogs) -> Planted:
    """A transaction is Ongoing a minute beyond its timeout; nobody decided it."""
    run = _open_transaction(logs, PREPARE + COMPLETE, every_marker=True)[0]
    return planted("hanging_transaction", "past_deadline", "hanging_transaction/past_deadline",
                   **_where(run))  # fmt: skip


def snapshot_only(logs: CopiedLogs) -> Planted:
    """Retention removed the batches of an open transaction, the snapshots still hold it."""
    for topic, partition in logs.names():
        folder = logs.folder(topic, partition)
        segments = sorted(folder.glob("*.log"))
        if topic.startswith("__") or len(segments) < 2:
            continue
        start = int(segments[1].stem)
        for file in folder.glob(f"{segments[0].stem}.*"):
            file.unlink()
        kept = logs.rows(topic, partition)[0]
        ghost = (UNKNOWN_PRODUCER_ID, 0, 0, start - 2, 0, kept.base_ms, -1, start - 2)
        for file in folder.glob("*.snapshot"):
            data = file.read_bytes()
            size = log_layout.SNAPSHOT_ENTRY.size
            rows = [log_layout.SNAPSHOT_ENTRY.unpack_from(data, at)
                    for at in range(10, len(data), size)]  # fmt: skip
            file.write_bytes(log_layout.snapshot([*rows, ghost]))
        logs.set_checkpoint("log-start-offset-checkpoint", topic, partition, None, start)
        epochs = log_layout.leader_epoch_checkpoint([(kept.leader_epoch, start)])
        (folder / "leader-epoch-checkpoint").write_bytes(epochs)
        return planted("hanging_transaction", "snapshot_only", topic=topic, partition=partition,
                       producer_id=UNKNOWN_PRODUCER_ID)  # fmt: skip
    raise LookupError("no partition of two segments in this recording")


def exact_duplicate(logs: CopiedLogs) -> Planted:
    """A batch is in the log twice."""
    run, rows = middle_run(logs)
    rows.insert(run.data[-1] + 1, replace(rows[run.data[-1]], gap=0))
    logs.save(run.topic, run.partition, rows)
    return planted("duplicate_batch", "exact", **_where(run))


def overlapping_duplicate(logs: CopiedLogs) -> Planted:
    """A batch repeats the last sequence number of the one before it."""
    run, rows = middle_run(logs, records=2)
    before = rows[run.data[-1]]
    again = Row(builders.batch(
        0, 1, producer_id=run.producer_id, producer_epoch=before.epoch, timestamp_ms=before.time_ms,
        base_sequence=before.sequence + before.delta, transactional=True,
        partition_leader_epoch=before.leader_epoch,
    ))  # fmt: skip
    rows.insert(run.data[-1] + 1, again)
    logs.save(run.topic, run.partition, rows)
    return planted("duplicate_batch", "overlap", **_where(run))


def epoch_regressed(logs: CopiedLogs) -> Planted:
    """A fenced instance's batch lies in a run of its successor, after the successor's data."""
    for run in user_runs(logs):
        rows = logs.rows(run.topic, run.partition)
        if rows[run.data[-1]].epoch > 0:
            late = rows[run.data[-1]].set(epoch=rows[run.data[-1]].epoch - 1, sequence=500_000)
            rows.insert(run.data[-1] + 1, replace(late, gap=0))
            logs.save(run.topic, run.partition, rows)
            return planted("zombie_write", "epoch_regressed", "zombie_write/after_fence",
                           "sequence_gap", "content_duplicate", **_where(run))  # fmt: skip
    raise LookupError("no producer with a second epoch in this recording")


def after_fence(logs: CopiedLogs) -> Planted:
    """An id starts again with a higher epoch; the old instance's batch opens the new one's run."""
    coordinator = Coordinator(logs)
    for owner in coordinator.ids():
        states = coordinator.last(owner)
        listed = next((s.partitions or () for s in states if s.state in PREPARE), ())
        mine = [r for r in user_runs(logs) if r.producer_id == states[0].producer_id]
        last = {(r.topic, r.partition): r for r in mine}
        if not listed or any(name not in last for name in listed) or states[0].version:
            continue
        _start_again(coordinator, states)
        for name in listed:
            rows, run, sequence = logs.rows(*name), last[name], 0
            old = rows[run.data[0]]
            for index in run.data:
                rows[index] = rows[index].set(epoch=old.epoch + 1, sequence=sequence)
                sequence += rows[index].delta + 1
            rows[run.marker] = rows[run.marker].set(epoch=old.epoch + 1)
            if name == listed[0]:
                rows.insert(run.data[0], old)
            logs.save(*name, rows)
        return planted("zombie_write", "after_fence", "write_outside_transaction", "content_duplicate",
                       **_where(last[listed[0]]))  # fmt: skip
    raise LookupError("no such transaction in this recording")


def _start_again(coordinator: Coordinator, states: list[State]) -> None:
    first = states[0]
    for state in states:
        coordinator.change(state, epoch=state.epoch + 1)
    empty = replace(
        first, epoch=first.epoch + 1, state=builders.EMPTY, partitions=None, start_ms=-1
    )
    coordinator.insert(first.partition, first.index, first.transactional_id, empty.value(),
                       first.time_ms)  # fmt: skip
    coordinator.save()
