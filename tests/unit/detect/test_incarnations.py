"""A directory that is left of a deleted topic beside the topic of the same name that was made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.replay.lineage import Lineage, may_be_of_two_topics
from tests import builders, log_layout, pure_audit

TOPIC = "orders"
DAY_MS = 86_400_000


def replica(
    root: Path, node: int, epochs: list[int], *, later_ms: int, has_id: bool, is_shared: bool
) -> None:
    """One batch a leader epoch given, `later_ms` later; the first one not, where it is shared."""
    log = log_layout.LogDir(root, node)
    rows = []
    for offset, epoch in enumerate(epochs):
        ms = builders.NOW_MS + (0 if is_shared and offset == 0 else later_ms)
        rows.append(builders.batch(offset, partition_leader_epoch=epoch, timestamp_ms=ms))
    log.segment(TOPIC, 0, rows)
    if not has_id:
        (log.partition(TOPIC, 0) / "partition.metadata").unlink()
    log.finish(clean=False)


FOUND = [("replica_divergence", "same_offset_other_bytes")]


@pytest.mark.parametrize(
    ("left", "anew", "has_id", "wanted"),
    [
        ([2, 2, 3], [0, 0, 1, 1], False, []),
        ([2, 2, 3, 3, 3], [0, 0], False, []),
        ([0, 0, 0], [0, 0, 0], True, FOUND),
        ([2, 2, 3], [0, 0, 1, 1], True, FOUND),
        ([0, 0, 0], [0, 0, 0], False, FOUND),
        ([2, 2, 3], [4, 4, 4, 4], False, FOUND),
    ],
    ids=[
        "leaders of the old one are newer", "the old one is longer", "one topic by its id",
        "one topic by its id, leaders went back", "the first batch is the same", "an emptied replica led",
    ],
)  # fmt: skip
def test_same_offsets_of_two_topics(
    left: list[int], anew: list[int], has_id: bool, wanted: list[tuple[str, str]], tmp_path: Path
) -> None:
    replica(tmp_path, 1, left, later_ms=0, has_id=has_id, is_shared=True)
    replica(tmp_path, 2, anew, later_ms=DAY_MS, has_id=has_id, is_shared=left[0] == anew[0])
    assert [(row["code"], row["class"]) for row in pure_audit.accusations(tmp_path)] == wanted


@pytest.mark.parametrize(
    ("one", "other", "has_shared", "wanted"),
    [
        (Lineage(0, 0, 3, 0), Lineage(0, 0, 5, 9), False, True),
        (Lineage(0, 0, 3, 0), Lineage(0, 0, 5, 9), True, False),
        (Lineage(0, 0, 3, 0), Lineage(0, 4, 5, 9), False, False),
        (Lineage(0, 4, 5, 9), Lineage(0, 0, 3, 0), False, False),
        (Lineage(0, 0, 3, 9), Lineage(0, 4, 5, 0), False, True),
        (Lineage(0, 0, 3, 0), Lineage(7, 4, 5, 9), False, True),
        (Lineage(0, -1, -1, 0), Lineage(0, -1, -1, 9), False, True),
    ],
)
def test_what_shows_one_topic(one: Lineage, other: Lineage, has_shared: bool, wanted: bool) -> None:
    assert may_be_of_two_topics(one, other, has_shared=has_shared) is wanted
