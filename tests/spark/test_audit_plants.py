"""Planted faults and cut copies through Spark, many side by side in one audit.

`tests/unit/detect` has them all without Spark; here a handful, and all with AUDIT_FULL=1.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import cuts
from tests.plant import OLD, PLANTS, plant
from tests.planting.expected import Planted
from tests.recordings import recording
from tests.score import is_loud, matches, told
from tests.spark.audited import audited, found

pytestmark = pytest.mark.spark
IS_FULL = os.environ.get("AUDIT_FULL") == "1"
SOME = (
    "exact_duplicate", "illegal_transition", "orphan_producer", "torn", "crc", "lost_batch",
    "early_answer", "healed", "gap_between_segments", "partition_not_added", "resent", "repeated",
    "transaction_version", "broker_version", "group_coordinator",
)  # fmt: skip
_PLACE = {"topic", "transactional_id", "group_id", "producer_id"}
SHORTER = {"code": "committed_offset", "class": "beyond_end"}


@pytest.mark.parametrize("recorded", sorted({one.recording for one in PLANTS.values()}))
def test_planted_faults_are_found(spark: SparkSession, recorded: str, tmp_path: Path) -> None:
    if recorded != OLD and not IS_FULL:
        pytest.skip("AUDIT_FULL=1 plants into the other recordings as well")
    source = recording(recorded) / "logs"
    names = [name for name, one in PLANTS.items() if one.recording == recorded]
    chosen = [name for name in names if IS_FULL or name in SOME]
    planted = {name: plant(name, source, tmp_path / name) for name in chosen}
    twin = found(audited(spark, source, tmp_path / "twin", deep=True))
    assert [name for name in chosen if _is_found(planted[name], twin)] == []
    for number, group in enumerate(_apart(planted)):
        tree = tmp_path / f"in-{number}"
        tree.mkdir()
        (tree / "0-untouched").symlink_to(source)
        for name in group:
            (tmp_path / name).rename(tree / name)
        findings = found(audited(spark, tree, tmp_path / f"out-{number}", deep=True))
        of_group = [planted[name] for name in group]
        allowed = [wanted for one in of_group for wanted in (one.must, *one.may)] + [SHORTER]
        extra = [told(one) for one in findings if is_loud(one) and not matches(one, allowed)]
        assert extra == []
        assert [name for name in group if not _is_found(planted[name], findings)] == []


def _apart(planted: dict[str, Planted]) -> list[list[str]]:
    """Names in groups of which each accuses one thing once: copies of one cluster tell one incident once.

    What has no place is told in the words of the copy that was read furthest, so it stands alone.
    """
    groups: list[dict[tuple[object, ...], str]] = []
    for name, one in planted.items():
        if not one.must.keys() & _PLACE:
            continue
        key = tuple(one.must.get(field) for field in ("code", "topic", "partition", "producer_id"))
        group = next((group for group in groups if key not in group), None)
        if group is None:
            groups.append(group := {})
        group[key] = name
    alone = [[name] for name, one in planted.items() if not one.must.keys() & _PLACE]
    return [list(group.values()) for group in groups] + alone


def _is_found(planted: Planted, findings: list[dict[str, object]]) -> bool:
    wanted = planted.must
    if wanted.get("class") == "lost_tail":
        wanted = {**wanted, "class": ["lost_tail", "same_offset_other_bytes"]}
    return any(matches(one, wanted) for one in findings)


def test_cut_copies_accuse_nobody(spark: SparkSession, tmp_path: Path) -> None:
    """Grace and skew scaled to a recording that lasts seconds."""
    how = cuts.How(spread=0.3, latest=0.5)
    cuts.several(recording("02") / "logs", tmp_path / "in", 40 if IS_FULL else 6, 7_000, how)
    result = audited(
        spark, tmp_path / "in", tmp_path / "out", marker_grace_ms=150, clock_skew_ms=20,
        transaction_state_partitions=4,
    )  # fmt: skip
    assert [told(one) for one in found(result) if is_loud(one)] == []
    assert result.exit_code == 0
