"""What happens in a generated cluster: every batch of every partition as rows of arrays.

A plan is legal by the rules of Kafka's coordinator and brokers: Empty once for each id, Ongoing for
each new partition, data, Prepare*, one marker in each listed partition, Complete*, all on one
clock, a transaction of an id never before the end of the one before. Pure numpy, no files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TOPICS = ("orders", "events")
START_MS = 1_795_000_000_000
PERIOD_MS = 1_000
FIRST_PRODUCER_ID = 1_000
DATA, MARKER = 0, 1
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Size:
    """How large a cluster is wanted.

    Attributes:
        transactions: over all ids.
        ids: transactional ids, one producer each.
        batches_per_transaction: data batches, half of them to each of its two partitions.
        data_partitions: over both topics, an even number.
        coordinator_partitions: partitions of `__transaction_state`.
        style: `tv0`, `tv2` or `mixed` (a version-2 cluster where every second client is old).
        value_bytes: size of each record's value.
        abort_share: share of transactions that end with ABORT.
    """

    transactions: int = 200_000
    ids: int = 400
    batches_per_transaction: int = 8
    data_partitions: int = 8
    coordinator_partitions: int = 4
    style: str = "mixed"
    value_bytes: int = 45
    abort_share: float = 0.1


@dataclass
class Transactions:
    """One row a transaction, ordered by id and time; `partitions` has one column a topic."""

    owner: Ints
    number: Ints
    is_v2: NDArray[np.bool_]
    epoch: Ints
    end_epoch: Ints
    is_commit: NDArray[np.bool_]
    start_ms: Ints
    prepare_ms: Ints
    complete_ms: Ints
    partitions: Ints
    marker_ms: Ints


@dataclass
class PartitionEvents:
    """One row a batch of one data partition, in log order.

    Sequence and outcome are -1 where the kind has none; `transaction` is the row in `Transactions`.
    """

    kind: Ints
    transaction: Ints
    producer_id: Ints
    epoch: Ints
    sequence: Ints
    outcome: Ints
    time_ms: Ints

    def take(self, rows: Ints | NDArray[np.bool_]) -> PartitionEvents:
        """Return the given rows as new events."""
        return PartitionEvents(**{name: column[rows] for name, column in vars(self).items()})


def plan_transactions(size: Size, rng: np.random.Generator) -> Transactions:
    """Decide owners, times, partitions and outcomes of all transactions."""
    per_id = -(-size.transactions // size.ids)
    owner = np.repeat(np.arange(size.ids), per_id)[: size.transactions]
    number = np.tile(np.arange(per_id), size.ids)[: size.transactions]
    count = len(owner)
    phase = np.sort(rng.integers(0, PERIOD_MS, size.ids))
    start = START_MS + 5_000 + phase[owner] + number * PERIOD_MS + rng.integers(0, 100, count)
    prepare = start + rng.integers(100, 600, count)
    marker = prepare[:, None] + rng.integers(1, 9, (count, len(TOPICS)))
    is_v2 = np.full(count, size.style == "tv2")
    if size.style == "mixed":
        is_v2 = owner % 2 == 0
    epoch = np.where(is_v2, number, 0)
    return Transactions(
        owner=owner, number=number, is_v2=is_v2, epoch=epoch, end_epoch=epoch + is_v2,
        is_commit=rng.random(count) >= size.abort_share, start_ms=start, prepare_ms=prepare,
        complete_ms=marker.max(axis=1) + rng.integers(1, 5, count),
        partitions=rng.integers(0, size.data_partitions // len(TOPICS), (count, len(TOPICS))),
        marker_ms=marker,
    )  # fmt: skip


def _running_count(*keys: Ints) -> Ints:
    """Return for each row how many rows with the same keys come before it."""
    order = np.lexsort(keys[::-1])
    changed = np.zeros(len(order), dtype=bool)
    for key in keys:
        changed[1:] |= key[order][1:] != key[order][:-1]
    starts = np.flatnonzero(changed)
    base = np.zeros(len(order), dtype=np.int64)
    base[starts] = starts
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.arange(len(order)) - np.maximum.accumulate(base)
    return result


def plan_partition(
    txns: Transactions, topic: int, partition: int, size: Size, rng: np.random.Generator
) -> PartitionEvents:
    """Return the batches of one data partition in log order."""
    listed = np.flatnonzero(txns.partitions[:, topic] == partition)
    each = size.batches_per_transaction // len(TOPICS)
    of_data = np.repeat(listed, each)
    span = (txns.prepare_ms - txns.start_ms)[of_data] - 20
    time = txns.start_ms[of_data] + 10 + (rng.random(len(of_data)) * span).astype(np.int64)
    transaction = np.concatenate([of_data, listed])
    kind = np.concatenate([np.full(len(of_data), DATA), np.full(len(listed), MARKER)])
    times = np.concatenate([time, txns.marker_ms[listed, topic]])
    order = np.lexsort((kind, times))
    transaction, kind, times = transaction[order], kind[order], times[order]
    is_data = kind == DATA
    sequence = np.full(len(kind), -1, dtype=np.int64)
    of_data = transaction[is_data]
    sequence[is_data] = _running_count(txns.owner[of_data], txns.epoch[of_data])
    return PartitionEvents(
        kind=kind, transaction=transaction,
        producer_id=FIRST_PRODUCER_ID + txns.owner[transaction],
        epoch=np.where(is_data, txns.epoch[transaction], txns.end_epoch[transaction]),
        sequence=sequence,
        outcome=np.where(is_data, -1, txns.is_commit[transaction].astype(np.int64)),
        time_ms=times,
    )  # fmt: skip


def transactional_id(owner: int) -> str:
    """Return the id of an owner; all have one length."""
    return f"bench-txn-{owner:06d}"


def coordinator_partition(transactional_id_text: str, partitions: int) -> int:
    """Return abs(Java's `String.hashCode`) modulo the partition count (plain ASCII ids)."""
    value = 0
    for char in transactional_id_text:
        value = (31 * value + ord(char)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) else abs(signed) % partitions
