"""A model of brokers and the transaction coordinator under a virtual clock.

It obeys the rules of `ProducerStateManager`, `TransactionCoordinator`, `TransactionStateManager`
and `TransactionMarkerChannelManager`, so that whatever it writes is legal: what clients do is in
`model_clients`, how it becomes files or tuples in `model_output`, what is broken on purpose in
`model_faults`. Each broker stamps its own clock, some ms off. Times are ms.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterator

from tests import builders
from tests.property.coordinator_model import Coordinator
from tests.property.model_types import (
    ABORT_SCAN_MS,
    FENCED,
    INVALID_STATE,
    OFFSETS_TOPIC,
    OK,
    OUT_OF_ORDER,
    START_MS,
    TXN_TOPIC,
    Entry,
    Partition,
    ProducerState,
    TopicPartition,
    Transaction,
)

DRIFT = 2e-4
"""Quartz is off by 200 ppm at most."""
STEP_MS = 150
LIFE_MS = 90_000
"""Some time in the lives that are told here, each clock is stepped once."""


class Model(Coordinator):
    """The cluster: call it directly, or let clients run in it with `spawn` and `run`.

    Args:
        seed: decides everything that is random.
        version: the cluster's feature level transaction.version, 0 to 2.
        brokers: how many; internal topics have 2 partitions each.
        topics: topic -> partition count.
        skew_ms: each broker's clock is off by up to as much.
        moving: the brokers' clocks also drift, are stepped by NTP and are off by parts of a millisecond.
    """

    def __init__(
        self,
        seed: int,
        *,
        version: int = 2,
        brokers: int = 1,
        topics: dict[str, int] | None = None,
        skew_ms: int = 300,
        moving: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.version = version
        self.now = START_MS
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.ticket = 0
        self.skew = [0] + [self.rng.randint(-skew_ms, skew_ms) for _ in range(brokers)]
        own = random.Random(f"clocks of {seed}")
        self.pace = [
            (own.random(), own.uniform(-DRIFT, DRIFT), own.randint(0, LIFE_MS), own.randint(-STEP_MS, STEP_MS))
            for _ in self.skew
        ] if moving else None  # fmt: skip
        self.brokers = brokers
        self.partitions: dict[TopicPartition, Partition] = {}
        self.transactions: dict[str, Transaction] = {}
        self.next_producer_id = 1_000
        self.internal = 2
        self.first_epoch = 0
        self.cleaning = self.deleting = 0.0
        self.has_lost = False
        every = {
            **(topics or {"a": 2, "b": 2}),
            TXN_TOPIC: self.internal,
            OFFSETS_TOPIC: self.internal,
        }
        for topic, count in every.items():
            for number in range(count):
                replicas = self.rng.sample(range(1, brokers + 1), k=min(brokers, 2))
                self.partitions[topic, number] = Partition((topic, number), replicas[0], replicas)
        self.at(self.now + ABORT_SCAN_MS, self._abort_timed_out)

    # -- time ---------------------------------------------------------------------------------

    def at(self, when: int, action: Callable[[], None]) -> None:
        """Run `action` at a model time."""
        self.ticket += 1
        heapq.heappush(self.queue, (when, self.ticket, action))

    def spawn(self, client: Iterator[int], delay_ms: int = 0) -> None:
        """Let a client run; it yields how many ms it waits."""

        def step() -> None:
            wait = next(client, None)
            if wait is not None:
                self.at(self.now + max(1, wait), step)

        self.at(self.now + delay_ms, step)

    def run(self, duration_ms: int) -> None:
        """Let everything happen for a while."""
        until = self.now + duration_ms
        while self.queue and self.queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self.queue)
            action()
        self.now = until

    def clock(self, partition: Partition) -> int:
        """Return the time of a partition's leader."""
        return self.now + self.ahead_ms(partition.leader, self.now)

    def ahead_ms(self, broker: int, when: int) -> int:
        """Return by how much a broker's clock, in whole ms, is ahead of the model's."""
        if self.pace is None:
            return self.skew[broker]
        part, drift, stepped_at, step = self.pace[broker]
        passed = when - START_MS
        return self.skew[broker] + math.floor(part + drift * passed + step * (passed > stepped_at))

    # -- brokers ------------------------------------------------------------------------------

    def append(self, partition: Partition, entry: Entry) -> None:
        """Append without any check."""
        partition.entries.append(entry)

    def produce(
        self,
        name: TopicPartition,
        producer_id: int,
        epoch: int,
        sequence: int,
        count: int,
        create_ms: int,
        *,
        owner: str | None = None,
    ) -> str:
        """Append a client's data batch if the broker would; None as owner is not transactional."""
        partition = self.partitions[name]
        state = partition.producers.get(producer_id)
        if state is not None and epoch < state.epoch:
            return FENCED
        if owner is not None and (state is None or not state.is_open):
            txn = self.transactions.get(owner)
            if txn is None:
                return INVALID_STATE
            listed = name in txn.partitions and txn.state == builders.ONGOING
            if not listed or (txn.producer_id, txn.epoch) != (producer_id, epoch):
                return INVALID_STATE
        if state is not None and state.epoch == epoch and state.recent:
            if (sequence, count) in state.recent:
                return OK
            if sequence != sum(state.recent[-1]) % (1 << 31):
                return OUT_OF_ORDER
        elif sequence != 0 and state is not None and state.epoch != epoch:
            return OUT_OF_ORDER
        if state is None or state.epoch != epoch:
            known = -1 if state is None else state.coordinator_epoch
            state = partition.producers[producer_id] = ProducerState(epoch, [], known)
        state.recent = [*state.recent, (sequence, count)][-5:]
        state.is_open = owner is not None
        self.append(partition, Entry(
            self.now, create_ms, partition.leader_epoch, "data", producer_id, epoch, sequence,
            count, transactional=owner is not None,
        ))  # fmt: skip
        return OK

    def commit_offset(
        self, group: str, source: TopicPartition, offset: int, *, owner: str | None = None
    ) -> str:
        """Append a group's offset, transactional when an owner is given (TxnOffsetCommit)."""
        partition = self.partitions[OFFSETS_TOPIC, self.home(group)]
        producer_id = epoch = sequence = -1
        if owner is not None:
            txn = self.transactions.get(owner)
            if txn is None:
                return INVALID_STATE
            if partition.name not in txn.partitions or txn.state != builders.ONGOING:
                return INVALID_STATE
            producer_id, epoch, sequence = txn.producer_id, txn.epoch, 0
            known = partition.producers.get(producer_id)
            partition.producers[producer_id] = ProducerState(
                epoch, [], -1 if known is None else known.coordinator_epoch, is_open=True
            )
        value_version = 4 if self.version == 2 else 3
        value = builders.offset_value(
            offset, version=value_version, commit_ms=self.clock(partition)
        )
        self.append(partition, Entry(
            self.now, self.clock(partition), partition.leader_epoch, "commit", producer_id, epoch,
            sequence, key=builders.offset_key(group, *source), value=value,
            transactional=owner is not None,
        ))  # fmt: skip
        return OK

    def write_marker(
        self,
        name: TopicPartition,
        txn: Transaction,
        outcome: int,
        coordinator_epoch: int,
        epoch: int,
    ) -> bool:
        """Append a marker unless a newer coordinator has written here."""
        partition = self.partitions[name]
        state = partition.producers.setdefault(txn.producer_id, ProducerState(epoch))
        if coordinator_epoch < state.coordinator_epoch:
            return False
        if state.epoch != epoch:
            state.recent = []
        state.epoch, state.coordinator_epoch, state.is_open = epoch, coordinator_epoch, False
        self.append(partition, Entry(
            self.now, self.clock(partition), partition.leader_epoch, "marker", txn.producer_id,
            epoch, outcome=outcome, coordinator_epoch=coordinator_epoch,
        ))  # fmt: skip
        return True

    def elect(self, name: TopicPartition) -> None:
        """Give a partition a new leader; a coordinator that loads sends pending markers again."""
        partition = self.partitions[name]
        alive = [one for one in partition.replicas if one not in partition.tails]
        partition.leader = self.rng.choice(alive)
        partition.leader_epoch += self.rng.randint(1, 2)
        if name[0] == TXN_TOPIC:
            for txn in self.transactions.values():
                if txn.home is partition and txn.state in (
                    builders.PREPARE_COMMIT,
                    builders.PREPARE_ABORT,
                ):
                    self._send_markers(txn)
