"""An audit without Spark: the same replay over the same bytes, in loops over one small input.

`accusations` gives what the detectors would report above `info`, and the manual aborts and windows
of `info`. Reading, coverage, coordinator replay, alignment and judgement are the project's own
functions; windows, joins and detectors, which the project writes for Spark, are written again here,
as loops. So it is a second opinion on those, and it is fast enough for a thousand inputs.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline.config import Config
from pipeline.replay.history import SequenceEvent, replay
from pipeline.spark import coordinator_rows, offset_rows, partition_input, partition_rows
from pipeline.spark import coverage as covered
from pipeline.spark.arrow import arrow_schema
from pipeline.spark.replica_facts import ReplicaFacts
from schemas.silver import COORDINATOR, PARTITION_HISTORY
from tests.pure_input import OFFSETS_TOPIC, TXN_TOPIC, Read, Row, places, read


class Replayed(NamedTuple):
    """Rows of silver, as dictionaries with the columns of the tables.

    Attributes:
        read: What they were made of.
        steps: `coordinator_step`.
        transactions: `transaction`.
        owners: `owner`.
        runs: `partition_txn`.
        promises: `transaction_partition`.
        events: `sequence_event`, with the replica of each.
        offsets: `committed_offset`.
    """

    read: Read
    steps: list[Row]
    transactions: list[Row]
    owners: list[Row]
    runs: list[Row]
    promises: list[Row]
    events: list[tuple[ReplicaFacts, SequenceEvent]]
    offsets: list[Row]


def accusations(root: Path | str, config: Config | None = None) -> list[Row]:
    """Findings above `info`, manual aborts and windows, with the fields that `expect.json` names.

    Args:
        root: A tree of log directories.
        config: Tolerances; the defaults when None.
    """
    from tests import pure_rules

    return pure_rules.accusations(replayed(read(root, config or Config())))


def replayed(one: Read) -> Replayed:
    """Replays everything that was read."""
    coordinator = _coordinator(one)
    transactions = coordinator["transaction"]
    runs, events = _histories(one)
    judged = _judged(one, runs, transactions, coordinator["owner"])
    return Replayed(
        one, coordinator["coordinator_step"], transactions, coordinator["owner"],
        judged[partition_input.RUN], judged[partition_input.PROMISE], events, _offsets(one),
    )  # fmt: skip


def _split(batches: Any) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for batch in batches:
        for row in batch.to_pylist():
            found[row["kind"]].append(row)
    return found


def _table(
    rows: list[Row], names: tuple[str, ...], types: dict[str, pa.DataType]
) -> pa.RecordBatch:
    arrays = [pa.array([row.get(name) for row in rows], types[name]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


_TYPES = {
    **{field.name: field.type for field in arrow_schema(COORDINATOR)},
    **{field.name: field.type for field in arrow_schema(PARTITION_HISTORY)},
    **{
        name: pa.int64()
        for name in (
            "replica_id", "base_offset", "max_timestamp_ms", "partition_leader_epoch",
            "value_version", "next_producer_id", "client_transaction_version", "owner_state",
            "owner_epoch", "owner_version", "owner_append_ms", "txn_timeout_ms", "start_ms",
            "complete_leader_epoch", "leader_epoch", "committed_offset", "commit_timestamp_ms",
            "control_type", "partition", "complete_offset",
        )
    },
    "partitions": pa.string(), "owner_is_current": pa.bool_(), "is_control": pa.bool_(),
    "group_id": pa.string(), "is_transactional": pa.bool_(),
}  # fmt: skip


def _coordinator(one: Read) -> dict[str, list[Row]]:
    logs = covered.coordinator_logs(one.facts, one.counts)
    rows = [
        {"replica_id": place.replica_id, **row}
        for place in places(one, TXN_TOPIC)
        for row in one.states.get(place.replica_id, [])
    ]
    rows.sort(key=lambda row: (row["replica_id"], row["transactional_id"], row["base_offset"]))
    table = _table(rows, coordinator_rows.INPUT, _TYPES)
    return _split(coordinator_rows.replayer(logs)(iter([table])))


def _offsets(one: Read) -> list[Row]:
    found: list[Row] = []
    for place in places(one, OFFSETS_TOPIC):
        rows = [
            {"replica_id": place.replica_id, "is_control": False, **row}
            for row in one.commits.get(place.replica_id, [])
        ]
        rows += [
            {"replica_id": place.replica_id, **batch._asdict()}
            for batch in one.batches.get(place.replica_id, [])
            if batch.is_control and batch.producer_id >= 0
        ]
        rows.sort(key=lambda row: row["base_offset"])
        table = _table(rows, offset_rows.INPUT, _TYPES)
        placed = {place.replica_id: (place.copy, place.partition)}
        for batch in offset_rows.materialiser(placed)(iter([table])):
            found += batch.to_pylist()
    return found


def _histories(one: Read) -> tuple[list[Row], list[tuple[ReplicaFacts, SequenceEvent]]]:
    """Rows of `partition_txn` before they are judged, and irregular steps."""
    runs: list[Row] = []
    events = []
    for place in places(one):
        history = replay(
            one.batches.get(place.replica_id, []),
            is_offsets=place.topic == OFFSETS_TOPIC,
            history_start_offset=place.history_start_offset,
        )
        where = {
            name: getattr(place, name) for name in ("copy", "topic", "partition", "replica_id")
        }
        runs += [{**run._asdict(), **where} for run in history.runs]
        events += [(place, event) for event in history.events]
    return runs, events


def _owner_of(owners: list[Row]) -> dict[tuple[int, int], Row]:
    """(copy, producer id) -> the id that still holds it, else the one that held it last."""
    best: dict[tuple[int, int], tuple[Any, ...]] = {}
    for owner in owners:
        append_ms = -1 if owner["append_ms"] is None else owner["append_ms"]
        rank = (owner["is_current"], append_ms, owner["transactional_id"])
        key = (owner["copy"], owner["producer_id"])
        if key not in best or rank > best[key][0]:
            best[key] = (rank, owner)
    return {key: owner for key, (_, owner) in best.items()}


def _judged(
    one: Read, runs: list[Row], transactions: list[Row], owners: list[Row]
) -> dict[str, list[Row]]:
    """Alignment and judgement, by the function that Spark's tasks run."""
    known = _owner_of(owners)
    rows = [_owned(run, known.get((run["copy"], run["producer_id"]))) for run in runs]
    rows += [promise for transaction in transactions for promise in _promises(transaction)]
    rows.sort(key=lambda row: tuple(row[name] for name in (*partition_input.KEYS, "kind")))
    if not rows:
        return defaultdict(list)
    declared = arrow_schema(PARTITION_HISTORY).names
    names = tuple(dict.fromkeys([*declared, *_PROMISED, *_OWNED, "added_ms", "leader_epoch"]))
    table = _table(rows, names, _TYPES)
    return _split(partition_rows.aligner(one.coverage)(iter([table])))


