"""Formats of the internal topics' records, counted on the driver."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from pipeline.replay import version_bounds
from pipeline.replay.statement import Statement
from pipeline.replay.version_bounds import OFFSET_VALUES, TXN_VALUES, Bound, Evidence, Version
from pipeline.spark import stated, stored
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.silver import Run
from pipeline.spark.tables import Held
from schemas import bronze, silver
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC
from schemas.table import Table

_COLUMNS = ("replica_id", "value_version", "base_offset", "max_timestamp_ms")
First = dict[tuple[int, int], tuple[int, int]]
"""(replica id, value version) -> first offset and its time."""


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
    found = evidence(run.facts, _first(run, bronze.TXN_STATE), _first(run, bronze.OFFSET_COMMIT))
    return stated.held(run, statements(counts, found))


def _first(run: Run, table: Table) -> First:
    """The first record of each format in each replica."""
    found: First = {}
    for piece in stored.pieces(table, run.output, run.run_id, _COLUMNS):
        rows = stated.longs(piece)
        order = np.argsort(rows["base_offset"], kind="stable")
        pairs = np.stack((rows["replica_id"][order], rows["value_version"][order]))
        _, at = np.unique(pairs, axis=1, return_index=True)
        for row in order[at]:
            key = (int(rows["replica_id"][row]), int(rows["value_version"][row]))
            here = (int(rows["base_offset"][row]), int(rows["max_timestamp_ms"][row]))
            found[key] = min(here, found.get(key, here))
    return found


def evidence(facts: Iterable[ReplicaFacts], *first: First) -> list[Evidence]:
    """First records by replica, of replicas that are replayed."""
    places = {one.replica_id: one for one in facts if one.is_replayed}
    return [
        Evidence(
            places[replica].copy, places[replica].topic, places[replica].partition, version, *at
        )
        for held in first
        for (replica, version), at in sorted(held.items())
        if replica in places
    ]


def lower_bounds(found: Iterable[Evidence]) -> dict[int, Bound]:
    """Copy -> the greatest lower bound of its brokers' version."""
    every: dict[int, list[Bound]] = defaultdict(list)
    for one in found:
        values: Mapping[int, Version] = {}
        if one.topic == TXN_TOPIC:
            values = TXN_VALUES
        elif one.topic == OFFSETS_TOPIC:
            values = OFFSET_VALUES
        for bound in version_bounds.bounds([one], values):
            every[one.copy].append(bound)
    best = {copy: version_bounds.strongest(held) for copy, held in every.items()}
    return {copy: bound for copy, bound in best.items() if bound is not None}


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
    said += [
        version_bounds.broker_version(bound) for _, bound in sorted(lower_bounds(held).items())
    ]
    new: dict[int, Evidence] = {}
    for one in held:
        if one.topic == OFFSETS_TOPIC and one.value_version >= 4:
            new.setdefault(one.copy, one)
    return said + [version_bounds.group_coordinator(copy, one) for copy, one in sorted(new.items())]


def proven_versions(run: Run) -> dict[int, Version]:
    """Copy -> lower bound of its brokers' version, where anything proves one."""
    found = evidence(run.facts, _first(run, bronze.TXN_STATE), _first(run, bronze.OFFSET_COMMIT))
    return {copy: bound.version for copy, bound in lower_bounds(found).items()}
