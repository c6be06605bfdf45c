"""The whole flow on one page: plan, ingest, replay, detect, judge, write."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pipeline import catalog, lifecycle
from pipeline import coverage_report as coverage
from pipeline import findings as found
from pipeline.config import Config
from pipeline.detect import DETECTORS
from pipeline.errors import UsageError
from pipeline.report.files import write_findings, write_json
from pipeline.spark import bronze, silver, tables
from pipeline.spark import coverage as covered
from pipeline.spark.plan import UNKNOWN_CLUSTER, Plan, plan
from pipeline.spark.silver import Run
from pipeline.text import redact
from pipeline.verdict import Verdict
from schemas import gold

VERSION = "1.0.0"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class AuditResult:
    """What a run found; `summary` is the content of `summary.json`."""

    run_id: str
    verdict: Verdict
    exit_code: int
    summary: dict[str, Any]
    examples: list[dict[str, Any]]
    output_dir: str


def run(
    spark: SparkSession, config: Config, progress: Progress = lambda stage: None
) -> AuditResult:
    """Audits the input and writes all tables and files.

    Raises:
        UsageError: Input that cannot be used, or an output root of another cluster.
    """
    started = time.monotonic()
    laps: dict[str, float] = {}

    def stage(name: str) -> None:
        laps[name] = round(time.monotonic() - started, 1)
        progress(name)

    stage("finding files")
    planned = _looked_at(plan(config.inputs, cluster_id=config.cluster_id), config)
    history = _history(spark, config.output)
    _same_cluster(history, planned)
    run_id = config.run_id or _run_id(planned, config)
    stage(f"reading {len(planned.files)} files, {_mib(planned)} MiB")
    expired = _expired(history, run_id, config.keep_runs)
    ingested = bronze.ingest(spark, planned, config.output, run_id, expired)
    stage("replaying coordinators and offsets")
    one = silver.facts_of(spark, planned, ingested, config, run_id, expired)
    if config.stage == "ingest":
        bronze.write_segments(spark, ingested, config.output, run_id)
        return _partial(one, laps, started)
    silver.build(one, stage)
    if config.stage == "replay":
        return _partial(one, laps, started)
    stage("detecting")
    attempted = coverage.attempted(one)
    detected = found.detect(one, attempted)
    earlier = [row for row in history if row["run_id"] != run_id]
    previous = _previous(spark, config.output, earlier)
    current = found.with_status(
        detected, previous, lambda gone: lifecycle.over(one, attempted, gone)
    )
    stage("writing findings")
    _write_findings(spark, current, one)
    result = _judge(one, current, attempted, earlier, laps, started)
    _finish(spark, one, result, earlier)
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


def _partial(one: Run, laps: dict[str, float], started: float) -> AuditResult:
    """A job that stops before the detectors: it judged nothing, and says so."""
    reason = f"only {one.config.stage} was asked for: no detector ran"
    attempted: dict[str, str | None] = {
        detector.CODE: f"not attempted: {reason}" for detector in DETECTORS
    }
    result = _judge(one, [], attempted, [], laps, started)
    summary = {
        **result.summary,
        "verdict": Verdict.UNKNOWN.value,
        "exit_code": 0,
        "could_not_judge": [reason, *result.summary["could_not_judge"]],
    }
    write_json(Path(result.output_dir) / "summary.json", summary)
    return AuditResult(one.run_id, Verdict.UNKNOWN, 0, summary, [], result.output_dir)


def _mib(planned: Plan) -> int:
    return sum(one.size for one in planned.files) >> 20


def _history(spark: SparkSession, output: str) -> list[dict[str, Any]]:
    """Completed runs of this output root, oldest first."""
    runs = catalog.completed(spark, output)
    return [] if runs is None else [row.asDict() for row in runs.collect()]


def _same_cluster(history: list[dict[str, Any]], planned: Plan) -> None:
    known = {row["cluster_id"] for row in history}
    if known and planned.cluster_id not in known:
        raise UsageError(
            f"the output root belongs to cluster {sorted(known)[0]}, the input to {planned.cluster_id}: "
            "use another --output"
        )


def _run_id(planned: Plan, config: Config) -> str:
    """As-of in UTC where the user gave it, and a hash of input and configuration."""
    digest = hashlib.sha256((planned.fingerprint() + config.fingerprint()).encode()).hexdigest()[:8]
    if config.as_of_ms is None:
        return f"run-{digest}"
    moment = datetime.fromtimestamp(config.as_of_ms / 1000, UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{digest}"


def _previous(
    spark: SparkSession, output: str, earlier: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Findings of the newest other completed run that are not over."""
    if not earlier or not tables.exists(gold.FINDING, output):
        return []
    rows = tables.read(spark, gold.FINDING, output, earlier[-1]["run_id"])
    return [
        row.asDict(recursive=True)
        for row in rows.filter("status in ('new', 'open', 'not_seen')").collect()
    ]


