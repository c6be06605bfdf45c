"""Every planted fault is found without Spark, and nothing else is accused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from docs.classes import CLASSES
from pipeline.config import Config
from tests.plant import PLANTS, plant
from tests.pure_audit import accusations
from tests.recordings import recording
from tests.score import is_loud, matches, told
from tests.tally import Tally

pytestmark = pytest.mark.slow


TALLY = Tally()
SHORTER = {"code": "committed_offset", "class": "beyond_end"}
"""A batch that was taken out leaves groups with offsets behind the end."""
OTHER = {"lost_tail": [{"code": "replica_divergence", "class": "same_offset_other_bytes"}]}
"""The new leader wrote on where the tail was lost: both are true."""


@pytest.mark.parametrize("name", sorted(PLANTS))
def test_a_planted_fault(name: str, tmp_path: Path) -> None:
    planted = plant(name, recording(PLANTS[name].recording) / "logs", tmp_path / "logs")
    found = accusations(tmp_path / "logs", Config(deep=True))
    wanted = [planted.must, *OTHER.get(name, [])]
    allowed = [*wanted, *planted.may, SHORTER]
    extra = [
        told(one) for one in found if is_loud(one) and not any(matches(one, x) for x in allowed)
    ]
    assert extra == []
    if planted.must.get("severity") != "info" and planted.must["code"] != "manual_abort":
        is_found = TALLY.add(str(planted.must["code"]), wanted, found, allowed)
        assert is_found, [told(one) for one in found]


@pytest.mark.parametrize("name", ["race_regression", "healed"])
def test_a_lower_commit_behind_a_window_is_told(name: str, tmp_path: Path) -> None:
    planted = plant(name, recording(PLANTS[name].recording) / "logs", tmp_path / "logs")
    found = accusations(tmp_path / "logs", Config())
    races = [one for one in found if one["code"] == "offset_race" and one["class"] != "window"]
    assert [matches(one, planted.must) for one in races] == [True]


@pytest.mark.parametrize(
    ("version", "told_as"),
    [(None, "double_epoch_bump"), ("4.0.0", "double_epoch_bump"), ("4.0.1", "epoch_rule")],
)
def test_a_version_with_the_fix_is_not_accused_of_the_defect(
    version: str | None, told_as: str, tmp_path: Path
) -> None:
    """KAFKA-19367 is fixed in 4.0.1: what looks like it there is something else."""
    name = "double_epoch_bump"
    plant(name, recording(PLANTS[name].recording) / "logs", tmp_path / "logs")
    found = accusations(tmp_path / "logs", Config(kafka_version=version))
    classes = {one["class"] for one in found if one["code"] == "coordinator_state"}
    assert classes & {"double_epoch_bump", "epoch_rule"} == {told_as}


def test_each_class_has_a_plant(tmp_path: Path) -> None:
    """Of those that the documents list."""
    has_plant = set()
    for name, one in PLANTS.items():
        must = plant(name, recording(one.recording) / "logs", tmp_path / name).must
        labels = must["class"] if isinstance(must["class"], list) else [must["class"]]
        has_plant |= {(must["code"], label) for label in labels}
        shutil.rmtree(tmp_path / name)
    listed = {(code, one.name) for code, every in CLASSES.items() for one in every}
    assert has_plant == listed


def test_recall_and_precision_of_each_detector() -> None:
    """Of the plants above."""
    print("\n".join(["", *TALLY.lines()]))
    assert not TALLY.false
    assert TALLY.found == TALLY.planted
