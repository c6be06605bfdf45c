"""Arrow in, Arrow out: packs of batches and of transactions -> aligned and judged data partitions."""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.replay.combined import combined
from pipeline.spark import columnar, producer_rows
from pipeline.spark.arrow import arrow_schema
from pipeline.spark.extent import Row
from pipeline.spark.ownership_rows import SAME
from pipeline.spark.partition_input import KEYS, PROMISE, RUN, Coverage, Key
from pipeline.spark.partition_rows import judged
from pipeline.spark.producer_rows import Place
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.stateful import groups
from schemas import silver
from schemas.codes import OFFSETS_TOPIC

ELSEWHERE = -1
"""Place of transactions that list partitions without a replayed replica."""

_TRANSACTION = ("copy", "first_step_offset", "ongoing_leader_epoch", "partitions", *SAME)
_OWNER = {
    "is_current": "owner_is_current",
    "append_ms": "owner_append_ms",
    "transactional_id": "transactional_id",
    "coordinator_partition": "coordinator_partition",
    "state": "owner_state",
    "producer_epoch": "owner_epoch",
    "transaction_version": "owner_version",
}
"""Columns of an owner, by which the best one is chosen in this order, and their names beside a run."""


def places(
    facts: Sequence[ReplicaFacts], segments: Sequence[Row], shares: int
) -> tuple[Place, ...]:
    """The replayed replicas, large ones first into the emptiest share.

    Args:
        facts: All replicas.
        segments: Rows of `bronze.segment`.
        shares: Number of tasks.
    """
    batches: dict[int, int] = {}
    for segment in segments:
        replica = segment["replica_id"]
        batches[replica] = batches.get(replica, 0) + segment["batch_count"]
    mine = [one for one in facts if one.is_replayed]
    mine.sort(key=lambda one: (-batches.get(one.replica_id, 0), one.replica_id))
    loads = [(0, share) for share in range(shares)]
    found = []
    for one in mine:
        load, share = heapq.heappop(loads)
        heapq.heappush(loads, (load + batches.get(one.replica_id, 0) + 1, share))
        found.append(
            Place(
                one.replica_id,
                one.copy,
                one.topic,
                one.partition,
                one.history_start_offset,
                one.topic == OFFSETS_TOPIC,
                share,
            )
        )
    return tuple(found)


def source(files: Sequence[str], places: Sequence[Place], shares: int) -> columnar.Source:
    """One row for each partition that a transaction lists, where that partition's batches are.

    Args:
        files: Of `silver.transaction`.
        places: The replayed replicas.
        shares: Number of tasks.
    """
    known = {
        (one.copy, one.topic, one.partition): (one.share, place) for place, one in enumerate(places)
    }

    def place_of(key: Key) -> tuple[int, int]:
        return known.get(key) or (zlib.crc32(repr(key).encode()) % shares, ELSEWHERE)

    def route(rows: pa.Table) -> columnar.Routed:
        promised = _promises(rows)
        topics, topic = columnar.encoded(promised["topic"])
        keys = (promised["copy"].to_numpy(), topic, promised["partition"].to_numpy())
        different = combined(*keys)
        each = zip(*(column[different.first].tolist() for column in keys), strict=True)
        of_key = np.array(
            [place_of((copy, topics[at], partition)) for copy, at, partition in each], np.int64
        ).reshape(-1, 2)
        share, place = of_key[different.number].T
        zeros = np.zeros(len(promised), np.int64)
        return columnar.Routed(promised, share, place, zeros, zeros)

    return columnar.Source(PROMISE, files, _TRANSACTION, route)


def _promises(rows: pa.Table) -> pa.Table:
    """The same as `ownership_rows.promises` for rows of one file."""
    lists = rows["partitions"].combine_chunks()
    listed = lists.flatten()
    repeated = rows.take(pc.list_parent_indices(lists))
    columns = {name: repeated[name] for name in ("copy", *SAME)}
    columns |= {name: pc.struct_field(listed, name) for name in ("topic", "partition", "added_ms")}
    columns["kind"] = pa.repeat(PROMISE, len(listed))
    columns["transaction_offset"] = repeated["first_step_offset"]
    columns["leader_epoch"] = pc.coalesce(
        repeated["prepare_leader_epoch"], repeated["ongoing_leader_epoch"]
    )
    return pa.table(columns)


