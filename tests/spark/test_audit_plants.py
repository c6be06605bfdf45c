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
)  # fmt: skip
SHORTER = {"code": "committed_offset", "class": "beyond_end"}


@pytest.mark.parametrize("recorded", sorted({one.recording for one in PLANTS.values()}))
def test_planted_faults_are_found(spark: SparkSession, recorded: str, tmp_path: Path) -> None:
    if recorded != OLD and not IS_FULL:
        pytest.skip("AUDIT_FULL=1 plants into the other recordings as well")
    source = recording(recorded) / "logs"
    names = [name for name, one in PLANTS.items() if one.recording == recorded]
    chosen = [name for name in names if IS_FULL or name in SOME]
    planted = [plant(name, source, tmp_path / "in" / name) for name in chosen]
    (tmp_path / "in" / "untouched").symlink_to(source)
    findings = found(audited(spark, tmp_path / "in", tmp_path / "out", deep=True))
    allowed = [wanted for one in planted for wanted in (one.must, *one.may)] + [SHORTER]
    extra = [told(one) for one in findings if is_loud(one) and not matches(one, allowed)]
    assert extra == []
    assert [name for name, one in zip(chosen, planted) if not _is_found(one, findings)] == []


def _is_found(planted: Planted, findings: list[dict[str, object]]) -> bool:
    wanted = planted.must
    if wanted["class"] == "lost_tail":
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
