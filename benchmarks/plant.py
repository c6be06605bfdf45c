"""Plants faults into the plan of a generated cluster; each says what an audit has to find."""

from __future__ import annotations

import numpy as np

from benchmarks import plan
from tests import builders

KINDS = ("hang", "torn", "duplicate", "lost", "zombie")
Expected = dict[str, object]


def plant(
    events: dict[tuple[str, int], plan.PartitionEvents],
    txns: plan.Transactions,
    count: int,
    rng: np.random.Generator,
) -> list[Expected]:
    """Change the events in place, one transactional id a fault.

    Args:
        events: the batches of every data partition.
        count: how many faults, the kinds in turn.

    Returns:
        For each fault its kind, code, class, topic, partition and producer id.
    """
    owners = rng.permutation(np.unique(txns.owner))
    if count > len(owners):
        raise ValueError(f"at most {len(owners)} faults, one for each transactional id")
    expected: list[Expected] = []
    for number, owner in enumerate(owners[:count].tolist()):
        kind = KINDS[number % len(KINDS)]
        mine = np.flatnonzero(txns.owner == owner)
        transaction = int(mine[-1]) if kind == "hang" else int(mine[len(mine) // 2])
        topic, key = _listed(txns, transaction)
        changed, code, name = _apply(kind, events[key], txns, transaction)
        events[key] = changed
        expected.append(
            {"kind": kind, "code": code, "class": name, "topic": topic, "partition": key[1],
             "producer_id": plan.FIRST_PRODUCER_ID + owner,
             "transactional_id": plan.transactional_id(owner)}
        )  # fmt: skip
    return expected


def _listed(txns: plan.Transactions, transaction: int) -> tuple[str, tuple[str, int]]:
    topic = plan.TOPICS[0]
    return topic, (topic, int(txns.partitions[transaction, 0]))


def _apply(
    kind: str, events: plan.PartitionEvents, txns: plan.Transactions, transaction: int
) -> tuple[plan.PartitionEvents, str, str]:
    mine = np.flatnonzero(events.transaction == transaction)
    data, end = mine[:-1], mine[-1]
    keep = np.arange(len(events.kind))
    if kind == "hang":
        return events.take(np.delete(keep, end)), "hanging_transaction", "not_in_transaction"
    if kind == "torn":
        events.outcome[end] = builders.COMMIT + builders.ABORT - events.outcome[end]
        return events, "marker_audit", "torn"
    if kind == "duplicate":
        return events.take(np.insert(keep, end, data[-1])), "duplicate_batch", "exact"
    if kind == "lost":
        return events.take(np.delete(keep, data[1])), "sequence_gap", "lost"
    events.epoch[mine] = np.where(mine == data[-1], txns.epoch[transaction] - 1, events.epoch[mine])
    if events.epoch[data[-1]] < 0:
        events.epoch[data[-1]] = 0
        events.epoch[data[0]] = 1
    return events, "zombie_write", "epoch_regressed"
