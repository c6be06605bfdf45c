"""The gate and the report again, over tables that an earlier run wrote: no log is read.

Reading and rendering need no Spark. Only a judgement that changed is written back, and the
caller starts Spark for that.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from pipeline import findings as found
from pipeline.audit import write_result
from pipeline.config import Config
from pipeline.config_sections import Gate
from pipeline.errors import UsageError
from pipeline.gate.policy import suppress
from pipeline.publish import (
    AuditResult,
    Finding,
    conclude,
    render,
    required,
    write_files,
    write_summary,
)
from pipeline.spark import redaction, stored, tables
from pipeline.text import typed
from pipeline.verdict import Verdict
from schemas import gold

_OF_THE_RUN = ("verdict", "exit_code", "gate", "counts", "expectations", "suppressions")
_VARIES = ("timing", "judged_by")


class Stored(NamedTuple):
    """A completed run as its tables hold it.

    Attributes:
        run_id: The run.
        sequence: Its place among the runs of the output root.
        summary: The content of its `summary.json`.
        findings: Its findings with their evidence.
    """

    run_id: str
    sequence: int
    summary: dict[str, Any]
    findings: list[Finding]


def load(output: str, run_id: str | None) -> Stored:
    """Reads a completed run.

    Args:
        output: Output root.
        run_id: The run; the newest completed one when None.

    Raises:
        UsageError: There is no such run, or it stopped before it judged anything.
    """
    rows = stored.completed(output)
    chosen = [row for row in rows if run_id is None or row["run_id"] == run_id]
    if not chosen:
        what = "no completed run" if run_id is None else f"no completed run {run_id}"
        raise UsageError(f"{output} holds {what}: audit something first")
    row = chosen[-1]
    findings = stored.rows(gold.FINDING, output, row["run_id"]).to_pylist()
    summary = json.loads(row["summary"])
    if not summary.get("expectations"):
        raise UsageError(f"run {row['run_id']} was written by an earlier version: audit again")
    return Stored(row["run_id"], row["sequence"], summary, found.order(findings))


def report(config: Config) -> AuditResult:
    """Renders the page, `junit.xml` and `summary.md` of a run again; nothing is judged."""
    one = load(config.output, config.run_id)
    config = redaction.redacted_again(config, one.summary)
    shown = [finding for finding in one.findings if found.selected(finding, config.selection)]
    directory = str(Path(config.output, "runs", one.run_id))
    verdict = Verdict(one.summary["verdict"])
    result = AuditResult(
        one.run_id, verdict, one.summary["exit_code"], one.summary, shown, directory
    )
    gate = {key: value for key, value in one.summary["gate"].items() if key in Gate.model_fields}
    judged_with = config.gate.model_validate(gate, strict=False)
    render(result, config.model_copy(update={"gate": judged_with}))
    return result


def gate(config: Config, session: Callable[[], SparkSession], said: list[str]) -> AuditResult:
    """Judges a run again with the policy of now, and writes what changed.

    Args:
        config: The policy; `output` and `run_id` say which run.
        session: Starts Spark; called only when the judgement changed.
        said: What was typed behind the program.
    """
    one = load(config.output, config.run_id)
    summary = one.summary
    is_private = "redaction" in summary
    config = redaction.redacted_again(config, summary)
    before = _statuses_before(config.output, one)
    findings = [
        {**finding, "status": before.get(finding["finding_id"], "new")}
        if finding["status"] == "suppressed"
        else finding
        for finding in one.findings
    ]
    findings, suppressions = suppress(findings, config.suppressions, config.now_ms)
    facts = {key: value for key, value in summary.items() if key not in _OF_THE_RUN}
    asked = required(summary["gate"].get("require"), summary["detectors"])
    facts["could_not_judge"] = [why for why in summary["could_not_judge"] if why not in asked]
    # The table still holds the statuses of the last judgement, and the same number of rows.
    result = conclude(facts, config, findings, suppressions)
    result.summary["judged_by"] = {
        "command_line": typed(said, is_private=is_private),
        "configuration": config.fingerprint(),
    }
    write_files(result, config)
    if _content(result.summary) != _content(summary) or findings != one.findings:
        spark = session()
        rows = found.stored_rows(findings, one.run_id)
        tables.replace_rows(spark, rows, gold.FINDING, config.output, one.run_id)
        write_result(spark, result, one.sequence)
    else:
        write_summary(result)
    return result


def _content(summary: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in summary.items() if key not in _VARIES}


def _statuses_before(output: str, one: Stored) -> dict[str, str]:
    """Finding id -> `open`, for what the completed run before had already."""
    earlier = [row for row in stored.completed(output) if row["sequence"] < one.sequence]
    if not earlier:
        return {}
    rows = stored.rows(gold.FINDING, output, earlier[-1]["run_id"], ("finding_id", "status"))
    return {row["finding_id"]: "open" for row in rows.to_pylist() if row["status"] != "resolved"}
