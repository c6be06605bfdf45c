"""What a run concludes and the files that say it: the same summary for every output, `summary.json` last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import findings as found
from pipeline.config import Config
from pipeline.coverage_report import counts
from pipeline.gate.frames import Judged
from pipeline.gate.policy import is_failing
from pipeline.report.causes import effects
from pipeline.report.files import finding_lines, write_json, write_together
from pipeline.report.junit import junit
from pipeline.report.markdown import markdown
from pipeline.report.page import page_files
from pipeline.verdict import Verdict

Finding = dict[str, Any]


@dataclass(frozen=True)
class AuditResult:
    """What a run found; `summary` is the content of `summary.json`, `examples` what is shown and gated."""

    run_id: str
    verdict: Verdict
    exit_code: int
    summary: dict[str, Any]
    examples: list[Finding]
    output_dir: str


def required(
    require: tuple[str, ...] | list[str] | None, detectors: Mapping[str, str]
) -> list[str]:
    """Why detectors that the gate requires could not judge; one that does not exist could not either."""
    states = {code: detectors.get(code, "there is no such detector") for code in require or ()}
    return [f"{code} is required: {state}" for code, state in states.items() if state != "judged"]


def conclude(
    facts: dict[str, Any],
    config: Config,
    findings: list[Finding],
    suppressions: list[dict[str, Any]],
) -> AuditResult:
    """Judges a run whose tables are written.

    Args:
        facts: What `summary.json` says of the run but for the verdict: `run_id`, `coverage`,
            `detectors`, `could_not_judge` (without what the gate requires) and provenance.
        config: The policy and where the output is.
        findings: All findings of the run with their status.
        suppressions: What became of each suppression.
    """
    shown = [one for one in findings if found.selected(one, config.selection)]
    doubts = [*facts["could_not_judge"], *required(config.gate.require, facts["detectors"])]
    judged = Judged(
        config.output,
        facts["run_id"],
        findings,
        shown,
        doubts,
        facts["coverage"]["last_broker_ms"],
        config.now_ms,
    )
    from pipeline.gate import (
        checkpoint,  # late, as its import takes seconds: `jobs.run` has begun it
    )

    gated = checkpoint.judge(judged, config.gate)
    failing = [one for one in shown if is_failing(one, config.gate)]
    policy = config.gate.model_dump(mode="json")
    policy |= {"failing": len(failing), "effects": len(effects(failing))}
    summary = {
        **facts,
        "verdict": gated.verdict.value,
        "exit_code": gated.verdict.exit_code,
        "gate": policy,
        "counts": counts(shown),
        "could_not_judge": doubts,
        "expectations": [one.plain() for one in gated.checks],
        "suppressions": suppressions,
    }
    directory = str(Path(config.output, "runs", facts["run_id"]))
    return AuditResult(
        facts["run_id"], gated.verdict, gated.verdict.exit_code, summary, shown, directory
    )


def write_files(result: AuditResult, config: Config) -> None:
    """All files of the run but `summary.json`."""
    visible = [{**one, "run_id": result.run_id} for one in result.examples]
    files = {"findings.jsonl": finding_lines(visible), **_rendered(result, config)}
    write_together(Path(result.output_dir), files)


def render(result: AuditResult, config: Config) -> None:
    """The files that are made of the summary, the findings and the tables."""
    write_together(Path(result.output_dir), _rendered(result, config))


def _rendered(result: AuditResult, config: Config) -> dict[str, Iterable[str]]:
    failing = [one for one in result.examples if is_failing(one, config.gate)]
    texts = {
        "junit.xml": junit(result.summary, failing, config.max_examples, result.examples),
        "summary.md": markdown(result.summary, result.examples, config.max_examples, config.output),
        **page_files(config.output, result.summary, result.examples, config),
    }
    return {name: [text] for name, text in texts.items()}


def write_summary(result: AuditResult) -> None:
    """`summary.json`, after everything else: whoever sees it sees a whole run."""
    write_json(Path(result.output_dir) / "summary.json", result.summary)
