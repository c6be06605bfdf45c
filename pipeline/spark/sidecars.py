"""Sidecars of all replicas held against their logs, on the driver; what they say is judged in `pipeline.replay`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.replay import sidecar_check, visibility
from pipeline.replay.index_check import IndexProblem
from pipeline.replay.last_batches import NEEDED, LastBatches
from pipeline.replay.sidecar_check import LogPlace
from pipeline.replay.statement import Statement
from pipeline.replay.visibility import Ended, Listed
from pipeline.spark import stated, stored
from pipeline.spark.gaps import cleaned_topics
from pipeline.spark.inventory import Plan
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.run import Run
from pipeline.spark.tables import Held
from pipeline.wire.producer_snapshot import SnapshotEntry
from schemas import bronze, silver

Row = dict[str, Any]
SNAPSHOT, ABORTED = "producer_snapshot", "aborted_txn"
"""`entry_kind` of rows of `bronze.sidecar`."""
_RUN = (
    "replica_id", "producer_id", "first_offset", "marker_offset", "marker_type", "marker_epoch",
    "is_transactional",
)  # fmt: skip


def log_places(
    plan: Plan, facts: Iterable[ReplicaFacts], segments: Iterable[Row]
) -> dict[int, LogPlace]:
    """Replica id -> what the sidecar rules have to know of it."""
    log_dirs = {one.path: one for one in plan.log_dirs}
    topic_of = {one.replica_id: (one.copy, one.topic) for one in plan.replicas}
    cleaned = cleaned_topics(plan, topic_of, segments)
    found = {}
    for one in facts:
        log_dir = log_dirs[one.log_dir]
        found[one.replica_id] = LogPlace(
            one.copy, one.topic, one.partition, one.broker_id, one.history_start_offset,
            one.log_start_offset or 0, one.log_end_offset, log_dir.is_clean_shutdown,
            log_dir.recovery_points.get((one.topic, one.partition)),
            (one.copy, one.topic) in cleaned,
        )  # fmt: skip
    return found


def file_statements(
    plan: Plan,
    places: Mapping[int, LogPlace],
    segments: Iterable[Row],
    keep_from: Mapping[int, int],
) -> list[Statement]:
    """Indexes and leader-epoch files that do not fit: found while the logs were read."""
    starts: dict[int, list[tuple[int, int]]] = defaultdict(list)
    said = []
    for segment in segments:
        place = places.get(segment["replica_id"])
        if place is None or segment["segment_id"] in keep_from:
            continue
        starts[segment["replica_id"]] += [(one, first) for one, first in segment["epoch_starts"]]
        problems = [IndexProblem(*one) for one in segment["index_problems"]]
        said += sidecar_check.indexes(place, segment["file"], problems)
    for replica in plan.replicas:
        place = places.get(replica.replica_id)
        if place is not None:
            one = sidecar_check.leader_epochs(
                place, replica.leader_epochs, starts[replica.replica_id]
            )
            said += [] if one is None else [one]
    return said


def snapshot_statements(
    places: Mapping[int, LogPlace],
    entries: Iterable[tuple[int, int, SnapshotEntry]],
    last: LastBatches,
    open_from: Mapping[tuple[int, int, int], int],
) -> list[Statement]:
    """The first entry of each snapshot that does not fit.

    Args:
        places: By replica.
        entries: Replica id, the snapshot's offset and entry.
        last: Has seen all batches.
        open_from: (replica, producer, offset) -> first offset of what was open there.
    """
    said: dict[tuple[int, int], Statement] = {}
    for replica_id, end_offset, entry in entries:
        key = (replica_id, entry.producer_id, end_offset)
        one = sidecar_check.snapshot(
            places[replica_id],
            end_offset,
            entry,
            last.data.get(key),
            last.markers.get(key),
            open_from.get(key),
        )
        if one is not None:
            said.setdefault((replica_id, end_offset), one)
    return list(said.values())


def snapshot_entries(
    sidecars: Iterable[Row], replicas: Iterable[int]
) -> list[tuple[int, int, SnapshotEntry]]:
    """Entries of producer snapshots of some replicas, by replica and offset."""
    wanted = set(replicas)
    found = []
    for row in sidecars:
        if row["entry_kind"] == SNAPSHOT and row["replica_id"] in wanted:
            start = row["current_txn_first_offset"]
            fields = {name: row[name] for name in SnapshotEntry._fields[:-1]}
            found.append(
                (
                    row["replica_id"],
                    row["end_offset"],
                    SnapshotEntry(
                        **fields, current_txn_first_offset=-1 if start is None else start
                    ),
                )
            )
    return sorted(found)


def open_at(
    keys: Iterable[tuple[int, int, int]], runs: Iterable[Row]
) -> dict[tuple[int, int, int], int]:
    """Key (replica, producer, offset) -> first offset of the producer's transaction that was open there."""
    ends: dict[tuple[int, int], list[int]] = defaultdict(list)
    for replica_id, producer_id, end in keys:
        ends[replica_id, producer_id].append(end)
    found = {}
    for run in runs:
        first, marker = run["first_offset"], run["marker_offset"]
        if first is None or not run["is_transactional"]:
            continue
        for end in ends.get((run["replica_id"], run["producer_id"]), ()):
            if first < end and (marker is None or marker >= end):
                found[run["replica_id"], run["producer_id"], end] = first
    return found


