"""Faults planted into the model's cluster before it is copied; each says what must be found.

Every fault takes a cluster after its life and changes it in one place. It returns None when this
life offers no place for it.
"""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from tests.property import model_coordinator_faults as coordinator
from tests.property.broker_model import Model
from tests.property.model_expected import Expected, expect
from tests.property.model_types import Partition

Fault = Callable[[Model], Expected | None]


def _data_partitions(model: Model) -> list[Partition]:
    out = [part for name, part in sorted(model.partitions.items()) if not name[0].startswith("__")]
    model.rng.shuffle(out)
    return out


def _offset(partition: Partition, at: int) -> int:
    return sum(entry.count for entry in partition.entries[:at])


def _closed_runs(partition: Partition) -> list[tuple[list[int], int]]:
    """Return (rows of data, row of the marker) of every closed run."""
    runs: list[tuple[list[int], int]] = []
    now_open: dict[int, list[int]] = {}
    for row, entry in enumerate(partition.entries):
        if entry.kind == "marker":
            data = now_open.pop(entry.producer_id, [])
            if data:
                runs.append((data, row))
        elif entry.kind == "data" and entry.transactional:
            now_open.setdefault(entry.producer_id, []).append(row)
    return runs


def _pick(
    model: Model, wanted: Callable[[Partition, list[int], int], bool]
) -> tuple[Partition, list[int], int] | None:
    found = [
        (part, data, end)
        for part in _data_partitions(model)
        for data, end in _closed_runs(part)
        if wanted(part, data, end)
    ]
    return model.rng.choice(found) if found else None


def _is_last(partition: Partition, end: int) -> bool:
    pid = partition.entries[end].producer_id
    return all(entry.producer_id != pid for entry in partition.entries[end + 1 :])


def drop_last_marker(model: Model) -> Expected | None:
    """A decided transaction whose marker never came to one partition: it hangs."""
    cut = model.now - 60_000
    place = _pick(model, lambda p, d, e: _is_last(p, e) and p.entries[e].true_ms < cut)
    if place is None:
        return None
    part, data, end = place
    first = _offset(part, data[0])
    pid = part.entries[end].producer_id
    del part.entries[end]
    return expect(
        "hanging_transaction", ["not_in_transaction", "epoch_mismatch"], part,
        {"code": "marker_audit", "class": "missing"}, first_offset=first, producer_id=pid,
    )  # fmt: skip


def flip_marker(model: Model) -> Expected | None:
    """One partition got ABORT, the coordinator decided COMMIT (or the other way round)."""
    place = _pick(model, lambda p, d, e: _is_last(p, e))
    if place is None:
        return None
    part, _, end = place
    entry = part.entries[end]
    part.entries[end] = entry._replace(outcome=1 - entry.outcome)
    return expect("marker_audit", ["torn", "wrong_outcome"], part, producer_id=entry.producer_id)


def repeat_batch(model: Model) -> Expected | None:
    """A batch is in the log twice."""
    place = _pick(model, lambda p, d, e: True)
    if place is None:
        return None
    part, data, _ = place
    part.entries.insert(data[-1] + 1, part.entries[data[-1]])
    return expect("duplicate_batch", "exact", part,
                   producer_id=part.entries[data[-1]].producer_id)  # fmt: skip


def overlap_batch(model: Model) -> Expected | None:
    """A batch repeats the end of the one before."""
    place = _pick(model, lambda p, d, e: p.entries[d[-1]].count > 1)
    if place is None:
        return None
    part, data, _ = place
    entry = part.entries[data[-1]]
    again = entry._replace(sequence=entry.sequence + 1, count=entry.count - 1)
    part.entries.insert(data[-1] + 1, again)
    return expect("duplicate_batch", "overlap", part, producer_id=entry.producer_id)


def lose_batch(model: Model) -> Expected | None:
    """A batch in the middle of a run is gone."""
    place = _pick(model, lambda p, d, e: len(d) > 2)
    if place is None:
        return None
    part, data, _ = place
    pid = part.entries[data[1]].producer_id
    del part.entries[data[1]]
    return expect("sequence_gap", "lost", part, producer_id=pid)


