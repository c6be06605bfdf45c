"""Every recording, audited without Spark: exactly what it is expected to hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pure_audit import accusations
from tests.recordings import all_recordings
from tests.score import complaints, expected

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_a_recording_holds_what_it_is_expected_to_hold(folder: Path) -> None:
    expect = expected(folder)
    assert complaints(accusations(folder / expect.get("input", "logs")), expect) == []
