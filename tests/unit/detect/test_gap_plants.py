"""Each cause of missing sequence numbers, planted into a real recording; the untouched recording tells none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.replay.gap_cause import CAUSES
from tests.plant import OLD
from tests.planting import in_gaps
from tests.planting.copied import CopiedLogs
from tests.pure_audit import replayed
from tests.pure_health import gaps
from tests.pure_input import read
from tests.recordings import recording

pytestmark = pytest.mark.slow


def _cause(explanation: str) -> str:
    return next(why for why, words in CAUSES.items() if f"Probable cause: {words}." in explanation)


@pytest.mark.parametrize("edit", in_gaps.CAUSES, ids=lambda edit: edit.__name__)
def test_a_cause_is_told(edit: in_gaps.Edit, tmp_path: Path) -> None:
    logs = CopiedLogs(recording(OLD) / "logs", tmp_path / "logs")
    wanted = edit(logs).must
    said = gaps(replayed(read(logs.path, Config())))
    told = [
        (one.label, one.severity, one.producer_id, one.first_offset, _cause(one.explanation))
        for one in said
        if one.producer_id == in_gaps.PRODUCER_ID
    ]
    place = (wanted["producer_id"], wanted["first_offset"])
    assert told == [(wanted["class"], wanted["severity"], *place, in_gaps.CAUSES[edit])]


@pytest.mark.parametrize("edit", in_gaps.TWINS, ids=lambda edit: edit.__name__)
def test_a_twin_tells_none(edit: Callable[[CopiedLogs], None], tmp_path: Path) -> None:
    logs = CopiedLogs(recording(OLD) / "logs", tmp_path / "logs")
    edit(logs)
    assert gaps(replayed(read(logs.path, Config()))) == []


def test_the_recording_tells_none() -> None:
    assert gaps(replayed(read(recording(OLD) / "logs", Config()))) == []
