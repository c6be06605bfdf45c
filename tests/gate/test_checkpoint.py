"""The suites on a small run that is in order, and one fault of each kind in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.config_sections import Gate
from pipeline.gate import checkpoint
from pipeline.gate.frames import Judged
from pipeline.gate.result import verdict_of
from pipeline.gate.suites import suites
from pipeline.verdict import Verdict
from tests import stored_output
from tests.stored_output import RUN_ID, START_MS, Row, Tables, finding


def _outcomes(
    output: str, gate: Gate | None = None, only: str | None = None, **given: Any
) -> dict[str, Any]:
    """Name -> what was said; `only` one expectation, since each takes its time."""
    findings = given.pop("findings", [])
    plain: dict[str, Any] = {"doubts": [], "as_of_ms": START_MS, "now_ms": START_MS + 5000} | given
    judged = Judged(output, RUN_ID, findings, findings, **plain)
    asked = [one for one in suites(gate or Gate()) if only in (None, one.name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "suites", lambda policy: asked)
        return {one.name: one for one in checkpoint.judge(judged, gate or Gate()).checks}


def test_a_run_in_order_passes_everything_that_is_asked(tmp_path: Path) -> None:
    output = stored_output.write(tmp_path, stored_output.tables(), stored_output.summary())
    found = _outcomes(output)
    assert len(found) == 20
    unlike = {name: one for name, one in found.items() if one.outcome != "passed"}
    assert set(unlike) == {"gate.freshness"}
    assert unlike["gate.freshness"].outcome == "not_asked"
    assert verdict_of(one.outcome for one in found.values()) is Verdict.PASSED


def _batches(rows: Tables) -> list[Row]:
    return [row for row in rows["entry"] if row["kind"] == "batch"]


def _of(rows: Tables, table: str, kind: str) -> Row:
    return next(row for row in rows[table] if row["kind"] == kind)


def _lose(rows: Tables, table: str, kind: str) -> None:
    rows[table].remove(_of(rows, table, kind))


FAULTS: dict[str, tuple[str, Callable[[Tables], Any]]] = {
    "a batch is lost": ("bronze.row_counts", lambda rows: rows["entry"].remove(_batches(rows)[0])),
    "a batch is there twice": (
        "bronze.row_counts",
        lambda rows: rows["entry"].append(_batches(rows)[0]),
    ),
    "a batch of no segment": (
        "bronze.row_counts",
        lambda rows: rows["entry"].append(_batches(rows)[0] | {"segment_id": 99}),
    ),
    "a record of the coordinator is lost": (
        "bronze.row_counts",
        lambda rows: _lose(rows, "entry", "txn_state"),
    ),
    "bytes of nobody": (
        "bronze.bytes_accounted",
        lambda rows: rows["segment"][0].update(size_bytes=201),
    ),
    "a hole that is not told": (
        "bronze.offsets_contiguous",
        lambda rows: _batches(rows)[1].update(base_offset=2, last_offset=2),
    ),
    "an unknown codec": ("bronze.accepted_values", lambda rows: _batches(rows)[0].update(codec=9)),
    "a null in a key": ("bronze.not_null", lambda rows: _batches(rows)[0].update(position=None)),
    "an unknown state": (
        "silver.accepted_values",
        lambda rows: _of(rows, "coordinator", "transaction").update(state=9),
    ),
    "a null in silver": (
        "silver.not_null",
        lambda rows: _of(rows, "coordinator", "owner").update(transactional_id=None),
    ),
    "two rows with one key": (
        "silver.keys",
        lambda rows: rows["coordinator"].append(_of(rows, "coordinator", "owner")),
    ),
    "a step is lost": (
        "silver.row_counts",
        lambda rows: _lose(rows, "coordinator", "coordinator_step"),
    ),
    "a promise is lost": (
        "silver.row_counts",
        lambda rows: _lose(rows, "partition_history", "transaction_partition"),
    ),
    "a run is lost": (
        "silver.row_counts",
        lambda rows: _lose(rows, "partition_history", "partition_txn"),
    ),
    "a finding that nobody reported": (
        "gold.row_counts",
        lambda rows: rows["finding"].append(finding()),
    ),
    "an unknown severity": (
        "gold.accepted_values",
        lambda rows: rows["finding"].append(finding(severity="fatal")),
    ),
    "a finding without a title": (
        "gold.not_null",
        lambda rows: rows["finding"].append(finding(title=None)),
    ),
    "one finding twice": (
        "gold.keys",
        lambda rows: rows["finding"].extend([finding(), finding()]),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_its_expectation_with_evidence(tmp_path: Path, name: str) -> None:
    expectation, plant = FAULTS[name]
    rows = stored_output.tables()
    plant(rows)
    output = stored_output.write(tmp_path, rows, stored_output.summary())
    found = _outcomes(output, only=expectation)[expectation]
    assert found.outcome == "failed"
    assert found.offences >= 1
    assert found.evidence


def test_a_hole_that_is_told_is_no_offence(tmp_path: Path) -> None:
    rows = stored_output.tables()
    _batches(rows)[1].update(base_offset=2, last_offset=2)
    rows["segment"][0].update(last_offset=2, hole_end_offset=2)
    output = stored_output.write(tmp_path, rows, stored_output.summary())
    assert (
        _outcomes(output, only="bronze.offsets_contiguous")["bronze.offsets_contiguous"].outcome
        == "passed"
    )


@pytest.mark.parametrize("table", ["entry", "segment"])
def test_a_row_that_stands_twice_in_bronze_fails(table: str, tmp_path: Path) -> None:
    rows = stored_output.tables()
    rows[table].append(dict(rows[table][0]))
    output = stored_output.write(tmp_path, rows, stored_output.summary())
    assert _outcomes(output, only="bronze.keys")["bronze.keys"].outcome == "failed"


def test_damage_with_a_reason_accounts_for_its_bytes(tmp_path: Path) -> None:
    rows = stored_output.tables()
    rows["segment"][0].update(size_bytes=250)
    damage = _batches(rows)[0] | {"kind": "unreadable", "detail": '{"size_bytes": 50}'}
    rows["entry"].append(damage)
    output = stored_output.write(tmp_path, rows, stored_output.summary())
    assert (
        _outcomes(output, only="bronze.bytes_accounted")["bronze.bytes_accounted"].outcome
        == "passed"
    )


@pytest.mark.parametrize(
    ("segment", "readable", "skipped", "outcome"),
    [
        (0, 200, 0, "passed"),  # a reason without a size is about all the rest
        (0, 200, 10, "failed"),
        (
            2,
            250,
            50,
            "passed",
        ),  # a batch of the coordinator that is whole, and whose record makes no sense
        (2, 200, 10, "failed"),
    ],
)
def test_what_damage_accounts_for(
    tmp_path: Path, segment: int, readable: int, skipped: int, outcome: str
) -> None:
    rows = stored_output.tables()
    one = rows["segment"][segment]
    one.update(size_bytes=250, readable_bytes=readable)
    damage = {
        "kind": "unreadable",
        "detail": f'{{"size_bytes": {skipped}}}',
        "segment_id": one["segment_id"],
    }
    rows["entry"].append(_batches(rows)[0] | damage)
    output = stored_output.write(tmp_path, rows, stored_output.summary())
    found = _outcomes(output, only="bronze.bytes_accounted")["bronze.bytes_accounted"]
    assert found.outcome == outcome


def test_what_could_not_be_judged_is_unknown_not_failed(tmp_path: Path) -> None:
    output = stored_output.write(tmp_path, stored_output.tables(), stored_output.summary())
    found = _outcomes(output, doubts=["orders-7 is not in the copy"])
    assert found["gate.coverage"].outcome == "unknown"
    assert found["gate.coverage"].evidence == ("orders-7 is not in the copy",)
    assert verdict_of(one.outcome for one in found.values()) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("as_of_ms", "now_ms", "outcome"),
    [
        (START_MS, START_MS + 1000, "passed"),
        (START_MS, START_MS + 1001, "failed"),
        (START_MS, START_MS - 10**9, "passed"),
        (None, START_MS, "unknown"),
        (START_MS, None, "unknown"),
    ],
)
def test_freshness(tmp_path: Path, as_of_ms: int | None, now_ms: int | None, outcome: str) -> None:
    output = stored_output.write(tmp_path, stored_output.tables(), stored_output.summary())
    gate = Gate(max_copy_age_ms=1000)
    assert (
        _outcomes(output, gate, as_of_ms=as_of_ms, now_ms=now_ms)["gate.freshness"].outcome
        == outcome
    )


def test_no_outcome_is_no_verdict() -> None:
    assert verdict_of([]) is Verdict.UNKNOWN
    assert verdict_of(["not_asked"]) is Verdict.UNKNOWN
    assert verdict_of(["passed", "not_asked"]) is Verdict.PASSED
    assert verdict_of(["passed", "what"]) is Verdict.UNKNOWN
    assert verdict_of(["unknown", "failed"]) is Verdict.FAILED
