"""The coordinator's records of a copied recording, and which batches belong to what."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests import builders
from tests.planting.copied import CopiedLogs, Row

TOPIC = "__transaction_state"
PREPARE = (builders.PREPARE_COMMIT, builders.PREPARE_ABORT)
COMPLETE = (builders.COMPLETE_COMMIT, builders.COMPLETE_ABORT)
TICKS = 12
"""Records of a coordinator that lives on."""


@dataclass(frozen=True)
class State:
    """One record of `__transaction_state` and where it lies."""

    partition: int
    index: int
    transactional_id: str
    version: int
    producer_id: int
    epoch: int
    timeout_ms: int
    state: int
    partitions: tuple[tuple[str, int], ...] | None
    last_update_ms: int
    start_ms: int
    time_ms: int
    client_version: int | None

    def value(self) -> bytes:
        """Return the value anew."""
        return builders.txn_value(
            self.state, producer_id=self.producer_id, producer_epoch=self.epoch,
            timeout_ms=self.timeout_ms, partitions=self.partitions,
            last_update_ms=self.last_update_ms, start_ms=self.start_ms, version=self.version,
            client_transaction_version=self.client_version,
        )  # fmt: skip


def read_state(partition: int, index: int, row: Row) -> State:
    """Read one record (v0 or v1, the only tag that 3.9 and 4.1 write is 2)."""
    key, value = row.record()
    version, pid, epoch, timeout, state = struct.unpack_from(">hqhib", value)
    at = 17

    def take(form: str) -> int:
        nonlocal at
        at += struct.calcsize(form)
        return int(struct.unpack_from(form, value, at - struct.calcsize(form))[0])

    def length() -> int:
        return take(">B") - 1 if version else take(">i")

    def text() -> str:
        nonlocal at
        size = take(">B") - 1 if version else take(">h")
        at += size
        return value[at - size : at].decode()

    topics = length()
    names = []
    for _ in range(max(topics, 0)):
        topic = text()
        names += [(topic, take(">i")) for _ in range(length())]
        at += version
    update, start = take(">q"), take(">q")
    client = struct.unpack(">h", value[at + 3 : at + 5])[0] if version and value[at] else None
    return State(
        partition, index, key[4:].decode(), version, pid, epoch, timeout, state,
        None if topics < 0 else tuple(names), update, start, row.time_ms, client,
    )  # fmt: skip


class Coordinator:
    """All records of `__transaction_state` in a copy, with edits."""

    def __init__(self, logs: CopiedLogs) -> None:
        self.logs = logs
        self.rows = {n: logs.rows(t, n) for t, n in logs.names() if t == TOPIC}
        self.read()

    def read(self) -> None:
        """Read the records again after rows were changed."""
        self.states = [
            read_state(n, i, row)
            for n, rows in self.rows.items()
            for i, row in enumerate(rows)
            if row.record()[1]  # a tombstone is no state
        ]

    def of(self, transactional_id: str) -> list[State]:
        """Return an id's records in log order."""
        return [s for s in self.states if s.transactional_id == transactional_id]

    def ids(self) -> list[str]:
        """Return all ids, the busiest first."""
        return sorted({s.transactional_id for s in self.states}, key=lambda i: -len(self.of(i)))

    def owner(self, producer_id: int) -> str:
        """Return the id that holds a producer id."""
        return next(s.transactional_id for s in self.states if s.producer_id == producer_id)

    def change(self, old: State, **fields: object) -> None:
        """Rewrite one record's value; `save` afterwards."""
        changed = replace(old, **fields)  # type: ignore[arg-type]  # names are State's own
        row = self.rows[old.partition][old.index]
        self.rows[old.partition][old.index] = row.with_record(row.record()[0], changed.value())

    def insert(
        self, partition: int, index: int, transactional_id: str, value: bytes | None, time_ms: int
    ) -> None:
        """Insert a record before the one at `index`; the partition's `State`s go stale."""
        rows = self.rows[partition]
        near = rows[min(index, len(rows) - 1)]
        row = Row(builders.txn_entry(
            0, transactional_id, value, timestamp_ms=time_ms,
            partition_leader_epoch=near.leader_epoch,
        ))  # fmt: skip
        rows.insert(index, row)

    def drop(self, *states: State) -> None:
        """Remove records."""
        for state in sorted(states, key=lambda s: -s.index):
            del self.rows[state.partition][state.index]

    def tick(self, partition: int, after_ms: int) -> None:
        """Let the coordinator live on for so long after the last record: Empty records of new ids, one by one."""
        last = self.rows[partition][-1]
        version = struct.unpack_from(">h", last.record()[1])[0]
        for number in range(1, TICKS + 1):
            name = self.name(f"tick-{number}", partition)
            time_ms = last.time_ms + after_ms * number // TICKS
            value = builders.txn_value(
                builders.EMPTY, producer_id=99_000 + 100 * number + partition, partitions=None,
                last_update_ms=time_ms, version=version,
            )  # fmt: skip
            self.insert(partition, len(self.rows[partition]), name, value, time_ms)

    def name(self, prefix: str, partition: int) -> str:
        """Return an id that belongs into the partition."""
        count = self.partition_count()
        return next(
            f"{prefix}-{n}" for n in range(999) if home(f"{prefix}-{n}", count) == partition
        )

    def tick_all(self, after_ms: int) -> None:
        """Let every partition of the coordinator live on."""
        for partition in self.rows:
            self.tick(partition, after_ms)

    def last(self, transactional_id: str) -> list[State]:
        """Return the records of an id's last transaction: Ongoing to Complete*."""
        mine = self.of(transactional_id)
        first = len(mine) - 1
        while mine[first - 1].state in (builders.ONGOING, *PREPARE):
            first -= 1
        return mine[first:]

    def partition_count(self) -> int:
        """Return how many partitions the checkpoints list."""
        text = (self.logs.brokers[0] / "replication-offset-checkpoint").read_text()
        return sum(line.startswith(f"{TOPIC} ") for line in text.splitlines())

    def save(self) -> None:
        """Write every partition anew."""
        for number, rows in self.rows.items():
            self.logs.save(TOPIC, number, rows)
        self.read()


def home(text: str, partitions: int) -> int:
    """Return the partition of an ASCII id among so many."""
    value = 0
    for char in text:
        value = (31 * value + ord(char)) & 0xFFFFFFFF
    return abs(value - (1 << 32) if value >> 31 else value) % partitions


@dataclass(frozen=True)
class Run:
    """Rows of one producer between two markers in a partition, its marker's row (-1: open)."""

    topic: str
    partition: int
    producer_id: int
    data: tuple[int, ...]
    marker: int


def runs(logs: CopiedLogs, wanted: Callable[[str], bool] | None = None) -> list[Run]:
    """Return every run with data in the copy, in log order by partition.

    Args:
        wanted: which topics; None takes all user topics.
    """
    out = []
    for topic, partition in logs.names():
        if not (wanted(topic) if wanted else not topic.startswith("__")):
            continue
        now_open: dict[int, list[int]] = {}
        for index, row in enumerate(logs.rows(topic, partition)):
            if row.is_data:
                now_open.setdefault(row.producer_id, []).append(index)
            elif row.is_marker and row.producer_id in now_open:
                data = tuple(now_open.pop(row.producer_id))
                out.append(Run(topic, partition, row.producer_id, data, index))
        out += [Run(topic, partition, p, tuple(d), -1) for p, d in now_open.items()]
    return out
