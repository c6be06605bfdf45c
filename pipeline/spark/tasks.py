"""What one reader does: files, and parts of large ones, balanced over the cores."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from typing import NamedTuple

from pipeline.spark.files import is_forward_only, stream_of
from pipeline.spark.inventory import Plan, SourceFile
from pipeline.spark.split import PART_BYTES, split_points

READ_KINDS = ("log", "snapshot", "txnindex")
INDEX_KINDS = ("index", "timeindex")
FILE_COST_BYTES = 20_000
"""What opening a file costs, in bytes read."""


class Task(NamedTuple):
    """One file, or a part of a large one, for one reader.

    Attributes:
        path: Where to read.
        name: Path below its input root.
        kind: log, snapshot or txnindex.
        base_offset: Offset in the file's name.
        replica_id: Replica.
        segment_id: Segment.
        topic: Topic; decides how records are read.
        size: Bytes of the file when it was listed.
        start: First byte; a batch begins there.
        end: Batches that begin at or behind it belong to another task; None to the end.
        indexes: Kind (index, timeindex) and path of the indexes that lie beside a log.
    """

    path: str
    name: str
    kind: str
    base_offset: int
    replica_id: int
    segment_id: int
    topic: str
    size: int
    start: int = 0
    end: int | None = None
    indexes: tuple[tuple[str, str], ...] = ()

    @property
    def cost(self) -> int:
        """Work, in bytes."""
        end = self.size if self.end is None else self.end
        return max(end - self.start, 0) + FILE_COST_BYTES


def tasks_of(
    plan: Plan,
    kinds: Collection[str] = READ_KINDS,
    whole: Collection[int] = (),
    part_bytes: int = PART_BYTES,
) -> list[Task]:
    """One task a file or part, by name and position.

    Args:
        plan: The input.
        kinds: Kinds of files to read.
        whole: Segments that must not be split, because their index lied.
        part_bytes: Wanted size of a part of a large file.
    """
    beside = {
        (one.replica_id, one.base_offset, one.kind): one
        for one in plan.files
        if one.kind in INDEX_KINDS
    }
    tasks: list[Task] = []
    for one in sorted(plan.files, key=lambda file: (file.name, file.path)):
        if one.kind not in kinds:
            continue
        mine = {kind: beside.get((one.replica_id, one.base_offset, kind)) for kind in INDEX_KINDS}
        index = None if one.segment_id in whole else mine["index"]
        listed = tuple((kind, file.path) for kind, file in mine.items() if file is not None)
        for start, end in _parts(one, index, part_bytes):
            tasks.append(
                Task(
                    one.path,
                    one.name,
                    one.kind,
                    one.base_offset,
                    one.replica_id,
                    one.segment_id,
                    one.topic,
                    one.size,
                    start,
                    end,
                    listed if one.kind == "log" and not is_forward_only(one.path) else (),
                )
            )
    return tasks


def _parts(
    one: SourceFile, index: SourceFile | None, part_bytes: int
) -> list[tuple[int, int | None]]:
    if one.kind != "log" or index is None:
        return [(0, None)]
    return split_points(one.path, one.size, index.path, one.base_offset, part_bytes)


def bins(tasks: Sequence[Task], count: int) -> list[list[Task]]:
    """Balances tasks by work over at most `count` bins, the largest first.

    Files of one compressed archive stay together in their order: it is read once, forwards.
    """
    units: dict[object, list[Task]] = {}
    for number, task in enumerate(tasks):
        units.setdefault(stream_of(task.path) or number, []).append(task)
    shares = [sorted(unit, key=lambda one: one.path) for unit in units.values()]
    heap = [(0, number) for number in range(min(count, len(shares)))]
    filled: list[list[Task]] = [[] for _ in heap]
    for share in sorted(shares, key=lambda unit: -sum(one.cost for one in unit)):
        load, number = heapq.heappop(heap)
        filled[number] += share
        heapq.heappush(heap, (load + sum(one.cost for one in share), number))
    return filled
