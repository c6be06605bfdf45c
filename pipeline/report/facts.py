"""What the page draws, read from the run's tables: arrays of the few columns that each picture needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.spark import stored
from schemas import bronze, silver
from schemas.table import Table

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
MAX_ROWS = 200_000
"""Rows of one kind that the timelines may hold."""
NO_TIME = -1


class Facts:
    """A run's tables, each read when it is asked for.

    Args:
        output: Output root.
        run_id: The run.
    """

    def __init__(self, output: str, run_id: str) -> None:
        self._output, self._run_id = output, run_id
        self.replicas = self._rows(silver.REPLICA).to_pylist()

    def transactions(self) -> dict[str, Array]:
        """Transactions of the coordinators, as arrays; -1 stands for no value."""
        columns = [
            "transactional_id",
            "cause",
            "outcome",
            "state",
            "transaction_version",
            "txn_timeout_ms",
            "start_ms",
            "ongoing_ms",
            "prepare_ms",
            "complete_ms",
            "partition_count",
            "producer_epoch",
            "producer_id",
        ]
        return _arrays(self._rows(silver.TRANSACTION, columns))

    def owners(self) -> list[Row]:
        """Who holds which producer id now."""
        names = ("transactional_id", "producer_id", "producer_epoch", "is_current", "append_ms")
        return list(self._rows(silver.OWNER, names).to_pylist())

    def runs(self) -> dict[str, Array]:
        """Runs of producers in partitions, as arrays; -1 stands for no value."""
        columns = [
            "topic",
            "partition",
            "producer_id",
            "transactional_id",
            "is_transactional",
            "is_open",
            "first_offset",
            "record_count",
            "marker_offset",
            "marker_type",
            "marker_ms",
        ]
        return _arrays(self._rows(silver.PARTITION_TXN, columns))

    def records_by_kind(self) -> Counter[str]:
        """Records of user topics: without a producer id, idempotent, transactional."""
        names = ["replica_id", "producer_id", "records_count", "is_transactional", "is_control"]
        users = {
            one["replica_id"]
            for one in self.replicas
            if one["is_replayed"] and not one["topic"].startswith("__")
        }
        found: Counter[str] = Counter()
        wanted = {"replica_id": users}
        for piece in stored.pieces(bronze.BATCH, self._output, self._run_id, names, wanted):
            held = _arrays(piece)
            is_data = held["is_control"] != 1
            for name, mask in (
                ("plain", held["producer_id"] < 0),
                ("transactional", held["is_transactional"] == 1),
                ("idempotent", (held["producer_id"] >= 0) & (held["is_transactional"] != 1)),
            ):
                found[name] += int(held["records_count"][mask & is_data].sum())
        return found

    def batches(self, producers: Collection[int]) -> list[Row]:
        """Data batches of producers in replayed replicas, with the topic and partition of each."""
        places = {
            one["replica_id"]: (one["topic"], one["partition"])
            for one in self.replicas
            if one["is_replayed"]
        }
        names = [
            "replica_id",
            "producer_id",
            "producer_epoch",
            "base_offset",
            "last_offset",
            "max_timestamp_ms",
            "timestamp_type",
            "is_control",
        ]
        wanted = {"producer_id": producers, "replica_id": places}
        rows = self._some(bronze.BATCH, names, wanted)
        for row in rows:
            row["topic"], row["partition"] = places[row["replica_id"]]
        return [row for row in rows if not row["is_control"]]

    def markers(self, producers: Collection[int]) -> list[Row]:
        """Markers of producers, from the runs that they close."""
        names = ["topic", "partition", "producer_id", "marker_offset", "marker_type", "marker_ms"]
        names += ["marker_epoch"]
        rows = self._some(silver.PARTITION_TXN, names, {"producer_id": producers})
        return [row for row in rows if row["marker_offset"] is not None]

    def steps(self, ids: Collection[str], producers: Collection[int]) -> list[Row]:
        """Coordinator records of transactional ids, and of the ids that hold a producer id."""
        names = [
            "transactional_id",
            "producer_id",
            "producer_epoch",
            "coordinator_partition",
            "offset",
            "append_ms",
            "state",
            "cause",
            "violation",
        ]
        found = self._some(silver.COORDINATOR_STEP, names, {"transactional_id": ids})
        known = {(one["coordinator_partition"], one["offset"]) for one in found}
        more = self._some(silver.COORDINATOR_STEP, names, {"producer_id": producers})
        fresh = [one for one in more if (one["coordinator_partition"], one["offset"]) not in known]
        return found + fresh

    def commits(self, groups: Collection[str]) -> list[Row]:
        """Offset commits of consumer groups."""
        names = [
            "group_id",
            "topic",
            "partition",
            "record_offset",
            "committed_offset",
            "append_ms",
            "outcome",
            "is_transactional",
            "producer_id",
        ]
        return self._some(silver.COMMITTED_OFFSET, names, {"group_id": groups})

    def _rows(self, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
        return stored.rows(table, self._output, self._run_id, columns)

    def _some(
        self, table: Table, columns: Sequence[str], only: dict[str, Collection[Any]]
    ) -> list[Row]:
        """Rows of a table as dictionaries, of which there may be many: no more than `MAX_ROWS`."""
        if not all(only.values()):
            return []
        found: list[Row] = []
        for piece in stored.pieces(table, self._output, self._run_id, columns, only):
            found += piece.slice(0, MAX_ROWS - len(found)).to_pylist()
            if len(found) >= MAX_ROWS:
                break
        return found


def _arrays(rows: pa.Table) -> dict[str, Array]:
    """Columns as numpy arrays: numbers and booleans as int64 with -1 for null, texts as objects."""
    found: dict[str, Array] = {}
    for name in rows.column_names:
        column = rows[name]
        if pa.types.is_string(column.type):
            found[name] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=object)
        else:
            found[name] = pc.fill_null(column.cast(pa.int64()), NO_TIME).to_numpy()
    return found


def thinned(points: Iterable[tuple[float, float]], limit: int = 240) -> list[tuple[float, float]]:
    """At most about `limit` points in time order, the highest of each stretch kept."""
    ordered = sorted(points)
    if len(ordered) <= limit:
        return ordered
    width = -(-len(ordered) // limit)
    stretches = [ordered[at : at + width] for at in range(0, len(ordered), width)]
    return [max(one, key=lambda point: point[1]) for one in stretches]
