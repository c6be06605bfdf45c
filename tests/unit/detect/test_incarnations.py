"""A directory that is left of a deleted topic beside the topic of the same name that was made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.replay.lineage import Lineage, may_be_of_two_topics
from tests import builders, log_layout, pure_audit
from tests.unit.detect.small import STATE_TOPIC, Small

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


@pytest.mark.parametrize("left_epoch", [0, 57])
@pytest.mark.parametrize(
    ("lacks_marker", "wanted"), [(False, set()), (True, {("marker_audit", "missing")})]
)
def test_the_topic_that_was_made_anew_is_replayed(
    lacks_marker: bool, wanted: set[tuple[str, str]], left_epoch: int, tmp_path: Path
) -> None:
    """A broker that was down keeps the directory of the deleted one, written under many leaders."""
    _made_anew(tmp_path, left_epoch, lacks_marker=lacks_marker, is_stamped=True)
    found = {(one["code"], one["class"]) for one in pure_audit.accusations(tmp_path)}
    assert wanted <= found
    assert bool(found - {("replica_divergence", "other_incarnation")}) == lacks_marker
    assert _replayed_brokers(tmp_path) == [1]


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize(("left_epoch", "broker"), [(0, 1), (57, 2)])
def test_without_times_or_ids_leader_epochs_decide(
    left_epoch: int, broker: int, has_id: bool, tmp_path: Path
) -> None:
    _made_anew(tmp_path, left_epoch, lacks_marker=False, is_stamped=not has_id)
    if not has_id:
        (tmp_path / "broker-2" / f"{TOPIC}-0" / "partition.metadata").unlink()
    assert _replayed_brokers(tmp_path) == [broker]


def _made_anew(root: Path, left_epoch: int, *, lacks_marker: bool, is_stamped: bool) -> None:
    """A topic of broker 1, and what broker 2 kept of an earlier one, which ends in a marker if `is_stamped`."""
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    for at in range(0, 60_000, 5_000):
        logs.transaction(at)
        if lacks_marker and at == 10_000:
            logs.data.pop()
            logs.data_end -= 1
    live = log_layout.LogDir(root, 1)
    live.segment(TOPIC, 0, logs.data)
    live.segment(STATE_TOPIC, 0, logs.states)
    live.finish(clean=True)
    left = log_layout.LogDir(root, 2)
    sent = {"producer_id": 7, "partition_leader_epoch": left_epoch}
    rows = [builders.batch(transactional=is_stamped, **sent)]
    if is_stamped:
        rows.append(builders.marker(1, timestamp_ms=builders.NOW_MS - DAY_MS, **sent))
    left.segment(TOPIC, 0, rows)
    metadata = log_layout.partition_metadata(TOPIC, 1)
    (left.partition(TOPIC, 0) / "partition.metadata").write_bytes(metadata)
    left.finish(clean=False)


def _replayed_brokers(root: Path) -> list[int | None]:
    facts = pure_audit.read(root, Config()).facts
    return [one.broker_id for one in facts if one.topic == TOPIC and one.is_replayed]


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
