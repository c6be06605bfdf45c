"""Faults of markers and of writes outside transactions: detections 3 to 5 and 18."""

from __future__ import annotations

from tests import builders
from tests.planting.copied import CopiedLogs
from tests.planting.expected import Planted, planted
from tests.planting.in_data import LATE_MS, last_run, middle_run, user_runs
from tests.planting.transactions import PREPARE, Coordinator, Run, State

HOUR_MS = 3_600_000
LOG_APPEND_TIME = 0x08
"""Bit of a batch's attributes (Kafka: `DefaultRecordBatch.TIMESTAMP_TYPE_MASK`)."""


def _where(run: Run) -> dict[str, object]:
    return {"topic": run.topic, "partition": run.partition, "producer_id": run.producer_id}


def _transactions(coordinator: Coordinator, producer_id: int) -> list[list[State]]:
    """Return an id's transactions, each from its first Ongoing to Complete*."""
    out: list[list[State]] = []
    for state in coordinator.of(coordinator.owner(producer_id)):
        if state.state == builders.EMPTY:
            continue
        if state.state == builders.ONGOING and (not out or out[-1][-1].state != builders.ONGOING):
            out.append([])
        if out:
            out[-1].append(state)
    return out


def _transaction_of(coordinator: Coordinator, run: Run, logs: CopiedLogs) -> list[State]:
    """Return the transaction whose Prepare* to Complete* holds the run's marker (one clock)."""
    time_ms = logs.rows(run.topic, run.partition)[run.marker].time_ms
    for states in _transactions(coordinator, run.producer_id):
        prepared = [s.time_ms for s in states if s.state in PREPARE]
        if prepared and prepared[0] <= time_ms <= states[-1].time_ms:
            return states
    raise LookupError("the marker belongs to no transaction")


def stale_coordinator(logs: CopiedLogs) -> Planted:
    """A marker of an older coordinator follows one of a newer."""
    run, rows = middle_run(logs)
    rows[run.marker] = rows[run.marker].marked(rows[run.marker].outcome, coordinator_epoch=1)
    logs.save(run.topic, run.partition, rows)
    return planted("zombie_write", "stale_coordinator", "marker_audit", **_where(run))


def partition_not_added(logs: CopiedLogs) -> Planted:
    """The coordinator never heard of a partition that a transaction wrote to."""
    coordinator = Coordinator(logs)
    for run in user_runs(logs):
        name = (run.topic, run.partition)
        states = _transaction_of(coordinator, run, logs)
        if states[0].partitions == (name,) or len(states) < 4:
            continue
        drop, before = [], None
        for state in states:
            left = tuple(p for p in state.partitions or () if p != name)
            if state.state == builders.ONGOING and left == before:
                drop.append(state)
            elif left != state.partitions:
                coordinator.change(state, partitions=left)
            before = left
        coordinator.drop(*drop)
        coordinator.save()
        return planted("write_outside_transaction", "partition_not_added", "marker_audit",
                       **_where(run))  # fmt: skip
    raise LookupError("no such transaction in this recording")


def swallowed(logs: CopiedLogs) -> Planted:
    """On a LogAppendTime topic, a batch was appended five seconds before its transaction had added the partition."""
    run, rows = middle_run(logs)
    early = run.data[0]
    stamped = [row if row.is_marker else row.set(attributes=row.attributes | LOG_APPEND_TIME)
               for row in rows]  # fmt: skip
    stamped[early] = stamped[early].at(stamped[early].time_ms - 5_000)
    logs.save(run.topic, run.partition, stamped)
    return planted("write_outside_transaction", "swallowed", **_where(run))


def after_completion(logs: CopiedLogs) -> Planted:
    """A batch arrives behind its transaction's marker, no transaction follows."""
    run, rows = last_run(logs)
    last, marker = rows[run.data[-1]], rows[run.marker]
    follows = 0 if marker.epoch > last.epoch else last.sequence + last.delta + 1
    late = last.set(sequence=follows, epoch=marker.epoch)
    rows.insert(run.marker + 1, late)
    logs.save(run.topic, run.partition, rows)
    return planted("write_outside_transaction", "after_completion", "hanging_transaction",
                   **_where(run))  # fmt: skip


def missing(logs: CopiedLogs) -> Planted:
    """A marker in mid-history is gone; the next transaction's closes both runs."""
    run, rows = middle_run(logs)
    del rows[run.marker]
    logs.save(run.topic, run.partition, rows)
    return planted("marker_audit", "missing", "sequence_gap", "write_outside_transaction",
                   **_where(run))  # fmt: skip