_OWNED = (
    "transactional_id", "coordinator_partition", "owner_is_current", "owner_state", "owner_epoch",
    "owner_version", "owner_append_ms",
)  # fmt: skip


def _owned(run: Row, owner: Row | None) -> Row:
    row = {"kind": partition_input.RUN, **run}
    if owner is not None:
        row |= {
            "transactional_id": owner["transactional_id"],
            "coordinator_partition": owner["coordinator_partition"],
            "owner_is_current": owner["is_current"],
            "owner_state": owner["state"],
            "owner_epoch": owner["producer_epoch"],
            "owner_version": owner["transaction_version"],
            "owner_append_ms": owner["append_ms"],
        }
    return row


_PROMISED = (
    "copy", "coordinator_partition", "transactional_id", "producer_id", "producer_epoch",
    "prepare_epoch", "state", "outcome", "transaction_version", "txn_timeout_ms", "start_ms",
    "prepare_offset", "prepare_ms", "complete_offset", "complete_ms", "prepare_leader_epoch",
    "complete_leader_epoch",
)  # fmt: skip


def _promises(transaction: Row) -> list[Row]:
    """One row for each partition that a transaction lists."""
    leader_epoch = transaction["prepare_leader_epoch"]
    if leader_epoch is None:
        leader_epoch = transaction["ongoing_leader_epoch"]
    common = {name: transaction[name] for name in _PROMISED}
    common |= {
        "kind": partition_input.PROMISE,
        "transaction_offset": transaction["first_step_offset"],
        "leader_epoch": leader_epoch,
    }
    return [{**common, **listed} for listed in transaction["partitions"]]
