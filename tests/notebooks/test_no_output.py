"""A notebook whose output root is mistyped says so, not that a view is missing."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from pipeline import catalog
from pipeline.errors import UsageError


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no completed run in .*it holds no tables of an audit"):
        catalog.open_tables(Mock(), str(tmp_path / "mistyped"))