def lower_epoch(model: Model) -> Expected | None:
    """A fenced instance writes into the open run of its successor."""
    place = _pick(model, lambda p, d, e: p.entries[d[-1]].epoch > 0)
    if place is None:
        return None
    part, data, _ = place
    entry = part.entries[data[-1]]
    part.entries.insert(data[-1] + 1, entry._replace(epoch=entry.epoch - 1, sequence=900, count=1))
    return expect(
        "zombie_write", "epoch_regressed", part, {"code": "sequence_gap"},
        {"code": "zombie_write", "class": "after_fence"}, producer_id=entry.producer_id,
    )  # fmt: skip


def orphan(model: Model) -> Expected | None:
    """An open run of a producer id that no transactional id owns."""
    place = _pick(model, lambda p, d, e: p.entries[e].true_ms < model.now - 60_000)
    if place is None:
        return None
    part, data, _ = place
    entry = part.entries[data[-1]]._replace(producer_id=77_777, epoch=0, sequence=0)
    part.entries.insert(data[-1] + 1, entry)
    return expect("hanging_transaction", "orphan_producer", part, producer_id=77_777,
                   first_offset=_offset(part, data[-1] + 1))  # fmt: skip


def late_write(model: Model) -> Expected | None:
    """A batch arrives after its transaction's marker and opens a run nobody will close."""
    place = _pick(
        model, lambda p, d, e: _is_last(p, e) and p.entries[e].true_ms < model.now - 60_000
    )
    if place is None:
        return None
    part, data, end = place
    entry, marker = part.entries[data[-1]], part.entries[end]
    is_v2 = marker.epoch != entry.epoch
    late = entry._replace(
        sequence=0 if is_v2 else entry.sequence + entry.count, epoch=marker.epoch,
        true_ms=marker.true_ms, leader_epoch=marker.leader_epoch,
    )  # fmt: skip
    part.entries.insert(end + 1, late)
    return expect(
        "hanging_transaction", ["not_in_transaction", "epoch_mismatch"], part,
        {"code": "write_outside_transaction"}, {"code": "zombie_write", "class": "after_fence"},
        producer_id=entry.producer_id, first_offset=_offset(part, end + 1),
    )  # fmt: skip


def _lonely_marker(model: Model, outcome: int) -> tuple[Partition, int] | None:
    def quiet(part: Partition, data: list[int], end: int) -> bool:
        entry = part.entries[end]
        others = [
            other for partition in model.partitions.values() for other in partition.entries
            if other.producer_id == entry.producer_id
        ]  # fmt: skip
        return max(other.true_ms for other in others) < model.now - 45_000

    place = _pick(model, quiet)
    if place is None:
        return None
    part, _, end = place
    entry = part.entries[end]
    when = model.now - 35_000
    at = sum(other.true_ms <= when for other in part.entries)
    last = part.entries[at - 1]
    part.entries.insert(at, entry._replace(
        true_ms=when, time_ms=when + model.ahead_ms(part.leader, when), outcome=outcome,
        leader_epoch=last.leader_epoch,
    ))  # fmt: skip
    return part, at


def unexpected_commit(model: Model) -> Expected | None:
    """A COMMIT marker of which the coordinator knows nothing."""
    place = _lonely_marker(model, builders.COMMIT)
    return place and expect("marker_audit", "unexpected", place[0])


def manual_abort(model: Model) -> Expected | None:
    """An ABORT marker of an operator: information, no fault."""
    place = _lonely_marker(model, builders.ABORT)
    if place is None:
        return None
    topic, number = place[0].name
    return Expected({"code": "manual_abort", "topic": topic, "partition": number})


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        drop_last_marker, flip_marker, repeat_batch, overlap_batch, lose_batch, lower_epoch, orphan,
        late_write, unexpected_commit, manual_abort, coordinator.skip_prepare,
        coordinator.dead_state, coordinator.change_timeout,
        coordinator.share_producer_id, coordinator.wrong_partition, coordinator.drop_complete,
    )
}  # fmt: skip
