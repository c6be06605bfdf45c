"""The whole flow on one page: plan, ingest, replay, detect, judge, write."""

from __future__ import annotations

import fnmatch
import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from pipeline import coverage_report as coverage
from pipeline import findings as found
from pipeline import lifecycle
from pipeline.config import Config
from pipeline.detect import DETECTORS
from pipeline.errors import UsageError
from pipeline.gate.policy import suppress
from pipeline.publish import AuditResult, conclude, write_files, write_summary
from pipeline.run_name import run_name
from pipeline.spark import bronze, commits, metrics, redaction, silver, stored, tables
from pipeline.spark import coverage as covered
from pipeline.spark.plan import UNKNOWN_CLUSTER, Plan, plan
from pipeline.spark.run import Run
from pipeline.text import typed
from pipeline.verdict import Verdict
from pipeline.version import VERSION
from schemas import gold

__all__ = ["VERSION", "AuditResult", "run", "write_result"]


class Progress(Protocol):
    """Told the name of a stage as it begins, and the bytes that it will read."""

    def __call__(self, stage: str, size_bytes: int = 0, /) -> None:
        """Begin a stage."""


def _quiet(stage: str, size_bytes: int = 0, /) -> None:
    """Says nothing."""


def run(spark: SparkSession, config: Config, progress: Progress = _quiet) -> AuditResult:
    """Audits the input and writes all tables and files.

    Raises:
        UsageError: Input that cannot be used, or an output root of another cluster.
    """
    with commits.beside():
        return _run(spark, config, progress)


def _run(spark: SparkSession, config: Config, progress: Progress) -> AuditResult:
    started = time.monotonic()
    laps: dict[str, float] = {}

    def stage(name: str, size_bytes: int = 0) -> None:
        laps[name] = round(time.monotonic() - started, 1)
        progress(name, size_bytes)

    stage("finding files")
    planned = _looked_at(plan(config.inputs, cluster_id=config.cluster_id), config)
    hidden = redaction.redaction(config, planned)
    if hidden is not None:
        config = redaction.redacted_settings(config, hidden.names, planned)
        planned = redaction.redacted_plan(planned, hidden.names)
    history = stored.completed(config.output)
    _same_cluster(history, planned)
    redaction.claim(config.output, hidden)
    comparable = redaction.comparable(history, hidden)
    said = {} if hidden is None else {"redaction": hidden.said()}
    run_id = config.run_id or run_name(planned, config)
    size = sum(one.size for one in planned.files)
    stage(f"reading {len(planned.files)} files, {size >> 20} MiB", size)
    expired = _expired(history, run_id, config.keep_runs)
    ingested = bronze.ingest(
        spark, planned, config.output, run_id, expired, hidden and hidden.names
    )
    stage("replaying coordinators and offsets")
    one = silver.facts_of(spark, planned, ingested, config, run_id, expired)
    if config.stage == "ingest":
        bronze.write_segments(spark, ingested, config.output, run_id)
        return _partial(one, said, laps, started)
    silver.build(one, stage)
    if config.stage == "replay":
        return _partial(one, said, laps, started)
    stage("detecting")
    attempted = coverage.attempted(one)
    with metrics.written_beside(one):
        detected = found.detect(one, attempted)
    earlier = [row for row in history if row["run_id"] != run_id]
    before = [row for row in comparable if row["run_id"] != run_id]
    previous = _previous(config.output, before)
    current = found.with_status(
        detected, previous, lambda gone: lifecycle.over(one, attempted, gone)
    )
    stage("writing findings")
    current, suppressions = suppress(current, config.suppressions, config.now_ms)
    _write_findings(spark, current, one)
    stage("judging")
    facts = _facts(one, attempted, before) | said
    result = conclude(facts, config, current, suppressions)
    stage("writing the report")
    result.summary["timing"] = _timing(laps, started, config)
    commits.wait()
    write_files(result, config)
    write_result(
        spark, result, sequence=earlier[-1]["sequence"] + 1 if earlier else 1, also=expired
    )
    _forget(spark, one)
    return result


def _looked_at(planned: Plan, config: Config) -> Plan:
    """`--topics` leaves out user partitions; the internal topics are always needed."""
    glob = config.selection.topics
    if glob is None:
        return planned
    files = tuple(
        file
        for file in planned.files
        if file.topic in covered.INTERNAL or fnmatch.fnmatchcase(file.topic, glob)
    )
    return replace(planned, files=files)


