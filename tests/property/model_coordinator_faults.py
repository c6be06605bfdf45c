"""Faults in the coordinator's records of the model's cluster; as in `model_faults`."""

from __future__ import annotations

import struct
from itertools import pairwise

from tests import builders
from tests.property.broker_model import Model
from tests.property.model_expected import Expected, expect
from tests.property.model_types import TXN_TOPIC, Entry, Partition

VALUE_FIELDS = {
    "producer_id": (2, ">q"),
    "epoch": (10, ">h"),
    "timeout_ms": (12, ">i"),
    "state": (16, ">b"),
}


def patch_value(value: bytes, **fields: int) -> bytes:
    """Return a TransactionLogValue (v0 or v1) with numbers before the partitions changed."""
    out = bytearray(value)
    for name, number in fields.items():
        at, form = VALUE_FIELDS[name]
        struct.pack_into(form, out, at, number)
    return bytes(out)


def _coordinator_row(model: Model, *states: int, old_ms: int = 0) -> tuple[Partition, int] | None:
    found = [
        (part, row)
        for name, part in sorted(model.partitions.items())
        if name[0] == TXN_TOPIC
        for row, entry in enumerate(part.entries)
        if entry.state in states and entry.true_ms < model.now - old_ms
    ]
    return model.rng.choice(found) if found else None


def _change(model: Model, name: str | list[str], of: int, **fields: int) -> Expected | None:
    place = _coordinator_row(model, of)
    if place is None:
        return None
    part, row = place
    entry = part.entries[row]
    changed = patch_value(entry.value or b"", **fields)
    part.entries[row] = entry._replace(value=changed)
    return expect(
        "coordinator_state", name, part,
        {"code": "coordinator_state", "class": "illegal_transition"},
        transactional_id=entry.transactional_id,
    )  # fmt: skip


def skip_prepare(model: Model) -> Expected | None:
    """Ongoing becomes CompleteCommit without PrepareCommit."""
    found = _coordinator_row(model, builders.PREPARE_COMMIT)
    if found is None:
        return None
    part, row = found
    owner = part.entries[row].transactional_id
    rows = [r for r, e in enumerate(part.entries) if e.transactional_id == owner]
    at = rows.index(row)
    around = [part.entries[r].state for r in rows[at - 1 : at + 2]]
    if around != [builders.ONGOING, builders.PREPARE_COMMIT, builders.COMPLETE_COMMIT]:
        return None
    del part.entries[row]
    return expect("coordinator_state", "illegal_transition", part, {"code": "marker_audit"},
                   {"code": "write_outside_transaction"},
                   {"code": "coordinator_state", "class": "epoch_rule"},
                   transactional_id=owner)  # fmt: skip


def dead_state(model: Model) -> Expected | None:
    """A state that is never written."""
    return _change(model, ["impossible_state_on_disk"], builders.EMPTY, state=builders.DEAD)


def change_timeout(model: Model) -> Expected | None:
    """The timeout changes inside a transaction."""
    return _change(model, "timeout_changed", builders.PREPARE_COMMIT, timeout_ms=12_345)


def share_producer_id(model: Model) -> Expected | None:
    """Two transactional ids hold one producer id (KAFKA-15552)."""
    place = _coordinator_row(model, builders.ONGOING)
    if place is None:
        return None
    part, row = place
    entry = part.entries[row]
    name = next(f"twin-{n}" for n in range(99) if model.home(f"twin-{n}") == part.name[1])
    value = builders.txn_value(builders.EMPTY, producer_id=entry.producer_id, partitions=None,
                               last_update_ms=entry.time_ms)  # fmt: skip
    twin = Entry(entry.true_ms, entry.time_ms, entry.leader_epoch, "txn", entry.producer_id, 0,
                 key=builders.txn_key(name), value=value, transactional=False,
                 transactional_id=name, state=builders.EMPTY)  # fmt: skip
    part.entries.insert(row + 1, twin)
    return Expected({"code": "coordinator_state", "class": "producer_id_shared"})


def wrong_partition(model: Model) -> Expected | None:
    """A record lies in a partition that its id does not hash to."""
    place = _coordinator_row(model, builders.ONGOING)
    if place is None:
        return None
    part, row = place
    entry = part.entries[row]
    name = next(f"lost-{n}" for n in range(99) if model.home(f"lost-{n}") != part.name[1])
    value = builders.txn_value(builders.EMPTY, producer_id=66_666, partitions=None,
                               last_update_ms=entry.time_ms)  # fmt: skip
    part.entries.insert(row + 1, entry._replace(
        producer_id=66_666, epoch=0, key=builders.txn_key(name), value=value,
        transactional_id=name, state=builders.EMPTY,
    ))  # fmt: skip
    return expect("coordinator_state", "wrong_partition", part, transactional_id=name)


def drop_complete(model: Model) -> Expected | None:
    """Every marker is there, Complete* never came, the coordinator goes on."""
    last: dict[str, tuple[Partition, int]] = {}
    for name, part in sorted(model.partitions.items()):
        if name[0] == TXN_TOPIC:
            last.update({e.transactional_id: (part, row) for row, e in enumerate(part.entries)})
    done = (builders.COMPLETE_COMMIT, builders.COMPLETE_ABORT)
    for owner, (part, row) in sorted(last.items()):
        entry, later = part.entries[row], part.entries[row + 1 :]
        times = [e.time_ms for e in [entry, *later] if e.leader_epoch == entry.leader_epoch]
        gaps = [after - before for before, after in pairwise(times)]
        is_seen = sum(gaps) > 62_000 and sum(gaps) - max(gaps) > 13_000
        if entry.state in done and is_seen:
            del part.entries[row]
            return expect("coordinator_state", "prepare_with_all_markers", part,
                           transactional_id=owner)  # fmt: skip
    return None