def _write_findings(spark: SparkSession, current: list[dict[str, Any]], one: Run) -> None:
    names = [name for name in gold.FINDING.names if name != "run_id"]
    rows = [(one.run_id, *(_plain(finding, name) for name in names)) for finding in current]
    frame = tables.local(spark, rows, gold.FINDING.ddl())
    tables.replace(frame, gold.FINDING, one.output, one.run_id, also=one.expired)


def _plain(finding: dict[str, Any], name: str) -> Any:
    if name != "evidence":
        return finding[name]
    return [
        (one["broker"], one["file"], one["position"], one["offset"], one["what"])
        for one in finding["evidence"]
    ]


def _judge(
    one: Run,
    current: list[dict[str, Any]],
    attempted: dict[str, str | None],
    earlier: list[dict[str, Any]],
    laps: dict[str, float],
    started: float,
) -> AuditResult:
    gate = one.config.gate
    severities = gold.SEVERITIES[: gold.SEVERITIES.index(gate.severity) + 1]
    certainties = gold.CERTAINTIES[: gold.CERTAINTIES.index(gate.certainty) + 1]
    shown = [finding for finding in current if found.selected(finding, one.config.selection)]
    failing = [
        finding
        for finding in shown
        if finding["status"] in ("new", "open")
        and finding["severity"] in severities
        and finding["certainty"] in certainties
    ]
    doubts = coverage.doubts(one, attempted)
    verdict = Verdict.FAILED if failing else Verdict.UNKNOWN if doubts else Verdict.PASSED
    summary = {
        "run_id": one.run_id,
        "version": VERSION,
        "verdict": verdict.value,
        "exit_code": verdict.exit_code,
        "cluster_id": one.plan.cluster_id,
        "gate": {"severity": gate.severity, "certainty": gate.certainty, "failing": len(failing)},
        "counts": coverage.counts(shown),
        "could_not_judge": doubts,
        "detectors": coverage.detectors(attempted),
        "coverage": coverage.coverage(one),
        "configuration": one.config.fingerprint(),
        "input": {"paths": list(one.config.inputs), "fingerprint": one.plan.fingerprint()},
        "previous_run": earlier[-1]["run_id"] if earlier else None,
        "command_line": ["spark-submit.sh", *map(redact, sys.argv[1:])],
        "timing": {"elapsed_s": round(time.monotonic() - started, 1), "stages": laps},
    }
    directory = str(Path(one.output, "runs", one.run_id))
    return AuditResult(one.run_id, verdict, verdict.exit_code, summary, shown, directory)


def _finish(
    spark: SparkSession, one: Run, result: AuditResult, earlier: list[dict[str, Any]]
) -> None:
    """Files, then the run's row, then `summary.json`: whoever sees it sees a whole run."""
    directory = Path(result.output_dir)
    visible = [{**finding, "run_id": one.run_id} for finding in result.examples]
    write_findings(directory / "findings.jsonl", visible)
    sequence = earlier[-1]["sequence"] + 1 if earlier else 1
    row = (
        one.run_id,
        sequence,
        one.plan.cluster_id or UNKNOWN_CLUSTER,
        result.verdict.value,
        result.exit_code,
        coverage.as_of_ms(one),
        True,
        json.dumps(result.summary, sort_keys=True),
    )
    frame = tables.local(spark, [row], gold.RUN.ddl())
    tables.replace(frame, gold.RUN, one.output, one.run_id, also=one.expired)
    write_json(directory / "summary.json", result.summary)
