"""A model of brokers and the transaction coordinator under a virtual clock.

It obeys the rules of `ProducerStateManager`, `TransactionCoordinator`, `TransactionStateManager`
and `TransactionMarkerChannelManager`, so that whatever it writes is legal: what clients do is in
`model_clients`, how it becomes files or tuples in `model_output`, what is broken on purpose in
`model_faults`. Each broker stamps its own clock, some ms off. Times are ms.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests import builders

TopicPartition = tuple[str, int]
TXN_TOPIC, OFFSETS_TOPIC = "__transaction_state", "__consumer_offsets"
OK, FENCED, CONCURRENT, INVALID_STATE, OUT_OF_ORDER = "ok", "fenced", "concurrent", "state", "order"
ABORT_SCAN_MS = 10_000
START_MS = builders.NOW_MS


class Entry(NamedTuple):
    """One batch of a partition; its offset follows from its place.

    `true_ms` is the model's clock, by which copies are cut; `time_ms` is what the batch says.
    `kind` is data, marker, txn (a coordinator record) or commit (a group's offset).
    """

    true_ms: int
    time_ms: int
    leader_epoch: int
    kind: str
    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    count: int = 1
    outcome: int = -1
    coordinator_epoch: int = -1
    key: bytes | None = None
    value: bytes | None = None
    transactional: bool = True
    transactional_id: str = ""
    state: int = -1


@dataclass
class ProducerState:
    """What a partition remembers of one producer id."""

    epoch: int
    recent: list[tuple[int, int]] = field(default_factory=list)
    coordinator_epoch: int = -1
    is_open: bool = False


@dataclass
class Partition:
    """One partition: its leader and everything ever appended."""

    name: TopicPartition
    leader: int
    replicas: list[int]
    leader_epoch: int = 0
    entries: list[Entry] = field(default_factory=list)
    producers: dict[int, ProducerState] = field(default_factory=dict)


@dataclass
class Transaction:
    """`TransactionMetadata` of one transactional id."""

    transactional_id: str
    home: Partition
    producer_id: int
    version: int
    timeout_ms: int
    epoch: int = 0
    state: int = builders.EMPTY
    partitions: list[TopicPartition] = field(default_factory=list)
    start_ms: int = -1
    is_first: bool = True
    unmarked: set[TopicPartition] = field(default_factory=set)


class Model:
    """The cluster: call it directly, or let clients run in it with `spawn` and `run`.

    Args:
        seed: decides everything that is random.
        version: the cluster's feature level transaction.version, 0 to 2.
        brokers: how many; internal topics have 2 partitions each.
        topics: topic -> partition count.
        skew_ms: each broker's clock is off by up to as much.
    """

    def __init__(self, seed: int, *, version: int = 2, brokers: int = 1,
                 topics: dict[str, int] | None = None, skew_ms: int = 300) -> None:
        self.rng = random.Random(seed)
        self.version = version
        self.now = START_MS
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.ticket = 0
        self.skew = [0] + [self.rng.randint(-skew_ms, skew_ms) for _ in range(brokers)]
        self.brokers = brokers
        self.partitions: dict[TopicPartition, Partition] = {}
        self.transactions: dict[str, Transaction] = {}
        self.next_producer_id = 1_000
        self.internal = 2
        every = {**(topics or {"a": 2, "b": 2}), TXN_TOPIC: self.internal, OFFSETS_TOPIC: self.internal}
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

    def spawn(self, client: Generator[int, None, None], delay_ms: int = 0) -> None:
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
        return self.now + self.skew[partition.leader]

    # -- brokers ------------------------------------------------------------------------------

    def append(self, partition: Partition, entry: Entry) -> None:
        """Append without any check."""
        partition.entries.append(entry)

    def produce(self, name: TopicPartition, producer_id: int, epoch: int, sequence: int, count: int,
                create_ms: int, *, owner: str | None = None) -> str:
        """Append a client's data batch if the broker would; None as owner is not transactional."""
        partition = self.partitions[name]
        state = partition.producers.get(producer_id)
        if state is not None and epoch < state.epoch:
            return FENCED
        if owner is not None and (state is None or not state.is_open):
            txn = self.transactions[owner]
            listed = name in txn.partitions and txn.state == builders.ONGOING
            if not listed or (txn.producer_id, txn.epoch) != (producer_id, epoch):
                return INVALID_STATE
        if state is not None and state.epoch == epoch and state.recent:
            if (sequence, count) in state.recent:
                return OK
            if sequence != sum(state.recent[-1]):
                return OUT_OF_ORDER
        elif sequence != 0 and (state is None or state.epoch != epoch):
            return OUT_OF_ORDER
        if state is None or state.epoch != epoch:
            known = -1 if state is None else state.coordinator_epoch
            state = partition.producers[producer_id] = ProducerState(epoch, [], known)
        state.recent = [*state.recent, (sequence, count)][-5:]
        state.is_open = owner is not None
        self.append(partition, Entry(
            self.now, create_ms, partition.leader_epoch, "data", producer_id, epoch, sequence, count,
            transactional=owner is not None,
        ))  # fmt: skip
        return OK

    def commit_offset(self, group: str, source: TopicPartition, offset: int, *,
                      owner: str | None = None) -> str:
        """Append a group's offset, transactional when an owner is given (TxnOffsetCommit)."""
        partition = self.partitions[OFFSETS_TOPIC, self.home(group)]
        producer_id = epoch = sequence = -1
        if owner is not None:
            txn = self.transactions[owner]
            if partition.name not in txn.partitions or txn.state != builders.ONGOING:
                return INVALID_STATE
            producer_id, epoch, sequence = txn.producer_id, txn.epoch, 0
            known = partition.producers.get(producer_id)
            partition.producers[producer_id] = ProducerState(
                epoch, [], -1 if known is None else known.coordinator_epoch, is_open=True
            )
        value_version = 4 if self.version == 2 else 3
        value = builders.offset_value(offset, version=value_version, commit_ms=self.clock(partition))
        self.append(partition, Entry(
            self.now, self.clock(partition), partition.leader_epoch, "commit", producer_id, epoch,
            sequence, key=builders.offset_key(group, *source), value=value,
            transactional=owner is not None,
        ))  # fmt: skip
        return OK

    def write_marker(self, name: TopicPartition, txn: Transaction, outcome: int,
                     coordinator_epoch: int, epoch: int) -> bool:
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
        partition.leader = self.rng.choice(partition.replicas)
        partition.leader_epoch += self.rng.randint(1, 2)
        if name[0] == TXN_TOPIC:
            for txn in self.transactions.values():
                if txn.home is partition and txn.state in (builders.PREPARE_COMMIT, builders.PREPARE_ABORT):
                    self._send_markers(txn)

    # -- coordinator --------------------------------------------------------------------------

    def home(self, text: str) -> int:
        """Return the internal partition of an id (ASCII)."""
        value = 0
        for char in text:
            value = (31 * value + ord(char)) & 0xFFFFFFFF
        return abs(value - (1 << 32) if value >> 31 else value) % self.internal

    def write_state(self, txn: Transaction, update_ms: int | None = None) -> None:
        """Append the id's state to its coordinator partition."""
        partition = txn.home
        version = 2 if txn.version == 2 and not txn.is_first else None
        bare = txn.state in (builders.EMPTY, builders.COMPLETE_COMMIT, builders.COMPLETE_ABORT)
        empty = None if txn.state == builders.EMPTY else ()
        value = builders.txn_value(
            txn.state, producer_id=txn.producer_id, producer_epoch=txn.epoch,
            timeout_ms=txn.timeout_ms, partitions=empty if bare else txn.partitions,
            last_update_ms=self.clock(partition) if update_ms is None else update_ms,
            start_ms=txn.start_ms, version=min(self.version, 1), client_transaction_version=version,
        )  # fmt: skip
        self.append(partition, Entry(
            self.now, self.clock(partition), partition.leader_epoch, "txn", txn.producer_id, txn.epoch,
            key=builders.txn_key(txn.transactional_id), value=value, transactional=False,
            transactional_id=txn.transactional_id, state=txn.state,
        ))  # fmt: skip
        txn.is_first = False

    def init_producer(self, owner: str, *, version: int, timeout_ms: int) -> tuple[str, int, int]:
        """InitProducerId: (error, producer id, epoch); an open transaction is fenced first."""
        txn = self.transactions.get(owner)
        if txn is None:
            home = self.partitions[TXN_TOPIC, self.home(owner)]
            self.next_producer_id += 1
            txn = Transaction(owner, home, self.next_producer_id, version, timeout_ms)
            self.transactions[owner] = txn
        elif txn.state == builders.ONGOING:
            self._prepare(txn, builders.ABORT, bump=True)
            return CONCURRENT, -1, -1
        elif txn.state in (builders.PREPARE_COMMIT, builders.PREPARE_ABORT):
            return CONCURRENT, -1, -1
        else:
            txn.epoch += 1
            txn.state, txn.partitions, txn.start_ms = builders.EMPTY, [], -1
        self.write_state(txn)
        return OK, txn.producer_id, txn.epoch

    def _check(self, owner: str, producer_id: int, epoch: int) -> tuple[str, Transaction]:
        txn = self.transactions[owner]
        if (txn.producer_id, txn.epoch) != (producer_id, epoch):
            return FENCED, txn
        if txn.state in (builders.PREPARE_COMMIT, builders.PREPARE_ABORT):
            return CONCURRENT, txn
        return OK, txn

    def add_partition(self, owner: str, producer_id: int, epoch: int, name: TopicPartition) -> str:
        """AddPartitionsToTxn or AddOffsetsToTxn; under version 2 a part of produce."""
        error, txn = self._check(owner, producer_id, epoch)
        if error != OK or (txn.state == builders.ONGOING and name in txn.partitions):
            return error
        if txn.state != builders.ONGOING:
            txn.state, txn.partitions, txn.start_ms = builders.ONGOING, [], self.clock(txn.home)
        txn.partitions = [*txn.partitions, name]
        self.write_state(txn)
        return OK

    def end(self, owner: str, producer_id: int, epoch: int, outcome: int) -> tuple[str, int]:
        """EndTxn: (error, epoch to go on with)."""
        error, txn = self._check(owner, producer_id, epoch)
        if error != OK:
            return error, epoch
        if txn.state != builders.ONGOING:
            return INVALID_STATE, epoch
        self._prepare(txn, outcome, bump=txn.version == 2)
        return OK, txn.epoch

    def _prepare(self, txn: Transaction, outcome: int, *, bump: bool) -> None:
        txn.epoch += bump
        txn.state = builders.PREPARE_COMMIT if outcome == builders.COMMIT else builders.PREPARE_ABORT
        self.write_state(txn)
        if self.rng.random() < 0.02:  # followers lagged, the step is written again
            self.write_state(txn)
        self._send_markers(txn)

    def _send_markers(self, txn: Transaction) -> None:
        coordinator_epoch, epoch, state = txn.home.leader_epoch, txn.epoch, txn.state
        outcome = builders.COMMIT if state == builders.PREPARE_COMMIT else builders.ABORT
        update_ms = self.clock(txn.home) + 1
        txn.unmarked = set(txn.partitions)

        def still_mine() -> bool:
            return (txn.home.leader_epoch, txn.epoch, txn.state) == (coordinator_epoch, epoch, state)

        def send(name: TopicPartition) -> None:
            if not still_mine():
                return
            if self.write_marker(name, txn, outcome, coordinator_epoch, epoch):
                if self.rng.random() < 0.03:  # the answer is lost
                    self.at(self.now + 20, lambda: send(name))
                    return
                txn.unmarked.discard(name)
            if not txn.unmarked:
                self.at(self.now + self.rng.randint(1, 4), complete)

        def complete() -> None:
            if still_mine():
                done = state + builders.COMPLETE_COMMIT - builders.PREPARE_COMMIT
                txn.state, txn.partitions = done, []
                self.write_state(txn, update_ms)

        for name in sorted(txn.partitions):
            slow = 400 if self.rng.random() < 0.05 else 12
            self.at(self.now + self.rng.randint(1, slow), lambda name=name: send(name))

    def _abort_timed_out(self) -> None:
        for txn in self.transactions.values():
            late = txn.start_ms + txn.timeout_ms < self.clock(txn.home)
            if txn.state == builders.ONGOING and late:
                self._prepare(txn, builders.ABORT, bump=True)
        self.at(self.now + ABORT_SCAN_MS, self._abort_timed_out)
