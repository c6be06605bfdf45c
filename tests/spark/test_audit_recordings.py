"""Recordings audited end to end, and the second opinion of the audit without Spark.

Recordings of one kind lie side by side as copies of one cluster: one audit judges each by itself.
Where a sequence has wrapped, window functions make the runs; elsewhere arrays do. AUDIT_FULL=1 audits every recording
alone as well.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.config import Config
from schemas import silver
from tests import pure_rules
from tests.pure_audit import Replayed, replayed
from tests.pure_input import read
from tests.recordings import all_recordings, recording
from tests.score import complaints, expected, is_loud, told
from tests.spark.audited import audited, found, laid_out, rows_of

pytestmark = pytest.mark.spark
GROUPS = {
    "version 0": (
        "08a", "09a", "10a", "13a", "15a", "16a", "19", "20a", "23", "26a", "37a", "51a"
    ),
    "version 2": ("05c", "14a"),
    "wrapped": ("12a", "05c"),
}  # fmt: skip
_ONE_OF_MANY = re.compile(
    r"(?<![\w.])1 (?:\w+ )?(?:batch|record|commit|marker|transaction|id|time|byte|entri)e?s\b"
)
_NOTHING = re.compile(r"\b(?:offset|epoch|byte|(?<!transactional )id|belongs to) none\b")
IS_FULL = os.environ.get("AUDIT_FULL") == "1"


@pytest.mark.parametrize("name", GROUPS)
def test_recordings_hold_what_they_are_expected_to_hold(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    folders = [recording(number) for number in GROUPS[name]]
    tree = laid_out({one.name: one / "logs" for one in folders}, tmp_path / "in")
    result = audited(spark, tree, tmp_path / "out", deep=True)
    assert result.summary["coverage"]["copies"] == len(folders)
    findings = found(result)
    assert complaints(findings, _all_expected(folders)) == []
    assert [said for one in findings for said in _miscounted(one)] == []
    pure = replayed(read(tree, Config(deep=True)))
    assert _accused(findings) == _accused(pure_rules.accusations(pure))
    _same_rows(spark, result.run_id, tmp_path / "out", pure)


def _all_expected(folders: list[Path]) -> dict[str, Any]:
    whole: dict[str, Any] = {"must": [], "may": [], "never": [], "max_certainty_by_class": {}}
    for folder in folders:
        one = expected(folder)
        for name in ("must", "may", "never"):
            whole[name] += one.get(name, [])
        whole["max_certainty_by_class"] |= one.get("max_certainty_by_class", {})
    return whole


def _miscounted(finding: dict[str, Any]) -> list[str]:
    """Texts that say `1 batches`, or that name what is not there: `offset none`."""
    texts = (finding["title"], finding["explanation"], finding["advice"])
    return [text for text in texts if _ONE_OF_MANY.search(text) or _NOTHING.search(text)]


def _accused(findings: list[dict[str, Any]]) -> set[str]:
    """A finding is told once, whichever copy shows it."""
    return {told(one | {"reason": None}) for one in findings if is_loud(one)}


def _same_rows(spark: SparkSession, run_id: str, output: Path, pure: Replayed) -> None:
    """Windows, joins and state machines in Spark equal the loops, row by row."""
    for table, ours in (
        (silver.PARTITION_TXN, pure.runs),
        (silver.TRANSACTION_PARTITION, pure.promises),
        (silver.COORDINATOR_STEP, pure.steps),
        (silver.TRANSACTION, pure.transactions),
        (silver.OWNER, pure.owners),
        (silver.COMMITTED_OFFSET, pure.offsets),
    ):
        names = [name for name in table.names if name != "run_id"]
        theirs = rows_of(spark, table, output, run_id)
        assert _sorted(theirs, names) == _sorted(ours, names), table.name
    events = rows_of(spark, silver.SEQUENCE_EVENT, output, run_id)
    names = ["replica_id", "offset", "kind", "other_offset"]
    assert _sorted(events, names) == sorted(
        [
            repr(value)
            for value in (place.replica_id, event.step.offset, event.kind, event.other_offset)
        ]
        for place, event in pure.events
    )


def _sorted(rows: list[dict[str, Any]], names: list[str]) -> list[list[str]]:
    return sorted([repr(row[name]) for name in names] for row in rows)


@pytest.mark.full
@pytest.mark.skipif(not IS_FULL, reason="AUDIT_FULL=1 audits each recording alone")
@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_a_recording_alone(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    expect = expected(folder)
    result = audited(spark, folder / expect.get("input", "logs"), tmp_path)
    assert complaints(found(result), expect, result.exit_code) == []
