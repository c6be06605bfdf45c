"""Formats of the internal topics' records, counted on the driver."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa

from pipeline.replay import version_bounds
from pipeline.replay.coverage import NEVER
from pipeline.replay.statement import Statement
from pipeline.replay.version_bounds import ALL_NEW, NAMES_PREVIOUS_ID, Evidence, Version, parsed
from pipeline.spark import stated, stored
from pipeline.spark.race_inputs import fixed_from_ms
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.run import Run
from pipeline.spark.tables import Held
from schemas import bronze, silver
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC
from schemas.table import Table

_COLUMNS = (
    "replica_id",
    "partition_leader_epoch",
    "value_version",
    "base_offset",
    "max_timestamp_ms",
)
_FORMAT = _COLUMNS[:3]
First = dict[tuple[int, int, int], tuple[int, int]]
"""Replica id, leader epoch, value version (or `NAMES_PREVIOUS_ID`) -> first offset and its time."""
Proven = Callable[[int, int | None], Version | None]
"""Copy and time (ms; None where unknown) -> the version that all brokers had at least by then."""


def version_bound(run: Run) -> Held:
    """Input of `version_inferred`."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    only = ("copy", "transaction_version")
    for piece in stored.pieces(silver.TRANSACTION, run.output, run.run_id, only):
        rows = stated.longs(piece)
        pairs, held = np.unique(
            np.stack((rows["copy"], rows["transaction_version"])), axis=1, return_counts=True
        )
        for copy, version, count in zip(*pairs.tolist(), held.tolist(), strict=True):
            counts[copy][version] += count
    return stated.held(run, statements(counts, _evidence(run)))


def _evidence(run: Run) -> list[Evidence]:
    return evidence(run.facts, _first(run, bronze.TXN_STATE), _first(run, bronze.OFFSET_COMMIT))


def _first(run: Run, table: Table) -> First:
    """The first record of each format of each leader in each replica."""
    found: First = {}
    has_tags = table == bronze.TXN_STATE
    columns = (*_COLUMNS, "previous_producer_id") if has_tags else _COLUMNS
    for piece in stored.pieces(table, run.output, run.run_id, columns):
        rows = stated.longs(piece)
        if has_tags:
            is_named = rows["previous_producer_id"] >= 0
            rows["value_version"] = np.where(is_named, NAMES_PREVIOUS_ID, rows["value_version"])
        held = pa.table({name: rows[name] for name in _COLUMNS})
        firsts = held.group_by(list(_FORMAT)).aggregate(
            [("base_offset", "min"), ("max_timestamp_ms", "min")]
        )
        for row in firsts.to_pylist():
            key = (row["replica_id"], row["partition_leader_epoch"], row["value_version"])
            here = (row["base_offset_min"], row["max_timestamp_ms_min"])
            found[key] = min(here, found.get(key, here))
    return found


def evidence(facts: Iterable[ReplicaFacts], *first: First) -> list[Evidence]:
    """First records by replica, of replicas that are replayed."""
    places = {one.replica_id: one for one in facts if one.is_replayed}
    return [
        Evidence(
            places[replica].copy, places[replica].topic, places[replica].partition, epoch, version, *at
        )
        for held in first
        for (replica, epoch, version), at in sorted(held.items())
        if replica in places
    ]  # fmt: skip


def statements(
    counts: Mapping[int, Mapping[int, int]], found: Iterable[Evidence]
) -> list[Statement]:
    """What formats prove, a copy at a time.

    Args:
        counts: Copy -> transaction.version -> transactions.
        found: First records of each format.
    """
    held = list(found)
    said = [version_bounds.transaction_versions(copy, counts[copy]) for copy in sorted(counts)]
    every = version_bounds.of_all(held)
    some = version_bounds.greatest(version_bounds.of_leaders(held))
    for copy, bound in sorted(some.items()):
        if copy in every:
            said.append(version_bounds.all_brokers(every[copy]))
        if copy not in every or bound.version > every[copy].version:
            said.append(version_bounds.one_broker(bound))
    new: dict[int, Evidence] = {}
    for one in held:
        if one.topic == OFFSETS_TOPIC and one.value_version >= 4:
            new.setdefault(one.copy, one)
    return said + [version_bounds.group_coordinator(copy, one) for copy, one in sorted(new.items())]


def fixed_leaders(
    found: Iterable[Evidence], topic: str, defect: tuple[str, str]
) -> list[tuple[int, int, int]]:
    """Copy, partition and leader epoch of the leaders that are proven to have a fix, in order.

    Args:
        found: First records of each format.
        topic: The internal topic that they led.
        defect: Code and class that name it.
    """
    return sorted(
        (copy, partition, epoch)
        for (copy, led, partition, epoch), bound in version_bounds.of_leaders(found).items()
        if led == topic and version_bounds.is_fixed(*defect, bound.version)
    )


def fixed_coordinators(run: Run, defect: tuple[str, str]) -> list[tuple[int, int, int]]:
    """The same of the transaction coordinators of a run."""
    found = evidence(run.facts, _first(run, bronze.TXN_STATE))
    return fixed_leaders(found, TXN_TOPIC, defect)


def proven(run: Run) -> Proven:
    """What is known of all brokers' version by a time: what the user said, or what formats prove."""
    given = parsed(run.config.kafka_version)
    first: dict[int, int] = {}
    for (replica, _, version), (_, ms) in _first(run, bronze.TXN_STATE).items():
        if version >= 1 or version == NAMES_PREVIOUS_ID:
            first[replica] = min(ms, first.get(replica, ms))
    return bound_at(given, fixed_from_ms(run, first))


def bound_at(given: Version | None, from_ms: Mapping[int, int]) -> Proven:
    """The lower bound at a time.

    Args:
        given: The version that the user gave; it holds for all times.
        from_ms: Copy -> time from which its brokers are 4.0 or later.
    """

    def bound(copy: int, ms: int | None) -> Version | None:
        is_proven = copy in from_ms and from_ms[copy] <= (NEVER if ms is None else ms)
        return max(filter(None, (given, ALL_NEW if is_proven else None)), default=None)

    return bound
