"""The transaction coordinator of the model: ids, their states, markers and timeouts.

Rules: `TransactionMetadata`, `TransactionCoordinator`, `TransactionStateManager`,
`TransactionMarkerChannelManager`. `Model` mixes this class in; times are ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests import builders
from tests.property.model_types import (
    ABORT_SCAN_MS,
    CONCURRENT,
    FENCED,
    INVALID_STATE,
    OK,
    TXN_TOPIC,
    Entry,
    TopicPartition,
    Transaction,
)

if TYPE_CHECKING:
    from tests.property.broker_model import Model

LAST_EPOCH = 32_766
"""`TransactionMetadata.isEpochExhausted`: the next bump needs another producer id."""


class Coordinator:
    """What a `Model` does as coordinator."""

    def home(self: Model, text: str) -> int:
        """Return the internal partition of an id (ASCII)."""
        value = 0
        for char in text:
            value = (31 * value + ord(char)) & 0xFFFFFFFF
        return abs(value - (1 << 32) if value >> 31 else value) % self.internal

    def write_state(self: Model, txn: Transaction, update_ms: int | None = None) -> None:
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
            previous_producer_id=txn.previous_id, next_producer_id=txn.next_id,
        )  # fmt: skip
        self.append(partition, Entry(
            self.now, self.clock(partition), partition.leader_epoch, "txn", txn.producer_id,
            txn.epoch, key=builders.txn_key(txn.transactional_id), value=value, transactional=False,
            transactional_id=txn.transactional_id, state=txn.state,
        ))  # fmt: skip
        txn.is_first = False

    def init_producer(
        self: Model, owner: str, *, version: int, timeout_ms: int
    ) -> tuple[str, int, int]:
        """InitProducerId: (error, producer id, epoch); an open transaction is fenced first."""
        txn = self.transactions.get(owner)
        if txn is None:
            home = self.partitions[TXN_TOPIC, self.home(owner)]
            self.next_producer_id += 1
            txn = Transaction(
                owner, home, self.next_producer_id, version, timeout_ms, epoch=self.first_epoch
            )
            self.transactions[owner] = txn
        elif txn.state == builders.ONGOING:
            self._prepare(txn, builders.ABORT, bump=True)
            return CONCURRENT, -1, -1
        elif txn.state in (builders.PREPARE_COMMIT, builders.PREPARE_ABORT):
            return CONCURRENT, -1, -1
        else:
            if txn.epoch >= LAST_EPOCH:
                txn.producer_id, txn.epoch = self._new_id(), 0
            else:
                txn.epoch += 1
            txn.version, txn.previous_id = version, None
            txn.state, txn.partitions, txn.start_ms = builders.EMPTY, [], -1
        self.write_state(txn)
        return OK, txn.producer_id, txn.epoch

    def _check(self: Model, owner: str, producer_id: int, epoch: int) -> tuple[str, Transaction]:
        txn = self.transactions.get(owner)
        if txn is None:
            return FENCED, Transaction(owner, self.partitions[TXN_TOPIC, 0], -1, 0, 0)
        if (txn.producer_id, txn.epoch) != (producer_id, epoch):
            return FENCED, txn
        if txn.state in (builders.PREPARE_COMMIT, builders.PREPARE_ABORT):
            return CONCURRENT, txn
        return OK, txn

    def add_partition(
        self: Model, owner: str, producer_id: int, epoch: int, name: TopicPartition
    ) -> str:
        """AddPartitionsToTxn or AddOffsetsToTxn; under version 2 a part of produce."""
        error, txn = self._check(owner, producer_id, epoch)
        if error != OK or (txn.state == builders.ONGOING and name in txn.partitions):
            return error
        if txn.state != builders.ONGOING:
            txn.state, txn.partitions, txn.start_ms = builders.ONGOING, [], self.clock(txn.home)
            txn.previous_id = None
        txn.partitions = [*txn.partitions, name]
        self.write_state(txn)
        return OK

    def end(
        self: Model, owner: str, producer_id: int, epoch: int, outcome: int
    ) -> tuple[str, int, int]:
        """EndTxn: (error, producer id and epoch to go on with)."""
        error, txn = self._check(owner, producer_id, epoch)
        if error != OK:
            return error, producer_id, epoch
        if txn.state != builders.ONGOING:
            return INVALID_STATE, producer_id, epoch
        is_last = txn.version == 2 and epoch >= LAST_EPOCH
        txn.next_id = self._new_id() if is_last else None
        self._prepare(txn, outcome, bump=txn.version == 2)
        return (OK, txn.next_id, 0) if txn.next_id is not None else (OK, producer_id, txn.epoch)

    def _new_id(self: Model) -> int:
        self.next_producer_id += 1
        return self.next_producer_id

    def _prepare(self: Model, txn: Transaction, outcome: int, *, bump: bool) -> None:
        txn.epoch += bump
        txn.state = (
            builders.PREPARE_COMMIT if outcome == builders.COMMIT else builders.PREPARE_ABORT
        )
        self.write_state(txn)
        if self.rng.random() < 0.02:  # followers lagged, the step is written again
            self.write_state(txn)
        self._send_markers(txn)

    def _send_markers(self: Model, txn: Transaction) -> None:
        coordinator_epoch, epoch, state = txn.home.leader_epoch, txn.epoch, txn.state
        outcome = builders.COMMIT if state == builders.PREPARE_COMMIT else builders.ABORT
        update_ms = self.clock(txn.home) + 1
        txn.unmarked = set(txn.partitions)

        def still_mine() -> bool:
            return (txn.home.leader_epoch, txn.epoch, txn.state) == (
                coordinator_epoch,
                epoch,
                state,
            )

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
                if txn.next_id is not None:
                    txn.previous_id, txn.producer_id, txn.epoch = txn.producer_id, txn.next_id, 0
                    txn.next_id = None
                self.write_state(txn, update_ms)

        for name in sorted(txn.partitions):
            slow = 400 if self.rng.random() < 0.05 else 12
            self.at(self.now + self.rng.randint(1, slow), lambda name=name: send(name))

    def _abort_timed_out(self: Model) -> None:
        for txn in self.transactions.values():
            late = txn.start_ms + txn.timeout_ms < self.clock(txn.home)
            if txn.state == builders.ONGOING and late:
                self._prepare(txn, builders.ABORT, bump=True)
        self.at(self.now + ABORT_SCAN_MS, self._abort_timed_out)
