"""Contents without Spark: the project's rules over the log files of one small input."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from pipeline.replay.repeats import Written, repeats
from pipeline.replay.statement import Statement
from pipeline.spark import content_inputs
from pipeline.wire.batch import CONTROL_COMMIT
from tests.pure_audit import Replayed

KEY = b"of the tests"


def repeated(one: Replayed) -> list[Statement]:
    """What `content_duplicate` says; nothing where `deep` is off."""
    if not one.read.config.deep:
        return []
    read = one.read
    tasks, starts = content_inputs.tasks_to_hash(read.plan, read.facts, read.keep_from)
    names = ("replica_id", "producer_id", "marker_offset", "first_offset")
    rows = [run for run in one.runs if run["marker_type"] == CONTROL_COMMIT]
    columns = [pa.array([row[name] for row in rows], pa.int64()) for name in names]
    committed = content_inputs.committed(pa.table(columns, names=list(names)))
    found: dict[tuple[int, bytes], list[Written]] = defaultdict(list)
    for task in tasks:
        runs = committed.get(task.replica_id)
        for digest, record in content_inputs.hashed(task, starts[task.segment_id], KEY, runs):
            found[task.replica_id, digest].append(record)
    pairs = [
        dict(
            zip(content_inputs.PAIR, (replica, pair.label, *pair.earlier, *pair.later), strict=True)
        )
        for (replica, _), same in found.items()
        for pair in repeats(sorted(same, key=lambda record: record.offset))
    ]
    return content_inputs.statements(read.facts, pairs)