def visibility_statements(
    plan: Plan,
    places: Mapping[int, LogPlace],
    sidecars: Iterable[Row],
    aborted: Iterable[Row],
    runs_of: Callable[[set[int]], Iterable[Row]],
    unread: Iterable[Row],
) -> list[Statement]:
    """What `.txnindex` hides or shows wrongly.

    Args:
        plan: What was found.
        places: Replicas that are replayed.
        sidecars: Rows of `bronze.sidecar`.
        aborted: Runs that an ABORT ended.
        runs_of: Gives the runs of producers.
        unread: Rows of `bronze.unreadable`: a `.txnindex` among them leaves its replica unjudged.
    """
    listed: dict[int, list[Listed]] = defaultdict(list)
    for row in sidecars:
        if row["entry_kind"] == ABORTED:
            listed[row["replica_id"]].append(Listed(*(row[name] for name in Listed._fields)))
    ended: dict[int, list[Ended]] = defaultdict(list)
    for run in aborted:
        ended[run["replica_id"]].append(_ended(run))
    dir_of = {one.replica_id: one.log_dir_path for one in plan.replicas}
    indexed = {dir_of[one.replica_id] for one in plan.files if one.kind == "txnindex"}
    broken = {row["replica_id"] for row in unread if row["file"].endswith(".txnindex")}
    asked = {
        one.producer_id
        for replica_id in listed.keys() & places.keys()
        for one in visibility.unmatched(ended[replica_id], listed[replica_id])
    }
    others: dict[int, dict[int, list[Ended]]] = defaultdict(lambda: defaultdict(list))
    for run in runs_of(asked) if asked else ():
        if run["marker_offset"] is not None:
            others[run["replica_id"]][run["producer_id"]].append(_ended(run))
    said = []
    for replica_id, place in sorted(places.items()):
        if replica_id not in broken:
            said += visibility.judge(
                place, ended[replica_id], listed[replica_id], others[replica_id],
                has_index=dir_of[replica_id] in indexed,
            )  # fmt: skip
    return said


def _ended(run: Row) -> Ended:
    first = run["first_offset"] if run["is_transactional"] else None
    return Ended(
        run["producer_id"], first, run["marker_offset"], run["marker_type"], run["marker_epoch"]
    )


def sidecar_damage(run: Run) -> Held:
    """Input of `damaged_log`: sidecars that do not fit their logs."""
    places = log_places(run.plan, run.facts, run.ingested.segments)
    said = file_statements(run.plan, places, run.ingested.segments, run.ingested.keep_from)
    replayed = {one.replica_id for one in run.facts if one.is_replayed}
    entries = snapshot_entries(sidecar_rows(run, SNAPSHOT), replayed)
    keys = [(replica_id, one.producer_id, end) for replica_id, end, one in entries]
    if keys:
        only = {"replica_id": {key[0] for key in keys}, "producer_id": {key[1] for key in keys}}
        last = LastBatches(keys)
        for piece in stored.pieces(bronze.BATCH, run.output, run.run_id, NEEDED, only):
            last.add(stated.longs(piece))
        runs = _open_somewhere(
            stored.pieces(silver.PARTITION_TXN, run.output, run.run_id, _RUN, only),
            sorted({end for _, _, end in keys}),
        )
        said += snapshot_statements(places, entries, last, open_at(keys, runs))
    return stated.held(run, said)


def _open_somewhere(pieces: Iterable[pa.Table], ends: Sequence[int]) -> Iterator[Row]:
    """Transactional runs that one of some offsets cuts: few of all."""
    at = np.array(ends, np.int64)
    for piece in pieces:
        first = pc.fill_null(piece["first_offset"], np.iinfo(np.int64).max).to_numpy()
        marker = pc.fill_null(piece["marker_offset"], np.iinfo(np.int64).max).to_numpy()
        is_cut = np.searchsorted(at, first, "right") < np.searchsorted(at, marker, "right")
        yield from piece.filter(pa.array(is_cut)).to_pylist()


def txn_index(run: Run) -> Held:
    """Input of `visibility`."""
    every = log_places(run.plan, run.facts, run.ingested.segments)
    replayed = {one.replica_id for one in run.facts if one.is_replayed}
    places = {replica_id: place for replica_id, place in every.items() if replica_id in replayed}

    def runs(only: dict[str, Iterable[Any]]) -> list[Row]:
        wanted = {name: list(values) for name, values in only.items()}
        found: pa.Table = stored.rows(silver.PARTITION_TXN, run.output, run.run_id, _RUN, wanted)
        rows: list[Row] = found.to_pylist()
        return rows

    return stated.held(run, visibility_statements(
        run.plan, places, sidecar_rows(run, ABORTED), runs({"marker_type": [visibility.ABORT]}),
        lambda producers: runs({"producer_id": producers}), run.ingested.unreadable,
    ))  # fmt: skip


def sidecar_rows(run: Run, kind: str) -> Iterator[Row]:
    """Rows of `bronze.sidecar` of replicas with that `entry_kind`, without asking Spark."""
    found = stored.pieces(bronze.SIDECAR, run.output, run.run_id, ("replica_id", "detail"))
    for piece in found:
        # The text is parsed only where the kind is in it.
        named = piece.filter(pc.match_substring(piece["detail"], json.dumps(kind)))
        for row in named.to_pylist():
            detail = json.loads(row["detail"])
            if detail["entry_kind"] == kind:
                yield {**detail, "replica_id": row["replica_id"]}
