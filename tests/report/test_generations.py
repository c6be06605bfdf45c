"""Generations of a group stand beside its commits: a commit by an old one can be seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.report.facts import Facts
from pipeline.report.timeline import Timelines
from schemas import bronze, silver
from tests import stored_output
from tests.stored_output import RUN_ID, finding, row, summary

NOW = 1_795_000_000_000


def _written(root: Path) -> Facts:
    """A group that rebalanced between two commits, and a commit of another group."""
    rows = stored_output.tables()
    rows["committed_offset"] = [
        row(
            silver.COMMITTED_OFFSET, group_id=group, topic="t", partition=0, record_offset=at,
            append_ms=NOW + at, committed_offset=value, outcome="materialised", is_transactional=True,
            producer_id=7,
        )
        for group, at, value in (("g", 4, 30), ("other", 5, 1), ("g", 8, 12))
    ]  # fmt: skip
    for at, number in ((2, 5), (6, 6)):
        detail: dict[str, Any] = {
            "group_id": "g", "base_offset": at, "generation_or_epoch": number, "member_count": 2,
            "max_timestamp_ms": NOW + at, "record_type": 2,
        }  # fmt: skip
        one = row(bronze.ENTRY, kind="group_metadata", replica_id=1, segment_id=10)
        rows["entry"].append(one | {"detail": json.dumps(detail)})
    stored_output.write(root, rows, summary())
    return Facts(str(root), RUN_ID)


def test_a_commit_is_told_with_the_generation_in_force(tmp_path: Path) -> None:
    one = finding(
        producer_id=None, transactional_id=None, group_id="g", topic="t", first_offset=8,
        first_timestamp_ms=NOW + 8, last_timestamp_ms=NOW + 8,
    )  # fmt: skip
    events, left_out = Timelines(_written(tmp_path), [one]).of(one)
    assert [(one.words, one.is_accused) for one in events] == [
        ("g: generation 5, 2 members, record 2", False),
        ("g commits t-0 at 30 (materialised), record 4, in generation 5", False),
        ("g: generation 6, 2 members, record 6", False),
        ("g commits t-0 at 12 (materialised), record 8, in generation 6", True),
    ]
    assert left_out == 0


def test_commits_of_a_producer_stand_in_its_transaction(tmp_path: Path) -> None:
    one = finding(first_timestamp_ms=NOW + 4)
    events, _ = Timelines(_written(tmp_path), [one]).of(one)
    commits = [(one.lane, one.words) for one in events if one.kind == "offset"]
    assert commits == [
        ("__consumer_offsets-0", "g commits t-0 at 30 (materialised), record 4"),
        ("__consumer_offsets-0", "other commits t-0 at 1 (materialised), record 5"),
        ("__consumer_offsets-0", "g commits t-0 at 12 (materialised), record 8"),
    ]
