"""Contents that stand twice in a partition, for `deep: true`: a second pass over the log files.

Only keyed hashes leave the reader, and they are in no table. Costs nothing where `deep` is off: nobody asks for it.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.replay import repeats
from pipeline.replay.repeats import Repeat, Written
from pipeline.replay.statement import Statement
from pipeline.spark import stated, stateful, stored
from pipeline.spark.files import EXPORT, TEXT, kind_of, opened
from pipeline.spark.inventory import Plan
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.run import Run
from pipeline.spark.tables import Held
from pipeline.spark.tasks import Task, bins, tasks_of
from pipeline.wire.arrays import Array, Chunk
from pipeline.wire.batch import CONTROL_COMMIT, Damage
from pipeline.wire.content import contents
from pipeline.wire.errors import WireError
from pipeline.wire.scan import scan
from schemas import silver
from schemas.codes import METADATA_TOPIC, OFFSETS_TOPIC, TXN_TOPIC

KEY_BYTES = 32
_INTERNAL = (TXN_TOPIC, OFFSETS_TOPIC, METADATA_TOPIC)
_SHARES_PER_CORE = 4
_ROWS = 100_000
"""Hashes that a task holds."""
Row = Mapping[str, Any]
_RUN = ("replica_id", "producer_id", "marker_offset", "first_offset")
_GROUP = ("replica_id", "digest")
_HASHED = pa.schema(
    [("replica_id", pa.int64()), ("digest", pa.binary())]
    + [(name, pa.int64()) for name in Written._fields]
)
_HASHED_DDL = "replica_id bigint, digest binary, " + ", ".join(
    f"{name} bigint" for name in Written._fields
)
_PAIR_NAMES = tuple(f"{which}_{name}" for which in ("earlier", "later") for name in Written._fields)
_PAIRS = pa.schema(
    [("replica_id", pa.int64()), ("label", pa.string())]
    + [(name, pa.int64()) for name in _PAIR_NAMES]
)
PAIR = tuple(_PAIRS.names)
"""Columns of a pair."""
_PAIRS_DDL = "replica_id bigint, label string, " + ", ".join(
    f"{name} bigint" for name in _PAIR_NAMES
)


class Committed(NamedTuple):
    """Committed runs of one replica, by producer and marker: what readers of read_committed get.

    Attributes:
        producer_id: Sorted.
        marker_offset: Sorted within each producer.
        first_offset: First offset of the run.
    """

    producer_id: Array
    marker_offset: Array
    first_offset: Array

    def holds(self, producer_id: int, offset: int) -> bool:
        """Whether a transactional batch at this offset was committed."""
        low, high = np.searchsorted(self.producer_id, [producer_id, producer_id + 1])
        at = low + int(np.searchsorted(self.marker_offset[low:high], offset))
        # A marker that ended no records committed none: the record belongs to an earlier, aborted run.
        return bool(at < high and 0 <= self.first_offset[at] <= offset)


def committed(rows: pa.Table) -> dict[int, Committed]:
    """Replica -> its committed runs.

    Args:
        rows: replica_id, producer_id, marker_offset and first_offset of `silver.partition_txn`.
    """
    one = stated.longs(rows)
    order = np.lexsort((one["marker_offset"], one["producer_id"], one["replica_id"]))
    replicas, starts = np.unique(one["replica_id"][order], return_index=True)
    parts = np.split(order, starts[1:]) if len(replicas) else []
    return {
        int(replica): Committed(*(one[name][part] for name in Committed._fields))
        for replica, part in zip(replicas, parts, strict=True)
    }


def hashed(
    task: Task, start: int, key: bytes, runs: Committed | None
) -> Iterator[tuple[bytes, Written]]:
    """Hashes of the records of one file that can be read; damage is told by the first pass.

    Args:
        task: A log file or a part of one.
        start: First offset that counts.
        key: Key of the hash.
        runs: Committed runs of its replica; None when there are none.
    """
    try:
        with opened(task.path) as file:
            pieces = scan(
                file.read_at,
                file.size,
                start=task.start,
                end=task.end,
                first_offset=task.base_offset,
            )
            for piece in pieces:
                if not isinstance(piece, Damage):
                    yield from _of_chunk(piece, start, key, runs)
    except OSError:
        return


def _of_chunk(
    chunk: Chunk, start: int, key: bytes, runs: Committed | None
) -> Iterator[tuple[bytes, Written]]:
    one = chunk.arrays
    wanted = (
        ~one.is_control & (one.magic == 2) & (one.records_count > 0) & (one.base_offset >= start)
    )
    for index in np.flatnonzero(wanted).tolist():
        base, producer_id = int(one.base_offset[index]), int(one.producer_id[index])
        if one.is_transactional[index] and (runs is None or not runs.holds(producer_id, base)):
            continue
        about = producer_id, int(one.producer_epoch[index]), int(one.is_transactional[index])
        try:
            for record in contents(chunk.batch_bytes(index), key):
                yield record.digest, Written(base, record.offset, *about, record.create_ms)
        except WireError:
            continue  # nothing to compare in it; whether it is damage is not asked here


def _reader(
    shares: list[list[Task]],
    starts: Mapping[int, int],
    key: bytes,
    runs: Mapping[int, Committed],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: numbers of shares -> hashes."""

    def rows(task: Task) -> Iterator[pa.RecordBatch]:
        found = hashed(task, starts[task.segment_id], key, runs.get(task.replica_id))
        while some := list(islice(found, _ROWS)):
            yield batch_of(task, some)

    def batch_of(task: Task, found: list[tuple[bytes, Written]]) -> pa.RecordBatch:
        columns = [
            pa.array([task.replica_id] * len(found), pa.int64()),
            pa.array([digest for digest, _ in found], pa.binary()),
            *(
                pa.array([getattr(one, name) for _, one in found], pa.int64())
                for name in Written._fields
            ),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_HASHED)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for task in shares[number]:
                    yield from rows(task)

    return run


