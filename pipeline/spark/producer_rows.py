"""Arrow in, Arrow out: runs of all producers of one replica from packs of its batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.replay.columns import Longs
from pipeline.replay.producer_arrays import HIGH, INPUT, LOW, ProducerRuns
from pipeline.spark import columnar


class Place(NamedTuple):
    """A replayed replica, and the task that gets its batches."""

    replica_id: int
    copy: int
    topic: str
    partition: int
    history_start_offset: int
    is_offsets: bool
    share: int


KIND = "batch"
STEP_ROWS = 1 << 15
"""Batches that a task looks at together."""


def source(
    files: Sequence[str], places: Sequence[Place], keep_from: dict[int, int]
) -> columnar.Source:
    """Batches of producers in the replayed replicas, all of a replica in one share.

    Args:
        files: Of `bronze.batch`.
        places: The replayed replicas.
        keep_from: As `columnar.counted`.
    """
    replicas = pa.array([one.replica_id for one in places], pa.int64())
    shares = np.array([one.share for one in places], np.int64)

    def route(rows: pa.Table) -> columnar.Routed:
        mine = pc.is_in(rows["replica_id"], value_set=replicas)
        rows = rows.filter(pc.and_(mine, pc.greater_equal(rows["producer_id"], 0)))
        rows = columnar.counted(rows, keep_from)
        at = pc.index_in(rows["replica_id"].combine_chunks(), value_set=replicas).to_numpy()
        return columnar.Routed(
            rows.select(INPUT),
            shares[at],
            at.astype(np.int64),
            rows["base_offset"].to_numpy(),
            rows["segment_id"].to_numpy(),
        )

    return columnar.Source(KIND, files, ("segment_id", "replica_id", *INPUT), route)


def runs(packs: Iterable[columnar.Pack], history_start_offset: int, is_offsets: bool) -> pa.Table:
    """Runs as `pipeline.spark.history.runs` gives them, without `replica_id`.

    Args:
        packs: Of one replica, by their lowest offset.
        history_start_offset: Below it history was cut.
        is_offsets: The partition belongs to `__consumer_offsets`.
    """
    producers = ProducerRuns(history_start_offset, is_offsets)
    for batches in _steps(packs):
        producers.add(batches)
    return _table(producers.runs())


def _steps(packs: Iterable[columnar.Pack]) -> Iterator[dict[str, Longs]]:
    """Batches in offset order, whatever the order in a file was."""
    held: list[pa.Table] = []
    count = 0
    for pack in packs:
        if count >= STEP_ROWS:
            # A pack may hold two stretches of a log, with those of other packs between them.
            rows = pa.concat_tables(held)
            is_before = pc.less(rows["base_offset"], pack.first)
            yield _arrays(rows.filter(is_before))
            held = [rows.filter(pc.invert(is_before))]
            count = len(held[0])
        held.append(pack.rows)
        count += len(pack.rows)
    if held:
        yield _arrays(pa.concat_tables(held))


def _arrays(rows: pa.Table) -> dict[str, Longs]:
    arrays = {name: pc.fill_null(pc.cast(rows[name], pa.int64()), LOW).to_numpy() for name in INPUT}
    offsets = arrays["base_offset"]
    if (np.diff(offsets) > 0).all():
        return arrays
    order = np.argsort(offsets, kind="stable")
    return {name: values[order] for name, values in arrays.items()}


def _table(found: dict[str, Longs]) -> pa.Table:
    """Takes the columns out of `found` one by one, so that they do not stand there twice."""
    txn_first, data_first = found.pop("txn_first_offset"), found.pop("data_first_offset")
    is_transactional = found.pop("is_transactional") > 0
    before = found.pop("max_epoch_before")
    columns = {
        "first_offset": _nullable(np.where(txn_first != HIGH, txn_first, data_first)),
        "is_transactional": pa.array(is_transactional),
        "is_open": pa.array(is_transactional & (found.pop("has_marker") == 0)),
        "max_epoch_before": pa.array(before, mask=before < 0),
    }
    for name in tuple(found):
        columns[name] = _nullable(found.pop(name))
    return pa.table(columns)


def _nullable(values: Longs) -> pa.Array:
    return pa.array(values, mask=(values == LOW) | (values == HIGH))


NO_RUNS = _table(ProducerRuns(0, False).runs())
