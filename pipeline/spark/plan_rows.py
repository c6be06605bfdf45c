"""Bronze rows that the driver knows from planning: checkpoints, leader epochs, unreadable paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from pipeline.spark.entry import Place, Row, detail_batch
from pipeline.spark.found import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from pipeline.spark.inventory import LogDir, Plan, Replica, stable_id

WHOLE_LOG_DIR = 0
"""Replica id of what belongs to no single replica."""


class PlanRows(NamedTuple):
    """Rows of one small file, ready to become a batch in a task."""

    segment_id: int
    replica_id: int
    kind: str
    rows: list[Row]

    def batch(self) -> pa.RecordBatch:
        """The rows in the physical schema."""
        return detail_batch(Place(self.segment_id, self.replica_id), self.kind, self.rows)


def plan_rows(plan: Plan) -> Iterator[PlanRows]:
    """Sidecar rows of the text files, one group a file, then each path that could not be read."""
    for log_dir in plan.log_dirs:
        yield from _checkpoints(log_dir)
    for replica in plan.replicas:
        if replica.leader_epochs and not replica.suffix:
            yield _leader_epochs(replica)
    for one in plan.unread:
        damage = {
            "position": 0,
            "file": one.name,
            "size_bytes": one.size,
            "reason": one.reason,
            "explanation": one.detail,
            "after_offset": None,
            "next_offset": None,
            "is_tail": False,
        }
        yield PlanRows(stable_id(one.name), WHOLE_LOG_DIR, "unreadable", [damage])


def _checkpoints(log_dir: LogDir) -> Iterator[PlanRows]:
    checkpoints = {
        HIGH_WATERMARKS: log_dir.high_watermarks,
        LOG_STARTS: log_dir.log_starts,
        CLEANER_OFFSETS: log_dir.cleaner_offsets,
        RECOVERY_POINTS: log_dir.recovery_points,
    }
    for file_name, offsets in checkpoints.items():
        file = f"{log_dir.name}/{file_name}".removeprefix("./")
        rows: list[Row] = [
            {
                "file": file,
                "entry_kind": file_name,
                "topic": topic,
                "partition": partition,
                "offset": offset,
            }
            for (topic, partition), offset in offsets.items()
        ]
        if rows:
            yield PlanRows(stable_id(log_dir.copy, file), WHOLE_LOG_DIR, "sidecar", rows)


def _leader_epochs(replica: Replica) -> PlanRows:
    file = f"{replica.name}/leader-epoch-checkpoint".removeprefix("./")
    rows: list[Row] = [
        {"file": file, "entry_kind": "leader_epoch", "first_offset": start, "offset": epoch}
        for epoch, start in replica.leader_epochs
    ]
    return PlanRows(stable_id(replica.replica_id, file), replica.replica_id, "sidecar", rows)