def _lonely(logs: CopiedLogs, outcome: int) -> Run:
    coordinator = Coordinator(logs)
    coordinator.tick_all(LATE_MS)
    coordinator.save()
    run, rows = last_run(logs)
    lonely = rows[run.marker].marked(outcome)
    logs.save(run.topic, run.partition, [*rows, lonely.at(rows[-1].time_ms + LATE_MS // 2)])
    return run


def unexpected(logs: CopiedLogs) -> Planted:
    """A COMMIT marker a minute after the last transaction of its producer."""
    return planted("marker_audit", "unexpected", **_where(_lonely(logs, builders.COMMIT)))


def manual_abort(logs: CopiedLogs) -> Planted:
    """An ABORT marker a minute after the last transaction of its producer: an operator's."""
    run = _lonely(logs, builders.ABORT)
    return planted("manual_abort", "manual_abort", severity="info", **_where(run))


def duplicate(logs: CopiedLogs) -> Planted:
    """A marker is written twice, as after a lost answer: legal."""
    run, rows = middle_run(logs)
    rows.insert(run.marker + 1, rows[run.marker].set())
    logs.save(run.topic, run.partition, rows)
    return planted("marker_audit", "duplicate", severity="info", **_where(run))


def _flip(logs: CopiedLogs, *, alone: bool) -> Run:
    coordinator = Coordinator(logs)
    every = user_runs(logs)
    for run in every[len(every) // 4 :]:
        states = _transaction_of(coordinator, run, logs)
        listed = next(s.partitions or () for s in states if s.state in PREPARE)
        if (len(listed) == 1) == alone:
            rows = logs.rows(run.topic, run.partition)
            rows[run.marker] = rows[run.marker].marked(1 - rows[run.marker].outcome)
            logs.save(run.topic, run.partition, rows)
            return run
    raise LookupError("no such transaction in this recording")


def torn(logs: CopiedLogs) -> Planted:
    """One of a transaction's partitions got the other marker."""
    run = _flip(logs, alone=False)
    return planted("marker_audit", ["torn", "wrong_outcome"], "marker_audit", **_where(run))


def wrong_outcome(logs: CopiedLogs) -> Planted:
    """The only partition of a transaction got the other marker."""
    run = _flip(logs, alone=True)
    return planted("marker_audit", "wrong_outcome", **_where(run))


def wrong_epoch(logs: CopiedLogs) -> Planted:
    """A version-2 run is closed by a marker with the data's own epoch."""
    for run in reversed(user_runs(logs)):
        rows = logs.rows(run.topic, run.partition)
        marker = rows[run.marker]
        later = [row for row in rows[run.marker + 1 :] if row.producer_id == run.producer_id]
        if not later and marker.epoch == rows[run.data[-1]].epoch + 1:
            rows[run.marker] = marker.set(epoch=marker.epoch - 1)
            logs.save(run.topic, run.partition, rows)
            return planted("marker_audit", "wrong_epoch", **_where(run))
    raise LookupError("no version-2 transaction in this recording")


def early_completion(logs: CopiedLogs) -> Planted:
    """A version-2 marker, named by its epoch, comes five seconds after Complete*."""
    coordinator = Coordinator(logs)
    coordinator.tick_all(LATE_MS)
    coordinator.save()
    for run in reversed(user_runs(logs)):
        rows = logs.rows(run.topic, run.partition)
        is_v2 = rows[run.marker].epoch == rows[run.data[-1]].epoch + 1
        if is_v2 and run.marker == len(rows) - 1:
            rows[-1] = rows[-1].at(rows[-1].time_ms + 5_000)
            logs.save(run.topic, run.partition, rows)
            return planted("marker_audit", "early_completion", "marker_audit", **_where(run))
    raise LookupError("no partition ends with a version-2 marker in this recording")


def other_clock(logs: CopiedLogs) -> Planted:
    """One partition's markers were stamped by a clock that stands forty hours ahead."""
    run = user_runs(logs)[0]
    rows = logs.rows(run.topic, run.partition)
    moved = [row.at(row.time_ms + 40 * HOUR_MS) if row.is_marker else row for row in rows]
    logs.save(run.topic, run.partition, moved)
    return planted("marker_audit", "other_clock", severity="info", topic=run.topic,
                   partition=run.partition)  # fmt: skip


def ambiguous(logs: CopiedLogs) -> Planted:
    """A transaction's marker came twice, and the next one's never: the second may be either's."""
    run, rows = middle_run(logs)
    first = max(
        i for i, row in enumerate(rows[: run.marker])
        if row.is_marker and row.producer_id == run.producer_id
    )  # fmt: skip
    again = rows[first].marked(rows[run.marker].outcome)
    logs.save(run.topic, run.partition, [
        *rows[: first + 1], again, *rows[first + 1 : run.marker], *rows[run.marker + 1 :],
    ])  # fmt: skip
    return planted("marker_audit", "ambiguous", severity="info", topic=run.topic, partition=run.partition)  # fmt: skip