class Owners:
    """One owner a producer id, as `ownership_rows.owner_of`; the files are read by the task that asks first.

    Args:
        files: Of `silver.owner`.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self.files = tuple(files)
        self.rows: pa.Table | None = None

    def beside(self, runs: pa.Table, copy: int) -> pa.Table:
        """Adds what is known of the owners of runs; null where nobody held the producer id."""
        best: dict[int, tuple[Any, ...]] = {}
        mine = self._read() if len(runs) else _owner_schema().empty_table()
        wanted = pc.and_(
            pc.equal(mine["copy"], copy),
            pc.is_in(mine["producer_id"], value_set=runs["producer_id"].unique()),
        )
        for row in mine.filter(wanted).to_pylist():
            values = tuple(row[name] for name in _OWNER)
            known = best.get(row["producer_id"])
            if known is None or _rank(values) > _rank(known):
                best[row["producer_id"]] = values
        producers = pa.array(list(best), pa.int64())
        at = pc.index_in(runs["producer_id"].combine_chunks(), value_set=producers)
        for number, (name, beside) in enumerate(_OWNER.items()):
            values = pa.array([one[number] for one in best.values()], mine.schema.field(name).type)
            runs = runs.append_column(beside, values.take(at))
        return runs

    def _read(self) -> pa.Table:
        if self.rows is None:
            read = [pq.ParquetFile(file).read(_owner_schema().names) for file in self.files]
            schema = _owner_schema()
            self.rows = pa.concat_tables(
                [schema.empty_table(), *(one.cast(schema) for one in read)]
            )
        return self.rows


def _owner_schema() -> pa.Schema:
    names = ("copy", "producer_id", *_OWNER)
    return pa.schema([arrow_schema(silver.OWNER).field(name) for name in names])


def _rank(owner: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """Spark's order of structs: a null is the lowest; a missing time counts as -1."""
    is_current, append_ms, *others = owner
    values = (is_current, -1 if append_ms is None else append_ms, *others)
    return tuple((one is not None, one) if one is not None else (False, 0) for one in values)


def aligner(
    places: Sequence[Place], owners: Owners, coverage: Coverage
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: rows of `columnar.PACKED` -> rows of `PARTITION_HISTORY`.

    Args:
        places: The replayed replicas.
        owners: Who holds which producer id.
        coverage: How far everything was read.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, found in groupby(columnar.packs(batches), attrgetter("place")):
            if number == ELSEWHERE:
                yield from _elsewhere(pa.concat_tables([pack.rows for pack in found]))
            else:
                yield from _here(places[number], found)

    def _here(place: Place, found: Iterable[columnar.Pack]) -> Iterator[pa.RecordBatch]:
        runs, promised = producer_rows.NO_RUNS, _NO_PROMISES
        for kind, packs in groupby(found, attrgetter("kind")):
            if kind == PROMISE:
                promised = pa.concat_tables([pack.rows for pack in packs])
            else:
                runs = producer_rows.runs(packs, place.history_start_offset, place.is_offsets)
        runs = owners.beside(_placed(runs, place), place.copy)
        key = (place.copy, place.topic, place.partition)
        yield from judged(key, runs, promised, coverage)

    def _elsewhere(promised: pa.Table) -> Iterator[pa.RecordBatch]:
        order = [(name, "ascending") for name in KEYS]
        batches = promised.sort_by(order).combine_chunks().to_batches()
        for rows in groups(iter(batches), KEYS):
            copy, topic, partition = (rows[name][0].as_py() for name in KEYS)
            nowhere = Place(0, copy, topic, partition, 0, False, 0)
            runs = owners.beside(_placed(producer_rows.NO_RUNS, nowhere), copy)
            yield from judged((copy, topic, partition), runs, rows, coverage)

    return run


def _placed(runs: pa.Table, place: Place) -> pa.Table:
    """Runs with where they are."""
    beside = {
        "kind": pa.repeat(RUN, len(runs)),
        "replica_id": pa.repeat(pa.scalar(place.replica_id, pa.int64()), len(runs)),
        "copy": pa.repeat(pa.scalar(place.copy, pa.int32()), len(runs)),
        "topic": pa.repeat(place.topic, len(runs)),
        "partition": pa.repeat(pa.scalar(place.partition, pa.int32()), len(runs)),
    }
    for name, values in beside.items():
        runs = runs.append_column(name, values)
    return runs


_NO_PROMISES = _promises(
    pa.schema([arrow_schema(silver.TRANSACTION).field(name) for name in _TRANSACTION]).empty_table()
)
