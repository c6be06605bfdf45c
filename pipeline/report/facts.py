"""What the page draws, read from the run's tables: arrays of the few columns that each picture needs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.spark import stored
from schemas import bronze, silver
from schemas.codes import GROUP_RECORDS
from schemas.table import Table

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
NO_TIME = -1


class Columns:
    """Columns of equal length: numbers as int64 with -1 for null, texts as codes of their distinct values.

    Args:
        rows: What they come from.
    """

    def __init__(self, rows: pa.Table) -> None:
        self._numbers: dict[str, Array] = {}
        self.words: dict[str, list[str]] = {}
        for name in rows.column_names:
            column = rows[name].combine_chunks()
            if pa.types.is_string(column.type):
                encoded = column.dictionary_encode()
                self.words[name] = encoded.dictionary.to_pylist()
                column = encoded.indices
            self._numbers[name] = pc.fill_null(column.cast(pa.int64()), NO_TIME).to_numpy()

    def __getitem__(self, name: str) -> Array:
        """The column as numbers."""
        return self._numbers[name]

    def is_any(self, name: str, *words: str) -> Array:
        """Which rows hold one of these texts."""
        codes = [code for code, word in enumerate(self.words[name]) if word in words]
        return np.isin(self[name], codes)

    def counts(self, name: str, where: Array | None = None) -> Counter[str]:
        """Text -> how many rows hold it."""
        codes = self[name] if where is None else self[name][where]
        counted = np.bincount(codes[codes >= 0], minlength=len(self.words[name]))
        return Counter(
            {word: int(n) for word, n in zip(self.words[name], counted, strict=True) if n}
        )


class Facts:
    """A run's tables, each read once, when it is asked for.

    Args:
        output: Output root.
        run_id: The run.
    """

    def __init__(self, output: str, run_id: str) -> None:
        self.output, self._run_id = output, run_id
        self.replicas = self._rows(silver.REPLICA).to_pylist()

    @cached_property
    def transactions(self) -> Columns:
        """Transactions of the coordinators."""
        columns = [
            "transactional_id",
            "cause",
            "transaction_version",
            "txn_timeout_ms",
            "start_ms",
            "ongoing_ms",
            "prepare_ms",
            "complete_ms",
            "producer_epoch",
            "producer_id",
        ]
        return Columns(self._rows(silver.TRANSACTION, columns))

    def owners(self) -> list[Row]:
        """Who holds which producer id now."""
        names = ("transactional_id", "producer_id", "producer_epoch", "is_current", "append_ms")
        return list(self._rows(silver.OWNER, names).to_pylist())

    @cached_property
    def runs(self) -> Columns:
        """Runs of producers in partitions."""
        columns = [
            "copy",
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
        return Columns(self._rows(silver.PARTITION_TXN, columns))

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
        for piece in stored.pieces(bronze.BATCH, self.output, self._run_id, names, wanted):
            held = Columns(piece)
            is_data = held["is_control"] != 1
            for name, mask in (
                ("plain", held["producer_id"] < 0),
                ("transactional", held["is_transactional"] == 1),
                ("idempotent", (held["producer_id"] >= 0) & (held["is_transactional"] != 1)),
            ):
                found[name] += int(held["records_count"][mask & is_data].sum())
        return found

    def pieces(
        self, table: Table, columns: Sequence[str], only: dict[str, Collection[Any]] | None = None
    ) -> Iterator[pa.Table]:
        """Rows of a logical table, a piece at a time; those with the wanted values of columns."""
        return stored.pieces(table, self.output, self._run_id, columns, only)

    def generations(self, groups: Collection[str]) -> list[Row]:
        """Records of groups' generations (epochs of the newer protocols), in log order."""
        wanted = {"replica_id": [one["replica_id"] for one in self.replicas if one["is_replayed"]]}
        if not groups or not wanted["replica_id"]:
            return []
        names = ("detail",)
        found: dict[tuple[str, int], Row] = {}
        for piece in stored.pieces(bronze.GROUP_METADATA, self.output, self._run_id, names, wanted):
            for text in piece["detail"].to_pylist():
                row = json.loads(text)
                is_one = row["record_type"] in GROUP_RECORDS and row.get("group_id") in groups
                if is_one and row["generation_or_epoch"] is not None:
                    found[row["group_id"], row["base_offset"]] = row
        return [found[key] for key in sorted(found)]

    def _rows(self, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
        return stored.rows(table, self.output, self._run_id, columns)


def thinned(times: Array, values: Array, limit: int = 240) -> list[tuple[float, float]]:
    """At most about `limit` points in time order, the highest of each stretch kept."""
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    if len(times) > limit:
        starts = np.arange(0, len(times), -(-len(times) // limit))
        peaks = np.maximum.reduceat(values, starts)
        stretch = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(times))))
        _, first = np.unique(np.where(values == peaks[stretch], stretch, -1), return_index=True)
        chosen = np.sort(first[values[first] == peaks[stretch[first]]])
        times, values = times[chosen], values[chosen]
    return list(zip(times.astype(float).tolist(), values.astype(float).tolist(), strict=True))
