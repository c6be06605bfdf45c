"""A marker that its coordinator sent twice, and one that nobody ordered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders
from tests.unit.detect.small import Small

AT = 30_000


@pytest.mark.parametrize(
    ("after_ms", "has_data", "wanted"),
    [
        (200, False, set()),
        (900, False, set()),
        (2_500, False, {"marker_audit/unexpected"}),
        (200, True,
         {"marker_audit/unexpected", "write_outside_transaction/after_completion"}),
    ],
    ids=["retry", "slow retry", "too late for one", "it ends data"],
)  # fmt: skip
def test_a_commit_right_behind_its_like_is_a_retry(
    after_ms: int, has_data: bool, wanted: set[str], tmp_path: Path
) -> None:
    logs = Small()
    logs.state(-5_000, builders.EMPTY)
    for at in range(0, 60_000, 5_000):
        logs.transaction(at)
        if at == AT:
            if has_data:
                logs.write(at + 100)
            logs.mark(at + 20 + after_ms)
    assert logs.said(tmp_path) == wanted