def _compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hashes sorted by replica, digest and offset -> pairs."""
    rows = (row for batch in batches for row in _likely(batch))
    for (replica_id, _), same in groupby(rows, key=itemgetter(0, 1)):
        found = [
            (replica_id, one.label, *one.earlier, *one.later)
            for one in repeats.repeats(Written(*row[2:]) for row in same)
        ]
        if found:
            columns = [
                pa.array(values, field.type)
                for values, field in zip(zip(*found, strict=True), _PAIRS, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_PAIRS)


def _likely(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Rows whose digest is that of a neighbour; the first and the last of a batch may have one in the next."""
    if not batch.num_rows:
        return iter(())
    digest = batch.column("digest")
    same = pc.equal(digest.slice(1), digest.slice(0, batch.num_rows - 1)).to_numpy(
        zero_copy_only=False
    )
    edge = np.array([True])
    keep = np.concatenate((edge, same)) | np.concatenate((same, edge))
    columns = batch.filter(pa.array(keep)).columns
    return zip(*(column.to_pylist() for column in columns), strict=True)


def statements(facts: Iterable[ReplicaFacts], pairs: Iterable[Row]) -> list[Statement]:
    """What is said of each batch.

    Args:
        facts: All replicas.
        pairs: Rows of replica_id, label, and both records.
    """
    by_replica: dict[int, list[Repeat]] = defaultdict(list)
    for row in pairs:
        earlier, later = (
            Written(*(row[f"{which}_{name}"] for name in Written._fields))
            for which in ("earlier", "later")
        )
        by_replica[row["replica_id"]].append(Repeat(row["label"], earlier, later))
    return [
        said
        for one in facts
        for said in repeats.statements(
            one.copy, one.topic, one.partition, by_replica.get(one.replica_id, [])
        )
    ]


def tasks_to_hash(
    plan: Plan,
    facts: Iterable[ReplicaFacts],
    keep_from: Mapping[int, int],
    whole: Collection[int] = (),
) -> tuple[list[Task], dict[int, int]]:
    """Log files of the replicas that stand for user partitions, and segment id -> first offset that counts."""
    starts = {
        one.replica_id: one.log_start_offset or 0
        for one in facts
        if one.is_replayed and one.topic not in _INTERNAL
    }
    tasks = [
        task
        for task in tasks_of(plan, ("log",), whole=whole)
        if task.replica_id in starts and kind_of(task.path) not in (TEXT, EXPORT)
    ]
    return tasks, {
        task.segment_id: max(starts[task.replica_id], keep_from.get(task.segment_id, 0))
        for task in tasks
    }


def content_repeats(run: Run) -> Held:
    """Input of `content_duplicate`."""
    tasks, starts = tasks_to_hash(run.plan, run.facts, run.ingested.keep_from, run.ingested.whole)
    only = {"marker_type": [CONTROL_COMMIT]}
    rows = stored.rows(silver.PARTITION_TXN, run.output, run.run_id, _RUN, only)
    spark = run.spark
    cores = max(spark.sparkContext.defaultParallelism, 1)
    shares = bins(tasks, cores * _SHARES_PER_CORE)
    if not shares:
        return stated.held(run, [])
    reader = _reader(shares, starts, secrets.token_bytes(KEY_BYTES), committed(rows))
    numbers = spark.range(0, len(shares), 1, len(shares))
    hashes = numbers.mapInArrow(reader, _HASHED_DDL)
    ordered = stateful.sorted_rows(hashes, keys=_GROUP, order=("offset",))
    pairs = ordered.mapInArrow(_compare, _PAIRS_DDL).toArrow().to_pylist()
    return stated.held(run, statements(run.facts, pairs))
