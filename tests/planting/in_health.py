"""Weaknesses in how transactions are used: `slow_transaction`, `fencing_storm`, `id_hygiene`."""

from __future__ import annotations

from dataclasses import replace

from tests import builders
from tests.planting.copied import CopiedLogs
from tests.planting.expected import Planted, planted
from tests.planting.transactions import COMPLETE, TOPIC, Coordinator, State, home, runs

STORM, BURN, MANY = 12, 130, 520
SUCCESSOR = 99_500


def _found(code: str, name: str, state: State) -> Planted:
    return planted(code, name, "fencing_storm", "id_hygiene", severity="minor",
                   topic=TOPIC, transactional_id=state.transactional_id)  # fmt: skip


def _last(coordinator: Coordinator) -> list[State]:
    return coordinator.last(coordinator.ids()[0])


def _begun_earlier(logs: CopiedLogs, share: float, least_ms: int) -> State:
    """Moves the Ongoing records of a transaction back in time."""
    coordinator = Coordinator(logs)
    states = _last(coordinator)
    by_ms = max(int(states[0].timeout_ms * share), least_ms)
    for state in states:
        if state.state == builders.ONGOING:
            rows = coordinator.rows[state.partition]
            rows[state.index] = rows[state.index].at(state.time_ms - by_ms)
    coordinator.save()
    return states[0]


def long_running(logs: CopiedLogs) -> Planted:
    """A transaction is open for more than a minute."""
    return _found("slow_transaction", "long_running", _begun_earlier(logs, 0.5, 70_000))


def near_timeout(logs: CopiedLogs) -> Planted:
    """A transaction is committed shortly before its timeout."""
    return _found("slow_transaction", "near_timeout", _begun_earlier(logs, 0.9, 0))


def slow_markers(logs: CopiedLogs) -> Planted:
    """Complete* comes six seconds after Prepare*."""
    coordinator = Coordinator(logs)
    state = _last(coordinator)[-1]
    assert state.state in COMPLETE
    rows = coordinator.rows[state.partition]
    rows[state.index] = rows[state.index].at(state.time_ms + 6_000)
    coordinator.save()
    return _found("slow_transaction", "slow_markers", state)


def _again(logs: CopiedLogs, count: int, *, aborted: bool = False) -> State:
    """An id's instances call InitProducerId again and again, the other one's transaction open or not."""
    coordinator = Coordinator(logs)
    last = _last(coordinator)[-1]
    at, now, partition = last.index + 1, last.time_ms, last.partition
    for number in range(1, count + 1):
        epoch = last.epoch + number
        steps = [(builders.EMPTY, epoch)]
        if aborted:
            steps = [(builders.ONGOING, epoch - 1), (builders.PREPARE_ABORT, epoch),
                     (builders.COMPLETE_ABORT, epoch)]  # fmt: skip
        for code, of_step in steps:
            now += 5
            state = replace(last, state=code, epoch=of_step, start_ms=now, last_update_ms=now,
                            partitions=None if code == builders.EMPTY else ())  # fmt: skip
            coordinator.insert(partition, at, last.transactional_id, state.value(), now)
            at += 1
    coordinator.save()
    return last


def storm(logs: CopiedLogs) -> Planted:
    """A dozen instances start within a moment."""
    return _found("fencing_storm", "storm", _again(logs, STORM))


def epoch_burn(logs: CopiedLogs) -> Planted:
    """An instance starts so often that the epochs will be used up."""
    return _found("fencing_storm", "epoch_burn", _again(logs, BURN))


def id_reuse_race(logs: CopiedLogs) -> Planted:
    """Two instances abort each other's transactions."""
    return _found("fencing_storm", "id_reuse_race", _again(logs, 4, aborted=True))


def unbounded_ids(logs: CopiedLogs) -> Planted:
    """An application takes a new id for each transaction."""
    coordinator = Coordinator(logs)
    last = _last(coordinator)[-1]
    now = max(state.time_ms for state in coordinator.states)
    count = coordinator.partition_count()
    for number in range(MANY):
        name = f"order-{number}"
        partition = home(name, count)
        for code in (builders.EMPTY, builders.ONGOING, builders.PREPARE_COMMIT,
                     builders.COMPLETE_COMMIT):  # fmt: skip
            now += 1
            state = replace(last, state=code, producer_id=50_000 + number, epoch=0, start_ms=now,
                            last_update_ms=now, partitions=None if code == builders.EMPTY else ())  # fmt: skip
            at = len(coordinator.rows[partition])
            coordinator.insert(partition, at, name, state.value(), now)
    coordinator.save()
    return planted("id_hygiene", "unbounded_ids", severity="minor", transactional_id="order-0")


def idle_expired(logs: CopiedLogs) -> Planted:
    """An id expires and is used again, under another producer id."""
    coordinator = Coordinator(logs)
    last = _last(coordinator)[-1]
    fresh = replace(last, state=builders.EMPTY, producer_id=99_500, epoch=0, partitions=None)
    at, now = last.index + 1, last.time_ms
    coordinator.insert(last.partition, at, last.transactional_id, None, now + 5)
    coordinator.insert(last.partition, at + 1, last.transactional_id, fresh.value(), now + 10)
    coordinator.save()
    return _found("id_hygiene", "idle_expired", last)


def timeout_above_max(logs: CopiedLogs) -> Planted:
    """A producer asked for an hour."""
    coordinator = Coordinator(logs)
    states = coordinator.of(coordinator.ids()[0])
    for state in states:
        coordinator.change(state, timeout_ms=3_600_000)
    coordinator.save()
    return _found("id_hygiene", "timeout_above_max", states[0])


def interleaved_producers(logs: CopiedLogs) -> Planted:
    """An id expired and came back under another producer id; its old instance still writes after the new one."""
    coordinator = Coordinator(logs)
    last = _last(coordinator)[-1]
    mine = [one for one in runs(logs) if one.producer_id == last.producer_id and one.marker >= 0]
    run = next(one for one in reversed(mine) if not one.topic.startswith("ctp"))
    place, now = (run.topic, run.partition), last.time_ms
    fresh = replace(last, state=builders.EMPTY, producer_id=SUCCESSOR, epoch=0, partitions=None)
    steps: list[bytes | None] = [None, fresh.value()]
    for code in (builders.ONGOING, builders.PREPARE_COMMIT, builders.COMPLETE_COMMIT):
        listed = () if code == builders.COMPLETE_COMMIT else (place,)
        steps.append(replace(fresh, state=code, partitions=listed, start_ms=now + 15,
                             last_update_ms=now + 15).value())  # fmt: skip
    for number, value in enumerate(steps):
        at_ms = now + 5 * (number + 1) + 20 * (number > 3)
        coordinator.insert(
            last.partition, last.index + 1 + number, last.transactional_id, value, at_ms
        )
    coordinator.save()
    rows = logs.rows(*place)
    old = rows[run.data[-1]]
    data = old.set(producer_id=SUCCESSOR, epoch=0, sequence=0).at(now + 18)
    marker = rows[run.marker].set(producer_id=SUCCESSOR, epoch=0).at(now + 30)
    late = old.set(sequence=old.sequence + old.delta + 1, attributes=old.attributes & ~0x10)
    rows += [replace(row, gap=0) for row in (data, marker, late.at(now + 60))]
    saved = logs.save(*place, rows)
    return planted("id_hygiene", "interleaved_producers", "id_hygiene/idle_expired", "content_duplicate",
                   severity="minor", topic=run.topic, partition=run.partition,
                   producer_id=last.producer_id, first_offset=saved[-3].base_offset)  # fmt: skip
