"""What the set-up says where it cannot go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import set_up
from pipeline.errors import AuditError


def test_an_environment_without_spark_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_up, "VENV", tmp_path)
    with pytest.raises(AuditError, match=r"is not whole, it lacks .*pyspark/jars: remove it"):
        set_up._fetch_jars("java", tmp_path / "log")
