"""Log directories read without Spark, by the functions that its readers call."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.config import Config
from pipeline.replay.alive import Alive, alive
from pipeline.spark import coverage as covered
from pipeline.spark.entry import Place
from pipeline.spark.extent import merged, overlaps
from pipeline.spark.partition_input import Coverage
from pipeline.spark.plan import Plan, plan
from pipeline.spark.read_file import read_task
from pipeline.spark.replica_facts import ReplicaFacts, replica_facts, with_frontiers
from pipeline.spark.tasks import tasks_of
from pipeline.wire.batch import Batch, increment_sequence
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

Row = dict[str, Any]
_HEADER = tuple(
    name
    for name in Batch._fields
    if name not in ("attributes", "last_sequence", "base_timestamp_ms")
)
_COMMON = ("segment_id", "base_offset", "last_offset", "crc", "max_timestamp_ms",
           "partition_leader_epoch")  # fmt: skip
_STATE = (
    *_COMMON, "transactional_id", "value_version", "state", "producer_id", "producer_epoch",
    "txn_timeout_ms", "partitions", "start_ms", "previous_producer_id", "next_producer_id",
    "client_transaction_version",
)  # fmt: skip
_COMMIT = (
    *_COMMON, "group_id", "topic", "partition", "committed_offset", "commit_timestamp_ms",
    "is_transactional", "producer_id", "producer_epoch", "value_version",
)  # fmt: skip


class Read(NamedTuple):
    """Everything that was read, as the driver of a run knows it (`pipeline.spark.silver.Run`).

    Attributes:
        plan: What was found.
        config: The configuration.
        segments: Rows of `bronze.segment`.
        unreadable: Rows of `bronze.unreadable`.
        keep_from: Segment id -> first offset that counts.
        facts: Rows of `silver.replica`.
        coverage: What the rules about absences ask.
        counts: Copy -> number of partitions of `__transaction_state`.
        newest: Replica id -> coordinator epoch -> how long it lived.
        batches: Replica id -> batches that count, by offset; of internal topics those with a
            producer only.
        states: Replica id -> coordinator records that count, by offset.
        commits: Replica id -> offset commits that count, by offset.
        sidecars: Rows of `bronze.sidecar`.
        groups: Rows of `bronze.group_metadata`.
    """

    plan: Plan
    config: Config
    segments: list[Row]
    unreadable: list[Row]
    keep_from: dict[int, int]
    facts: list[ReplicaFacts]
    coverage: Coverage
    counts: dict[int, int | None]
    newest: dict[int, dict[int, Alive]]
    batches: dict[int, list[Batch]]
    states: dict[int, list[Row]]
    commits: dict[int, list[Row]]
    sidecars: list[Row]
    groups: list[Row]

    @property
    def ingested(self) -> Read:
        """For functions that take a run: what they ask of its ingest."""
        return self


def read(root: Path | str, config: Config) -> Read:
    """Reads a tree of log directories.

    Args:
        root: The tree.
        config: Tolerances and partition counts.
    """
    planned = plan([str(root)])
    kinds: dict[str, list[tuple[Place, pa.RecordBatch]]] = defaultdict(list)
    for task in tasks_of(planned):
        for part in read_task(task):
            ids = (part.column(name)[0].as_py() for name in Place._fields)
            place = Place(*ids)
            kinds[part.column(0)[0].as_py()].append((place, part))
    segments, keep_from = overlaps(merged(_details(kinds["scan"])))
    unreadable = sorted(
        [row for row in _details(kinds["unreadable"]) if row["replica_id"]],
        key=lambda row: (row["file"], row["position"]),
    )
    batches = _by_replica(kinds["batch"], ("segment_id", *_HEADER), keep_from)
    states = _by_replica(kinds["txn_state"], _STATE, {})
    facts, newest, counts = _facts(planned, config, segments, unreadable, states)
    longest_ms = max(
        (row["txn_timeout_ms"] or 0 for rows in states.values() for row in rows), default=0
    )
    return Read(
        planned, config, segments, unreadable, keep_from, facts,
        covered.coverage(planned, facts, newest, counts, config, longest_ms), counts, newest,
        {replica: [_batch(row) for row in rows] for replica, rows in batches.items()},
        {replica: _counting(rows, keep_from) for replica, rows in states.items()},
        _by_replica(kinds["offset_commit"], _COMMIT, keep_from), _details(kinds["sidecar"]),
        _details(kinds["group_metadata"]),
    )  # fmt: skip


def _details(parts: list[tuple[Place, pa.RecordBatch]]) -> list[Row]:
    return [
        {**json.loads(text), **place._asdict()}
        for place, part in parts
        for text in part.column("detail").to_pylist()
    ]


def _by_replica(
    parts: list[tuple[Place, pa.RecordBatch]], names: tuple[str, ...], keep_from: dict[int, int]
) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for place, part in parts:
        found[place.replica_id] += _counting(part.select(list(names)).to_pylist(), keep_from)
    for rows in found.values():
        rows.sort(key=lambda row: row["base_offset"])
    return dict(found)


def _counting(rows: list[Row], keep_from: dict[int, int]) -> list[Row]:
    if not keep_from:
        return rows
    return [row for row in rows if row["base_offset"] >= keep_from.get(row["segment_id"], 0)]


def _batch(row: Row) -> Batch:
    """A header as `pipeline.wire` has it; -1 where the table says null."""
    sequence = row["base_sequence"]
    delta = row["last_offset"] - row["base_offset"]
    fields = {name: row[name] for name in _HEADER}
    if fields["max_timestamp_ms"] is None:
        fields["max_timestamp_ms"] = -1
    return Batch(
        **fields, attributes=0, base_timestamp_ms=-1,
        last_sequence=-1 if sequence == -1 else increment_sequence(sequence, delta),
    )  # fmt: skip


def _facts(
    planned: Plan,
    config: Config,
    segments: list[Row],
    unreadable: list[Row],
    states: dict[int, list[Row]],
) -> tuple[list[ReplicaFacts], dict[int, dict[int, Alive]], dict[int, int | None]]:
    """What `silver.facts_of` asks Spark for, in loops."""
    damaged = {
        row["replica_id"]
        for row in unreadable
        if not row["is_tail"] and not row["reason"].startswith("sidecar")
    }
    facts = replica_facts(planned, segments, damaged)
    counts = {
        copy: covered.partition_count(planned, copy, TXN_TOPIC, config.transaction_state_partitions)
        for copy in {one.copy for one in facts}
    }
    newest: dict[int, dict[int, Alive]] = {}
    first: dict[int, int | None] = {}
    for one in facts:
        if not one.is_replayed or one.topic != TXN_TOPIC:
            continue
        rows = states.get(one.replica_id, [])
        times: dict[int, list[int]] = {}
        for row in rows:
            if row["max_timestamp_ms"] is not None:
                times.setdefault(row["partition_leader_epoch"], []).append(row["max_timestamp_ms"])
        newest[one.replica_id] = {epoch: alive(np.array(ms)) for epoch, ms in times.items()}
        complete = [row for row in rows if row["base_offset"] >= one.history_start_offset]
        if complete:
            first[one.replica_id] = complete[0]["max_timestamp_ms"]
    return with_frontiers(facts, first), newest, counts


def places(read: Read, topic: str | None = None) -> list[ReplicaFacts]:
    """The replicas that are replayed, of one topic or of all."""
    return [one for one in read.facts if one.is_replayed and topic in (None, one.topic)]


__all__ = ["OFFSETS_TOPIC", "TXN_TOPIC", "Read", "Row", "places", "read"]
