"""Every planted fault is found without Spark, and nothing else is accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import Config
from tests.plant import PLANTS, plant
from tests.pure_audit import accusations
from tests.recordings import recording
from tests.score import is_loud, matches, told

pytestmark = pytest.mark.slow


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
        assert any(matches(one, wanted) for one in found), [told(one) for one in found]
