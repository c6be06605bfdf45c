"""What befalls a cluster over months, in minutes: upgrades, expiry, exhausted epochs, cleaning, dead leaders.

All of it is legal (`TransactionStateManager.removeExpiredTransactionalIds`, `Cleaner`, KIP-664, KIP-890,
`ProducerStateManager.removeExpiredProducers`, `TransactionMetadata.prepareProducerIdRotation`): nobody may be accused.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests import builders
from tests.property.broker_model import Model
from tests.property.model_clients import consumer, elections, idempotent, transactional
from tests.property.model_types import (
    OUT_OF_ORDER,
    Entry,
    Partition,
    ProducerState,
    TopicPartition,
)

WRAP = 1 << 31
LAST_EPOCHS = 32_761


def users(model: Model) -> list[TopicPartition]:
    """Return the partitions of applications."""
    return sorted(name for name in model.partitions if not name[0].startswith("__"))


def upgrade(model: Model, after_ms: int) -> Iterator[int]:
    """The feature level transaction.version rises to 2; clients follow when they start again."""
    yield after_ms
    model.version = 2


def expiry(model: Model, count: int) -> Iterator[int]:
    """Idle ids get a tombstone; partitions forget idle producers."""
    done = (builders.EMPTY, builders.COMPLETE_COMMIT, builders.COMPLETE_ABORT)
    for _ in range(count):
        yield model.rng.randint(2_000, 12_000)
        idle = [txn for txn in model.transactions.values() if txn.state in done]
        if idle:
            txn = model.rng.choice(idle)
            del model.transactions[txn.transactional_id]
            model.append(txn.home, Entry(
                model.now, model.clock(txn.home), txn.home.leader_epoch, "txn",
                key=builders.txn_key(txn.transactional_id), transactional=False,
                transactional_id=txn.transactional_id,
            ))  # fmt: skip
        for name in users(model):
            known = model.partitions[name].producers
            for producer_id in [p for p, one in known.items() if not one.is_open]:
                if model.rng.random() < 0.2:
                    del known[producer_id]


def wrapping(model: Model, batches: int) -> Iterator[int]:
    """An idempotent producer near the greatest sequence, whose earlier life is gone; it sends batches again."""
    rng = model.rng
    model.next_producer_id += 1
    producer_id, name = model.next_producer_id, rng.choice(users(model))
    sequence, sent = WRAP - rng.randint(1, 8), []
    for _ in range(batches):
        count = rng.randint(1, 4)
        if model.produce(name, producer_id, 0, sequence, count, model.now) == OUT_OF_ORDER:
            if model.has_lost:
                return
            raise AssertionError("the model's wrapping producer was refused")
        sent.append((sequence, count))
        sequence = (sequence + count) % WRAP
        if rng.random() < 0.3:  # within the last five it is known, before that out of order
            model.produce(name, producer_id, 0, *rng.choice(sent), model.now)
        yield rng.randint(1, 300)


def operator(model: Model, count: int) -> Iterator[int]:
    """`kafka-transactions.sh abort` of something that had just ended: an ABORT marker of coordinator epoch 0."""
    for _ in range(count):
        yield model.rng.randint(3_000, 30_000)
        partition = model.partitions[model.rng.choice(users(model))]
        idle = [
            (producer_id, one)
            for producer_id, one in sorted(partition.producers.items())
            if not one.is_open and one.coordinator_epoch == 0
        ]
        if idle:
            producer_id, one = model.rng.choice(idle)
            model.append(partition, Entry(
                model.now, model.clock(partition), partition.leader_epoch, "marker", producer_id,
                one.epoch, outcome=builders.ABORT, coordinator_epoch=0,
            ))  # fmt: skip


def deaths(model: Model, count: int) -> Iterator[int]:
    """A leader dies for good; its last batches reached nobody else and their client sends them to the next leader."""
    for _ in range(count):
        yield model.rng.randint(5_000, 40_000)
        partition = model.partitions[model.rng.choice(users(model))]
        others = [one for one in partition.replicas if one != partition.leader]
        if not others or partition.tails:
            continue
        lost = [
            Entry(model.now, model.now, partition.leader_epoch, "data", 900_000 + at, 0, 0,
                  transactional=False)
            for at in range(model.rng.randint(0, 3))
        ]  # fmt: skip
        partition.tails[partition.leader] = (len(partition.entries), lost)
        partition.leader = model.rng.choice(others)
        partition.leader_epoch += 1


def unclean(model: Model, count: int) -> Iterator[int]:
    """A replica that lags becomes leader (unclean.leader.election.enable): the last data batches are gone for all.

    Their producers are refused (OUT_OF_ORDER_SEQUENCE_NUMBER), abort or raise their epoch and go on.
    """
    for _ in range(count):
        yield model.rng.randint(3_000, 30_000)
        names = users(model)
        for name in model.rng.sample(names, k=len(names)):
            if lose_tail(model, model.partitions[name], model.rng.randint(1, 3)):
                break


def lose_tail(model: Model, partition: Partition, batches: int) -> bool:
    """Make a replica leader that lacks the last batches; False where that would not be clean."""
    keep = len(partition.entries) - batches
    others = [one for one in partition.replicas if one != partition.leader]
    states = after_truncation(partition, keep) if keep > 0 else None
    if not others or partition.tails or states is None:
        return False
    del partition.entries[keep:]
    partition.producers.update(states)
    partition.leader = model.rng.choice(others)
    partition.leader_epoch += 1
    model.has_lost = True
    return True


def after_truncation(partition: Partition, keep: int) -> dict[int, ProducerState] | None:
    """Return what the broker knows of the producers of lost batches; None where the loss would be silent or hang.

    A lost marker leaves a transaction hanging, and a producer that nothing is left of is taken as new: both are
    faults that an audit tells, not the clean life that this model writes.
    """
    lost = partition.entries[keep:]
    if any(one.kind != "data" for one in lost):
        return None
    states = {}
    for producer_id in {one.producer_id for one in lost}:
        kept = [one for one in partition.entries[:keep] if one.producer_id == producer_id]
        if not kept or producer_id not in partition.producers:
            return None
        runs = [one for one in kept if one.kind == "data" and one.epoch == kept[-1].epoch]
        states[producer_id] = ProducerState(
            kept[-1].epoch,
            [(one.sequence, one.count) for one in runs[-5:]],
            partition.producers[producer_id].coordinator_epoch,
            is_open=kept[-1].kind == "data" and kept[-1].transactional,
        )
    return states


def cut_history(model: Model) -> None:
    """Before the first moment: the internal topics were cleaned, ids are near their last epoch."""
    for partition in model.partitions.values():
        partition.base = model.rng.randint(1, 10_000)
    model.first_epoch = model.rng.randint(LAST_EPOCHS, LAST_EPOCHS + 4)


def hard_life(
    seed: int, *, transactions: int = 10, duration_ms: int = 90_000, moving: bool = False
) -> Model:
    """Return a cluster after a hard but correct life; `model.cleaning` and `model.deleting` tell how to write it."""
    rng = random.Random(seed)
    version = rng.choice([0, 1, 2])
    model = Model(seed, version=version, brokers=rng.choice([1, 2, 3]), moving=moving)
    if rng.random() < 0.4:
        cut_history(model)
    model.cleaning = rng.choice([0.0, 0.0, 0.5, 1.0])
    model.deleting = rng.choice([0.0, 0.0, 0.6])
    for number in range(rng.randint(2, 4)):
        steps = transactional(
            model, f"app-{number}", version=version, transactions=transactions,
            event_time=rng.random() < 0.3, follows=True,
        )  # fmt: skip
        model.spawn(steps, rng.randint(0, 2_000))
    model.spawn(idempotent(model, 30))
    model.spawn(consumer(model, "plain", 20))
    hardships = (
        (0.5, elections(model, rng.randint(1, 5))),
        (0.4, upgrade(model, rng.randint(1, duration_ms // 2))),
        (0.4, expiry(model, rng.randint(1, 6))),
        (0.4, wrapping(model, 25)),
        (0.3, operator(model, rng.randint(1, 3))),
        (0.4, deaths(model, rng.randint(1, 2))),
        (0.4, unclean(model, rng.randint(1, 4))),
    )
    for chance, steps in hardships:
        if rng.random() < chance:
            model.spawn(steps)
    model.run(duration_ms)
    return model
