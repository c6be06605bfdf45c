"""Every notebook runs on one audited output."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.errors import UsageError
from tests.notebooks.conftest import BEFORE, NOW

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]


def run(name: str, **parameters: Any) -> dict[str, Any]:
    """Runs a notebook with other parameters; returns its names."""
    text = (ROOT / "notebooks" / f"{name}.py").read_text(encoding="utf-8")
    for key, value in parameters.items():
        text, count = re.subn(rf"^{key} = .*$", f"{key} = {value!r}", text, flags=re.MULTILINE)
        assert count == 1, key
    names: dict[str, Any] = {}
    exec(compile(text, name, "exec"), names)
    return names


def test_hanging_transaction(output: Path, spark: SparkSession) -> None:
    names = run("hanging_transaction", OUTPUT=str(output))
    assert [row["last_stable_offset"] for row in names["pins"].collect()] == [6]
    found = {row["code"] for row in names["findings"].collect()}
    assert {"hanging_transaction", "lso_pinned"} <= found


def test_coordinator_log(output: Path, spark: SparkSession, tmp_path: Path) -> None:
    picture = tmp_path / "picture.html"
    names = run("coordinator_log", OUTPUT=str(output), PICTURE=str(picture))
    assert "client_commit" in {row["cause"] for row in names["causes"].collect()}
    applications = names["applications"].collect()
    assert applications
    assert all(row["ids"] >= 1 for row in applications)
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_offset_history(output: Path, spark: SparkSession, tmp_path: Path) -> None:
    picture = tmp_path / "picture.html"
    names = run("offset_history", OUTPUT=str(output), PICTURE=str(picture))
    held = {
        (row["topic"], row["partition"]): row["committed_offset"]
        for row in names["at_moment"].collect()
    }
    assert held[("o-in", 3)] == 2
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    early = run(
        "offset_history", OUTPUT=str(output), PICTURE=str(picture), AT="2001-01-01 00:00:00"
    )
    assert early["at_moment"].collect() == []


@pytest.mark.parametrize(
    "who", [{"TRANSACTIONAL_ID": "h-late"}, {"TRANSACTIONAL_ID": None, "PRODUCER_ID": 424242}]
)
def test_producer_timeline(output: Path, spark: SparkSession, who: dict[str, Any]) -> None:
    names = run("producer_timeline", OUTPUT=str(output), **who)
    what = {row["what"] for row in names["timeline"].collect()}
    assert any("open:" in text for text in what)
    assert ("COMMIT marker" in what or "ABORT marker" in what) is ("PRODUCER_ID" not in who)


@pytest.mark.parametrize("nights", [{"BEFORE": BEFORE, "NOW": NOW}, {}], ids=["named", "newest"])
def test_compare_nights(output: Path, spark: SparkSession, nights: dict[str, str]) -> None:
    names = run("compare_nights", OUTPUT=str(output), **nights)
    changes = {
        (row["code"], row["class"], row["status_before"], row["status_now"])
        for row in names["differences"].collect()
    }
    assert changes == {
        ("hanging_transaction", "orphan_producer", None, "new"),
        ("lso_pinned", "pinned", None, "new"),
    }


def test_a_run_that_is_not_there_is_no_run_without_findings(
    output: Path, spark: SparkSession
) -> None:
    for parameters in ({"BEFORE": "mistyped"}, {"NOW": "mistyped"}):
        with pytest.raises(UsageError, match="holds no run mistyped"):
            run("compare_nights", OUTPUT=str(output), **parameters)
    with pytest.raises(UsageError, match=NOW):
        run("coordinator_log", OUTPUT=str(output), RUN_ID="mistyped")
    with pytest.raises(SystemExit, match="no two completed runs"):
        run("compare_nights", OUTPUT=str(output), NOW=BEFORE)


def test_every_notebook_is_in_percent_format_and_is_run_here() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for file in (ROOT / "notebooks").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert text.startswith("# %% [markdown]\n# # "), file.name
        assert "\n# %% Parameters\n" in text, file.name
        assert f'run("{file.stem}"' in here, file.name