def _expired(history: list[dict[str, Any]], run_id: str, keep_runs: int) -> tuple[str, ...]:
    """Completed runs beyond the newest `keep_runs`, this one counted."""
    others = [row["run_id"] for row in history if row["run_id"] != run_id]
    return tuple(others[: max(len(others) - keep_runs + 1, 0)])


def _forget(spark: SparkSession, one: Run) -> None:
    """Removes the folders of expired runs and the files that Delta no longer needs."""
    for run_id in one.expired:
        shutil.rmtree(Path(one.output, "runs", run_id), ignore_errors=True)
    if one.expired:
        tables.vacuum(spark, one.output)


def _partial(one: Run, said: dict[str, Any], laps: dict[str, float], started: float) -> AuditResult:
    """A job that stops before the detectors: it judged nothing, and says so."""
    reason = f"only {one.config.stage} was asked for: no detector ran"
    attempted: dict[str, str | None] = {
        detector.CODE: f"not attempted: {reason}" for detector in DETECTORS
    }
    facts = _facts(one, attempted, []) | said
    summary = {
        **facts,
        "verdict": Verdict.UNKNOWN.value,
        "exit_code": 0,
        "gate": {**one.config.gate.model_dump(mode="json"), "failing": 0},
        "counts": coverage.counts([]),
        "could_not_judge": [reason, *facts["could_not_judge"]],
        "expectations": [],
        "suppressions": [],
        "timing": _timing(laps, started, one.config),
    }
    directory = str(Path(one.output, "runs", one.run_id))
    result = AuditResult(one.run_id, Verdict.UNKNOWN, 0, summary, [], directory)
    commits.wait()
    write_summary(result)
    return result


def _same_cluster(history: list[dict[str, Any]], planned: Plan) -> None:
    known = {row["cluster_id"] for row in history}
    if known and planned.cluster_id not in known:
        raise UsageError(
            f"the output root belongs to cluster {sorted(known)[0]}, the input to {planned.cluster_id}: "
            "use another --output"
        )


def _previous(output: str, earlier: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Findings of the newest other completed run that are not over."""
    if not earlier or not tables.exists(gold.FINDING, output):
        return []
    tables.check_version(gold.FINDING, output)
    rows = stored.rows(gold.FINDING, output, earlier[-1]["run_id"]).to_pylist()
    return [row for row in rows if row["status"] in ("new", "open", "not_seen", "suppressed")]


def _write_findings(spark: SparkSession, current: list[dict[str, Any]], one: Run) -> None:
    rows = found.stored_rows(current, one.run_id)
    tables.replace_rows(spark, rows, gold.FINDING, one.output, one.run_id, also=one.expired)


def _facts(
    one: Run, attempted: dict[str, str | None], earlier: list[dict[str, Any]]
) -> dict[str, Any]:
    """What the summary says but for the verdict."""
    return {
        "run_id": one.run_id,
        "version": VERSION,
        "cluster_id": one.plan.cluster_id,
        "could_not_judge": coverage.doubts(one),
        "detectors": coverage.detectors(attempted),
        "coverage": coverage.coverage(one),
        "configuration": one.config.fingerprint(),
        "application_pattern": one.config.health.application_pattern,
        "input": {
            "paths": list(one.plan.roots),
            "bytes": list(one.plan.input_bytes),
            "fingerprint": one.plan.fingerprint(),
        },
        "previous_run": earlier[-1]["run_id"] if earlier else None,
        "command_line": typed(sys.argv[1:], is_private=one.config.redact),
    }


def _timing(laps: dict[str, float], started: float, config: Config) -> dict[str, Any]:
    """What differs between two runs on the same input."""
    elapsed = round(time.monotonic() - started, 1)
    return {"elapsed_s": elapsed, "stages": laps, "now_ms": config.now_ms}


def write_result(
    spark: SparkSession, result: AuditResult, sequence: int, also: tuple[str, ...] = ()
) -> None:
    """The run's row, then `summary.json`: whoever sees it sees a whole run.

    Args:
        spark: The session.
        result: What the run concluded; its files are written.
        sequence: Its place among the runs of the output root.
        also: Runs whose rows go with the same commit.
    """
    summary = result.summary
    row = (
        result.run_id,
        sequence,
        summary["cluster_id"] or UNKNOWN_CLUSTER,
        result.verdict.value,
        result.exit_code,
        summary["coverage"]["last_broker_ms"],
        True,
        json.dumps(summary, sort_keys=True),
    )
    output = str(Path(result.output_dir).parents[1])
    tables.replace_rows(spark, [row], gold.RUN, output, result.run_id, also=also)
    commits.wait()
    write_summary(result)
