"""Clients of the model: what applications do to a cluster in ordinary and in hard life."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from tests import builders
from tests.property.broker_model import Model
from tests.property.model_types import (
    CONCURRENT,
    FENCED,
    INVALID_STATE,
    OFFSETS_TOPIC,
    OK,
    OUT_OF_ORDER,
    TopicPartition,
)

Steps = Generator[int, None, str]


@dataclass
class Habits:
    """How often things go wrong, each a probability for one transaction.

    Attributes:
        abort: the application aborts.
        pause: it sleeps past its timeout and tries to go on.
        crash: it dies inside the transaction and starts again with the same id.
        retry: a batch is sent twice.
        offsets: it commits a group's offsets with its transaction.
        empty: a transaction that adds a partition and sends nothing to it.
    """

    abort: float = 0.15
    pause: float = 0.03
    crash: float = 0.06
    retry: float = 0.1
    offsets: float = 0.4
    empty: float = 0.05


@dataclass
class Session:
    """One life of a producer: its id, epoch and next sequences."""

    owner: str
    version: int
    producer_id: int
    epoch: int
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    def go_on(self, producer_id: int, epoch: int) -> None:
        """Take id and epoch of the next transaction; a new one starts sequences again."""
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch, self.sequences = producer_id, epoch, {}


def transactional(
    model: Model,
    owner: str,
    *,
    version: int,
    transactions: int,
    habits: Habits | None = None,
    event_time: bool = False,
    follows: bool = False,
) -> Iterator[int]:
    """A transactional application: `transactions` rounds over several lives.

    Args:
        follows: each life takes the version of the cluster, once that is 2.
        version: the client's transaction version; 2 needs a cluster of version 2.
        event_time: CreateTime is the event's time, far from any clock, as Kafka Streams has it.
    """
    rng, habits = model.rng, habits or Habits()
    timeout = rng.choice([3_000, 20_000, 60_000])
    done, position = 0, 0
    while done < transactions:
        error, producer_id, epoch = CONCURRENT, -1, -1
        version = 2 if follows and model.version == 2 else version
        while error == CONCURRENT:
            error, producer_id, epoch = model.init_producer(
                owner, version=version, timeout_ms=timeout
            )
            yield rng.randint(5, 40)
        session = Session(owner, version, producer_id, epoch)
        alive = True
        while alive and done < transactions:
            yield rng.randint(1, 400)
            result = yield from _transaction(model, session, habits, event_time, position, timeout)
            done += 1
            position += 10 if result == "commit" else 0
            alive = result in ("commit", "abort")
        yield rng.randint(1, 3_000)


def _transaction(
    model: Model, session: Session, habits: Habits, event_time: bool, position: int, timeout_ms: int
) -> Steps:
    rng = model.rng
    names = sorted(name for name in model.partitions if not name[0].startswith("__"))
    chosen = rng.sample(names, k=rng.randint(1, min(3, len(names))))
    if rng.random() < habits.empty:
        error = yield from _add(model, session, rng.choice(names))
        if error != OK:
            return error
    for name in chosen * rng.randint(1, 3):
        error = yield from _add(model, session, name)
        if error != OK:
            return error
        error = yield from _send(model, session, name, habits, event_time)
        if error != OK:
            return error
    if rng.random() < habits.offsets:
        group = f"group-{session.owner}"
        error = yield from _add(model, session, (OFFSETS_TOPIC, model.home(group)))
        if error != OK:
            return error
        source = names[0]
        end = sum(entry.count for entry in model.partitions[source].entries)
        if model.commit_offset(group, source, min(position + 10, end), owner=session.owner) != OK:
            return FENCED
        yield rng.randint(1, 20)
    fate = rng.random()
    if fate < habits.crash:
        return "crash"
    if fate < habits.crash + habits.pause:
        yield timeout_ms + rng.randint(500, 25_000)
    outcome = builders.ABORT if rng.random() < habits.abort else builders.COMMIT
    error = CONCURRENT
    while error == CONCURRENT:
        error, producer_id, epoch = model.end(
            session.owner, session.producer_id, session.epoch, outcome
        )
        yield rng.randint(1, 5)
    if error != OK:
        return error
    session.go_on(producer_id, epoch)
    return "commit" if outcome == builders.COMMIT else "abort"


def _add(model: Model, session: Session, name: TopicPartition) -> Steps:
    while True:
        error = model.add_partition(session.owner, session.producer_id, session.epoch, name)
        yield model.rng.randint(1, 6)
        if error != CONCURRENT:
            return error


def _send(
    model: Model, session: Session, name: TopicPartition, habits: Habits, event_time: bool
) -> Steps:
    rng = model.rng
    count = rng.randint(1, 4)
    sequence = session.sequences.get(name, 0)
    create_ms = model.now - rng.randint(0, 30)
    if event_time:
        create_ms += rng.randint(-2 * 86_400_000, 3_000_000)
    yield rng.randint(1, 25)
    tries = 2 if rng.random() < habits.retry else 1
    for _ in range(tries):
        error = model.produce(
            name, session.producer_id, session.epoch, sequence, count, create_ms,
            owner=session.owner,
        )  # fmt: skip
        if error in (FENCED, INVALID_STATE) or (error == OUT_OF_ORDER and model.has_lost):
            return error
        if error != OK:
            raise AssertionError(f"the model's client lost its sequence: {error}")
        yield rng.randint(1, 10)
    session.sequences[name] = sequence + count
    return OK


def idempotent(model: Model, batches: int) -> Iterator[int]:
    """An idempotent producer without transactions; now and then it bumps its epoch (KIP-360)."""
    rng = model.rng
    model.next_producer_id += 1
    producer_id, epoch = model.next_producer_id, 0
    names = sorted(name for name in model.partitions if not name[0].startswith("__"))
    sequences: dict[TopicPartition, int] = {}
    for _ in range(batches):
        name, count = rng.choice(names), rng.randint(1, 3)
        if rng.random() < 0.02:
            epoch, sequences = epoch + 1, {}
        sequence = sequences.get(name, 0)
        error = model.produce(name, producer_id, epoch, sequence, count, model.now)
        if error == OUT_OF_ORDER and model.has_lost:  # KIP-360: the epoch rises, all starts at 0
            epoch, sequences, sequence = epoch + 1, {}, 0
            error = model.produce(name, producer_id, epoch, sequence, count, model.now)
        if error != OK:
            raise AssertionError(f"the model's idempotent producer was refused: {error}")
        sequences[name] = sequence + count
        yield rng.randint(1, 300)


def consumer(model: Model, group: str, commits: int) -> Iterator[int]:
    """A plain consumer that commits rising offsets."""
    names = sorted(name for name in model.partitions if not name[0].startswith("__"))
    for number in range(commits):
        for name in names[:2]:
            end = sum(entry.count for entry in model.partitions[name].entries)
            model.commit_offset(group, name, min(number * 5, end))
        yield model.rng.randint(50, 500)


def elections(model: Model, count: int) -> Iterator[int]:
    """Leaders change, of the coordinator's partitions more often than of others."""
    names = sorted(model.partitions)
    internal = [name for name in names if name[0].startswith("__transaction")]
    for _ in range(count):
        yield model.rng.randint(500, 9_000)
        model.elect(model.rng.choice(internal if model.rng.random() < 0.6 else names))


def life(
    seed: int,
    *,
    version: int | None = None,
    brokers: int | None = None,
    transactions: int = 12,
    duration_ms: int = 120_000,
    moving: bool = False,
) -> Model:
    """Return a cluster after a rough but correct life; the seed decides all that is not given."""
    pick = Model(seed).rng
    version = pick.choice([0, 1, 2]) if version is None else version
    model = Model(
        seed, version=version, brokers=pick.choice([1, 1, 2, 3]) if brokers is None else brokers,
        moving=moving,
    )  # fmt: skip
    for number in range(model.rng.randint(2, 6)):
        client = version if model.rng.random() < 0.7 else min(version, 1)
        steps = transactional(
            model, f"app-{number}", version=client, transactions=transactions,
            event_time=model.rng.random() < 0.3,
        )  # fmt: skip
        model.spawn(steps, model.rng.randint(0, 2_000))
    model.spawn(idempotent(model, 40))
    model.spawn(consumer(model, "plain", 30))
    model.spawn(elections(model, model.rng.randint(0, 6)))
    model.run(duration_ms)
    return model
