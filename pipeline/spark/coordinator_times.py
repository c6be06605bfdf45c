"""When the copied coordinators wrote: asked of the run's files, which is faster than a Spark job for four columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.replay.alive import Alive, alive, needed
from pipeline.spark import stored
from schemas import bronze

Longs = NDArray[np.int64]
_COLUMNS = (
    "replica_id",
    "partition_leader_epoch",
    "base_offset",
    "max_timestamp_ms",
    "txn_timeout_ms",
)


def coordinator_times(
    output: str, run_id: str, starts: Mapping[int, int]
) -> tuple[dict[int, dict[int, Alive]], dict[int, int | None], int]:
    """How long each leader epoch lived, first append times of the coordinators' logs, longest timeout granted.

    Args:
        output: Output root.
        run_id: The run.
        starts: Replica of `__transaction_state` -> offset from which its history is complete.

    Returns:
        Replica -> leader epoch -> how long it lived; replica -> ms of the first record at or above its start; and the
        longest transaction timeout in ms, 0 without any.
    """
    kept: dict[tuple[int, int], list[tuple[Longs, Longs]]] = defaultdict(list)
    lowest: dict[int, tuple[int, int | None]] = {}
    longest_ms = 0
    for piece in stored.pieces(bronze.TXN_STATE, output, run_id, _COLUMNS):
        longest_ms = max(longest_ms, pc.max(piece["txn_timeout_ms"]).as_py() or 0)
        for replica, epoch, offsets, ms in _times(piece):
            if replica in starts:
                kept[replica, epoch].append((offsets, ms))
        for replica in pc.unique(piece["replica_id"]).to_pylist():
            if replica in starts:
                _lower(lowest, replica, _first(piece, replica, starts[replica]))
    newest: dict[int, dict[int, Alive]] = defaultdict(dict)
    for (replica, epoch), parts in kept.items():
        offsets, ms = (np.concatenate(one) for one in zip(*parts, strict=True))
        newest[replica][epoch] = alive(ms[np.argsort(offsets, kind="stable")])
    return dict(newest), {replica: ms for replica, (_, ms) in lowest.items()}, longest_ms


def _times(piece: pa.Table) -> Iterator[tuple[int, int, Longs, Longs]]:
    """Replica, leader epoch, and the offsets and times of those of its appends that matter."""
    names = ["replica_id", "partition_leader_epoch", "base_offset", "max_timestamp_ms"]
    held = piece.select(names).drop_null()
    replicas, epochs, offsets, ms = (column.to_numpy() for column in held.columns)
    order = np.lexsort((offsets, epochs, replicas))
    begins = np.flatnonzero(np.diff(replicas[order]) | np.diff(epochs[order])) + 1
    for rows in np.split(order, begins) if len(order) else ():
        mine = rows[needed(ms[rows])]
        yield int(replicas[rows[0]]), int(epochs[rows[0]]), offsets[mine], ms[mine]


def _first(piece: pa.Table, replica: int, start: int) -> tuple[int, int | None] | None:
    """Offset and time of the first record of a replica at or above its start."""
    counts = pc.and_(
        pc.equal(piece["replica_id"], replica), pc.greater_equal(piece["base_offset"], start)
    )
    held = piece.filter(counts)
    if not held.num_rows:
        return None
    row = held.slice(pc.index(held["base_offset"], pc.min(held["base_offset"])).as_py(), 1)
    return row["base_offset"][0].as_py(), row["max_timestamp_ms"][0].as_py()


def _lower(
    lowest: dict[int, tuple[int, int | None]], replica: int, found: tuple[int, int | None] | None
) -> None:
    if found is not None and (replica not in lowest or found[0] < lowest[replica][0]):
        lowest[replica] = found
