"""Faults in `__transaction_state`, gaps: detections 6 and 9."""

from __future__ import annotations

from dataclasses import replace

from tests import builders
from tests.planting.copied import CopiedLogs
from tests.planting.expected import Planted, planted
from tests.planting.in_data import LATE_MS, middle_run, user_runs
from tests.planting.transactions import PREPARE, TOPIC, Coordinator, State, home

OFFSETS = "__consumer_offsets"


def _found(name: str | list[str], state: State, *may: str) -> Planted:
    return planted("coordinator_state", name, *may, topic=TOPIC, partition=state.partition,
                   transactional_id=state.transactional_id)  # fmt: skip


def _busiest(coordinator: Coordinator) -> list[State]:
    return coordinator.of(coordinator.ids()[0])


def illegal_transition(logs: CopiedLogs) -> Planted:
    """PrepareCommit is gone: Ongoing becomes CompleteCommit."""
    coordinator = Coordinator(logs)
    states = _busiest(coordinator)
    state = next(s for s in states[len(states) // 2 :] if s.state in PREPARE)
    coordinator.drop(state)
    coordinator.save()
    return _found("illegal_transition", state, "marker_audit", "write_outside_transaction",
                  "coordinator_state/epoch_rule")  # fmt: skip


def partition_set_shrank(logs: CopiedLogs) -> Planted:
    """An Ongoing record lists less than the one before."""
    coordinator = Coordinator(logs)
    states = _busiest(coordinator)
    state = next(s for s in states[len(states) // 2 :]
                 if s.state == builders.ONGOING and len(s.partitions or ()) > 1)  # fmt: skip
    less = replace(state, partitions=(state.partitions or ())[:1])
    coordinator.insert(state.partition, state.index + 1, state.transactional_id, less.value(),
                       state.time_ms)  # fmt: skip
    coordinator.save()
    return _found("partition_set_shrank", state)


def epoch_rule(logs: CopiedLogs) -> Planted:
    """Complete* carries another epoch than its Prepare*."""
    coordinator = Coordinator(logs)
    state = _busiest(coordinator)[-1]
    coordinator.change(state, epoch=state.epoch + 1)
    coordinator.save()
    return _found("epoch_rule", state)


def impossible_state(logs: CopiedLogs) -> Planted:
    """Dead is on disk, where it is never written."""
    coordinator = Coordinator(logs)
    state = _busiest(coordinator)[-1]
    dead = replace(state, state=builders.DEAD)
    coordinator.insert(state.partition, state.index + 1, state.transactional_id, dead.value(),
                       state.time_ms)  # fmt: skip
    coordinator.save()
    return _found("impossible_state_on_disk", state, "coordinator_state/illegal_transition")


def _new_id(logs: CopiedLogs, *, right: bool, producer_id: int | None) -> State:
    coordinator = Coordinator(logs)
    near = _busiest(coordinator)[-1]
    count = coordinator.partition_count()
    name = next(f"planted-{n}" for n in range(999)
                if (home(f"planted-{n}", count) == near.partition) == right)  # fmt: skip
    state = replace(near, transactional_id=name, state=builders.EMPTY, partitions=None, start_ms=-1,
                    epoch=0, producer_id=producer_id or near.producer_id, client_version=None,
                    last_update_ms=near.time_ms)  # fmt: skip
    coordinator.insert(near.partition, near.index + 1, name, state.value(), near.time_ms)
    coordinator.save()
    return state


def wrong_partition(logs: CopiedLogs) -> Planted:
    """A record lies in a partition that its id does not hash to."""
    return _found("wrong_partition", _new_id(logs, right=False, producer_id=888_888))


def producer_id_shared(logs: CopiedLogs) -> Planted:
    """A second id holds a producer id (KAFKA-15552)."""
    state = _new_id(logs, right=True, producer_id=None)
    return planted("coordinator_state", "producer_id_shared", producer_id=state.producer_id)


def timeout_changed(logs: CopiedLogs) -> Planted:
    """The timeout changes between Ongoing and Prepare*."""
    coordinator = Coordinator(logs)
    states = coordinator.last(coordinator.ids()[0])
    for state in states:
        if state.state != builders.ONGOING:
            coordinator.change(state, timeout_ms=state.timeout_ms + 1_234)
    coordinator.save()
    return _found("timeout_changed", states[-1])


def prepare_with_all_markers(logs: CopiedLogs) -> Planted:
    """Every marker is there, Complete* never came, the coordinator goes on for two minutes."""
    coordinator = Coordinator(logs)
    state = _busiest(coordinator)[-1]
    coordinator.drop(state)
    coordinator.tick(state.partition, LATE_MS)
    coordinator.save()
    return _found("prepare_with_all_markers", state)


def double_epoch_bump(logs: CopiedLogs) -> Planted:
    """Fencing took two epochs at once (KAFKA-19367): PrepareAbort with epoch + 2."""
    coordinator = Coordinator(logs)
    for owner in coordinator.ids():
        states = coordinator.last(owner)
        listed = next((s.partitions or () for s in states if s.state in PREPARE), ())
        mine = [r for r in user_runs(logs) if r.producer_id == states[0].producer_id]
        last = {(r.topic, r.partition): r for r in mine}
        if states[0].client_version != 2 or any(name not in last for name in listed):
            continue
        for state in states:
            if state.state != builders.ONGOING:
                ended = (
                    builders.PREPARE_ABORT if state.state in PREPARE else builders.COMPLETE_ABORT
                )
                coordinator.change(state, epoch=state.epoch + 1, state=ended)
        coordinator.save()
        for name in listed:
            rows, at = logs.rows(*name), last[name].marker
            rows[at] = rows[at].marked(builders.ABORT, epoch=rows[at].epoch + 1)
            logs.save(*name, rows)
        return _found(["double_epoch_bump", "epoch_rule"], states[-1])
    raise LookupError("no version-2 transaction in this recording")


def lost_batch(logs: CopiedLogs) -> Planted:
    """A batch in the middle of a run is gone."""
    run, rows = middle_run(logs, least=3)
    del rows[run.data[1]]
    logs.save(run.topic, run.partition, rows)
    return planted("sequence_gap", "lost", topic=run.topic, partition=run.partition,
                   producer_id=run.producer_id)  # fmt: skip
