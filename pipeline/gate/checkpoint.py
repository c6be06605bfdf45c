"""Runs the suites in an ephemeral context of Great Expectations: nothing is stored, nothing is sent.

An expectation that crashes, gives no result or has nothing to look at is unknown. It never passes.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

import great_expectations as gx
import pandas as pd
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
)
from great_expectations.datasource.fluent.interfaces import Batch

from pipeline.config_sections import Gate
from pipeline.gate.frames import Judged
from pipeline.gate.profile import Profile, profile
from pipeline.gate.result import EVIDENCE_SHOWN, Checked, GateResult
from pipeline.gate.suites import Expected, suites
from pipeline.text import sanitise

_FORMAT = {
    "result_format": "SUMMARY",
    "unexpected_index_column_names": ["what"],
    "partial_unexpected_count": EVIDENCE_SHOWN,
}


def judge(judged: Judged, gate: Gate) -> GateResult:
    """Judges a run whose tables and findings are written.

    Args:
        judged: What the run concluded.
        gate: The policy.
    """
    declared = suites(gate)
    try:
        counts = profile(judged.output, judged.run_id)
        runner = _Runner()
    except Exception as error:
        return GateResult(tuple(_unknown(one, error) for one in declared))
    return GateResult(tuple(_check(runner, one, counts, judged) for one in declared))


class _Runner:
    """An ephemeral context with one pandas source; each frame is a batch of it."""

    def __init__(self) -> None:
        stores = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
        settings = DataContextConfig(store_backend_defaults=stores, analytics_enabled=False)
        context = gx.get_context(mode="ephemeral", project_config=settings)
        context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]  # GX takes the mapping, its annotation names the class that it makes of it
        asset = context.data_sources.add_pandas("audit").add_dataframe_asset("frame")
        self._definition = asset.add_batch_definition_whole_dataframe("whole")

    def batch(self, frame: pd.DataFrame) -> Batch:
        """A frame as a batch."""
        return self._definition.get_batch(batch_parameters={"dataframe": frame})


def _check(runner: _Runner, one: Expected, counts: Profile, judged: Judged) -> Checked:
    try:
        expectation = one.expectation()
        if expectation is None:
            return Checked(one.name, one.promise, "not_asked")
        frame = one.frame(counts, judged)
        if frame.empty or frame[one.column].isna().any():
            return Checked(one.name, one.promise, "unknown", 1, ("it was not measured",))
        result = runner.batch(frame).validate(expectation, result_format=_FORMAT)
        return _read(one, frame, result.to_json_dict())
    except Exception as error:
        return _unknown(one, error)


def _read(one: Expected, frame: pd.DataFrame, result: dict[str, Any]) -> Checked:
    crashed = _crash(result.get("exception_info") or {})
    if crashed is not None:
        return Checked(one.name, one.promise, "unknown", 1, (sanitise(f"it crashed: {crashed}"),))
    if result.get("success") is True:
        return Checked(one.name, one.promise, "passed")
    held = result.get("result") or {}
    count = int(held.get("unexpected_count") or 1)
    offending = [row["what"] for row in held.get("partial_unexpected_index_list") or ()]
    evidence = tuple(_line(frame, what) for what in offending[:EVIDENCE_SHOWN])
    return Checked(one.name, one.promise, one.on_failure, count, evidence)


def _crash(info: dict[str, Any]) -> str | None:
    """The message of an exception that Great Expectations caught, of the expectation or of one of its metrics."""
    held = [info, *(value for value in info.values() if isinstance(value, dict))]
    for one in held:
        if one.get("raised_exception"):
            return str(one.get("exception_message") or "no message").splitlines()[0]
    return None


def _line(frame: pd.DataFrame, what: str) -> str:
    """What offends, with its figures where it has some."""
    row = frame[frame["what"] == what].iloc[0].drop("what").to_dict()
    if "effect" in row or "state" in row:
        return sanitise(what)
    return sanitise(what + ": " + ", ".join(f"{name} {value}" for name, value in row.items()))


def _unknown(one: Expected, error: Exception) -> Checked:
    lines = str(error).strip().splitlines() or [""]
    reason = sanitise(f"it crashed: {type(error).__name__}: {lines[0][:300]}")
    return Checked(one.name, one.promise, "unknown", 1, (reason,))
