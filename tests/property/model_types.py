"""Rows and states of the model of a cluster."""

from __future__ import annotations

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
    is_emptied: bool = False


@dataclass
class ProducerState:
    """What a partition remembers of one producer id."""

    epoch: int
    recent: list[tuple[int, int]] = field(default_factory=list)
    coordinator_epoch: int = -1
    is_open: bool = False


@dataclass
class Partition:
    """One partition: its leader and everything ever appended.

    Attributes:
        base: offset of the first entry; above 0 earlier history is gone.
        tails: a dead broker -> entries that it had of all, and what only it had behind them.
    """

    name: TopicPartition
    leader: int
    replicas: list[int]
    leader_epoch: int = 0
    entries: list[Entry] = field(default_factory=list)
    producers: dict[int, ProducerState] = field(default_factory=dict)
    base: int = 0
    tails: dict[int, tuple[int, list[Entry]]] = field(default_factory=dict)


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
    previous_id: int | None = None
    next_id: int | None = None
