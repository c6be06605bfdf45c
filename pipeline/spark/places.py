"""Where the copies hold an offset: file and byte position in every replica."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from pipeline.spark import stored
from schemas import bronze

Offset = tuple[int, str, int, int]
"""Copy, topic, partition and offset."""

_COLUMNS = ("replica_id", "base_offset", "position", "segment_id")


class Replica(NamedTuple):
    """A replica by its number in the run."""

    replica_id: int
    copy: int
    topic: str
    partition: int
    broker_id: int | None


def places(
    output: str,
    run_id: str,
    wanted: Collection[Offset],
    replicas: Collection[Replica],
    files: dict[int, str],
) -> dict[Offset, list[dict[str, Any]]]:
    """Looks offsets up in the run's files; a join of all rows in Spark takes ten times as long.

    Args:
        output: Output root.
        run_id: The run.
        wanted: First offsets of batches, of records of `__transaction_state` or of commits.
        replicas: All replicas of the run.
        files: Segment id -> file.

    Returns:
        For each offset that was found `broker`, `file` and `position` of every replica that holds it.
    """
    partitions = {one[:3] for one in wanted}
    known = {
        one.replica_id: one
        for one in replicas
        if (one.copy, one.topic, one.partition) in partitions
    }
    asked = set(wanted)
    only = {"replica_id": known.keys(), "base_offset": {offset for *_, offset in asked}}
    seen: set[tuple[int, int, int | None, int]] = set()
    for table in (bronze.BATCH, bronze.TXN_STATE, bronze.OFFSET_COMMIT):
        for piece in stored.pieces(table, output, run_id, _COLUMNS, only):
            seen.update(zip(*(piece[name].to_pylist() for name in _COLUMNS), strict=True))
    found: dict[Offset, list[dict[str, Any]]] = {}
    for replica_id, offset, position, segment_id in sorted(seen, key=_order):
        one = known[replica_id]
        key = (one.copy, one.topic, one.partition, offset)
        if key in asked:
            place = {
                "broker": one.broker_id,
                "file": files.get(segment_id),
                "position": position,
            }
            found.setdefault(key, []).append(place)
    return found


def _order(row: tuple[int, int, int | None, int]) -> tuple[int, int, int, int]:
    replica_id, offset, position, segment_id = row
    return replica_id, offset, -1 if position is None else position, segment_id
