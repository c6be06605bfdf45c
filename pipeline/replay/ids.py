"""How applications use their transactional ids.

Source: `TransactionStateManager` (expiry), `TransactionCoordinator` (timeouts); KIP-98, KIP-447, KIP-854.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipeline.replay.application import Application, application
from pipeline.replay.columns import Columns, Longs, groups
from pipeline.replay.statement import Place, Statement, span
from pipeline.text import counted
from schemas.codes import TWO_PHASE_TIMEOUT_MS, TXN_TOPIC

EXPIRY, INIT = "expiry", "init"
STEP_NUMBERS = ("copy", "coordinator_partition", "offset", "append_ms")
STEP_TEXTS = ("transactional_id", "cause")
_ONCE_ONLY = 0.9
"""Share of ids with a single transaction from which on an application makes a new one each time."""
_NAMED = 3


class Limits(NamedTuple):
    """What counts as careless (`health` in the settings)."""

    unbounded_ids: int
    transaction_max_timeout_ms: int
    pattern: str | None = None


class Extent(NamedTuple):
    """What one producer id wrote to one partition.

    Attributes:
        copy: Copy of the cluster.
        transactional_id: Its owner.
        producer_id: The producer id.
        order: Greater for the producer id that the owner held later.
        topic: Topic.
        partition: Partition.
        first_offset: First offset of its data.
        last_offset: Last offset of its data.
    """

    copy: int
    transactional_id: str
    producer_id: int
    order: int
    topic: str
    partition: int
    first_offset: int
    last_offset: int


def statements(transactions: Columns, steps: Columns, limits: Limits) -> list[Statement]:
    """What transactions, and steps of expiry and first InitProducerId, say of ids.

    Args:
        transactions: Columns of `silver.transaction`.
        steps: Columns `STEP_NUMBERS` and `STEP_TEXTS` of `silver.coordinator_step`.
        limits: From where on it is told.
    """
    return [
        *_unbounded(transactions, limits),
        *_above_max(transactions, limits),
        *_expired(steps, limits),
    ]


def _unbounded(one: Columns, limits: Limits) -> list[Statement]:
    """Applications with ever-new ids: no instance ever fences another."""
    by_id = groups(one["copy"], one["transactional_id"])
    if len(by_id) < limits.unbounded_ids:
        return []
    found: dict[tuple[int, Application], list[Longs]] = defaultdict(list)
    for rows in by_id:
        name = one.text("transactional_id", int(rows[0])) or ""
        found[int(one["copy"][rows[0]]), application(name, limits.pattern)].append(rows)
    said = []
    for (copy, owner), ids in found.items():
        once = sum(len(rows) == 1 for rows in ids)
        if len(ids) < limits.unbounded_ids or once / len(ids) < _ONCE_ONLY:
            continue
        names = [one.text("transactional_id", int(rows[0])) or "" for rows in ids]
        said.append(Statement(
            copy, "unbounded_ids", "minor", "proven",
            f"{owner.name} used {len(ids)} transactional ids, {once} of them once",
            f"Application {owner}: {len(ids)} transactional ids, {once} with a single transaction, for instance "
            f"{', '.join(sorted(names)[:_NAMED])}. An instance that comes back under another id fences nobody, and the "
            "coordinator keeps every id for transactional.id.expiration.ms.",
            topic=TXN_TOPIC, transactional_id=min(names),
        ))  # fmt: skip
    return said


def _above_max(one: Columns, limits: Limits) -> list[Statement]:
    timeout = one["txn_timeout_ms"]
    mask = (timeout > limits.transaction_max_timeout_ms) & (timeout != TWO_PHASE_TIMEOUT_MS)
    above = one.where(mask)
    said = []
    for rows in groups(above["copy"]):
        worst = int(rows[np.argmax(above["txn_timeout_ms"][rows])])
        name = above.text("transactional_id", worst) or ""
        ids = len(np.unique(above["transactional_id"][rows]))
        longest = int(above["txn_timeout_ms"][worst])
        partition = int(above["coordinator_partition"][worst])
        said.append(Statement(
            int(above["copy"][worst]), "timeout_above_max", "minor", "proven",
            f"transaction timeouts of up to {span(longest)} are above transaction.max.timeout.ms",
            f"{counted(len(rows), 'transaction')} of {counted(ids, 'id')}, for instance {name}, application "
            f"{application(name, limits.pattern)}, had a timeout above {span(limits.transaction_max_timeout_ms)}. The "
            "brokers' maximum is another one than transaction_max_timeout_ms in the settings, or was lowered.",
            topic=TXN_TOPIC, partition=partition, transactional_id=name,
            places=(
                Place(TXN_TOPIC, partition, int(above["first_step_offset"][worst]), "its first record"),
            ),
        ))  # fmt: skip
    return said


def _expired(steps: Columns, limits: Limits) -> list[Statement]:
    """Ids that came back after their expiry: a producer that waited is refused, its producer id is another one."""
    is_expiry = steps.is_in("cause", EXPIRY)
    back: dict[int, list[int]] = defaultdict(list)
    for rows in groups(steps["copy"], steps["coordinator_partition"], steps["transactional_id"]):
        expired = steps["offset"][rows[is_expiry[rows]]]
        begun = rows[~is_expiry[rows]]
        again = begun[steps["offset"][begun] > expired.min()] if len(expired) else begun[:0]
        if len(again):
            back[int(steps["copy"][rows[0]])].append(int(again[np.argmin(steps["offset"][again])]))
    said = []
    for copy, rows_back in sorted(back.items()):
        first = rows_back[0]
        names = sorted(steps.text("transactional_id", row) or "" for row in rows_back)
        partition = int(steps["coordinator_partition"][first])
        said.append(Statement(
            copy, "idle_expired", "minor", "proven",
            f"{len(names)} transactional ids expired and came back",
            f"{', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}: idle for longer than "
            "transactional.id.expiration.ms, then in use again under another producer id. A producer that only waited "
            "gets InvalidPidMapping and has to be made anew.",
            topic=TXN_TOPIC, partition=partition, transactional_id=names[0],
            places=(
                Place(TXN_TOPIC, partition, int(steps["offset"][first]), "first record after the expiry"),
            ),
        ))  # fmt: skip
    return said


def interleaved(extents: Iterable[Extent], limits: Limits) -> list[Statement]:
    """Two producer ids of one transactional id that wrote to one partition in turn.

    Args:
        extents: Of ids that held more than one producer id.
        limits: For the application.
    """
    by_place: dict[tuple[int, str, str, int], list[Extent]] = defaultdict(list)
    for one in extents:
        by_place[one.copy, one.transactional_id, one.topic, one.partition].append(one)
    said = {}
    for (copy, name, topic, partition), mine in sorted(by_place.items()):
        mine.sort(key=lambda one: one.order)
        for older, newer in pairwise(mine):
            if older.last_offset > newer.first_offset:
                said[copy, name] = Statement(
                    copy, "interleaved_producers", "minor", "proven",
                    f"two producer ids of {name} wrote to {topic}-{partition} in turn",
                    f"{name}, application {application(name, limits.pattern)}: producer id {older.producer_id} wrote "
                    f"up to {older.last_offset}, its successor {newer.producer_id} from {newer.first_offset} on. "
                    "An epoch fences within one producer id only.",
                    topic=topic, partition=partition, transactional_id=name, producer_id=older.producer_id,
                    first_offset=newer.first_offset, last_offset=older.last_offset,
                    places=(Place(topic, partition, newer.first_offset, "first batch of the newer producer id"),),
                )  # fmt: skip
    return list(said.values())
