"""The screen: what a person needs, nothing that a file's author could make it do."""

from __future__ import annotations

import io
import re
import shlex
from dataclasses import dataclass
from typing import Any

import pytest

from pipeline.report import terminal

EVIL = "[red]x[/red]\x1b[2J\u202e\r\n:boom:"


@dataclass(frozen=True)
class Result:
    """As `pipeline.audit.AuditResult`, which would import Spark."""

    summary: dict[str, Any]
    examples: list[dict[str, Any]]
    output_dir: str = "out/runs/r1"


def _finding(**changed: Any) -> dict[str, Any]:
    plain = {
        "finding_id": "ab" * 32,
        "code": "hanging_transaction",
        "class": "orphan_producer",
        "severity": "critical",
        "certainty": "proven",
        "status": "new",
        "topic": "orders",
        "partition": 3,
        "producer_id": 7,
        "producer_epoch": 0,
        "transactional_id": None,
        "group_id": None,
        "first_offset": 10,
        "last_offset": 12,
        "first_timestamp_ms": 0,
        "last_timestamp_ms": 9 * 10**18,
        "title": "an open transaction pins orders-3",
        "explanation": "why",
        "advice": "kafka-transactions.sh abort --topic orders",
        "refuted_by": "a marker",
        "evidence": [
            {"broker": 1, "file": "a/b.log", "position": 5, "offset": 10, "what": "first batch"}
        ],
    }
    return plain | changed


def _summary(verdict: str, **changed: Any) -> dict[str, Any]:
    plain = {
        "run_id": "r1",
        "version": "1.0.0",
        "configuration": "0123456789abcdef",
        "verdict": verdict,
        "gate": {"severity": "major", "certainty": "proven", "failing": 1},
        "counts": {
            "by_severity": {"critical": 1, "info": 2},
            "by_status": {"new": 3, "resolved": 4},
        },
        "previous_run": "r0",
        "could_not_judge": [],
        "detectors": {"hanging_transaction": "judged", "offset_race": "not attempted: needs x"},
        "coverage": {
            "brokers": [1],
            "partitions": 2,
            "replicas": 2,
            "segments": 2,
            "bytes": 12345,
            "batches": 6,
            "first_broker_ms": 0,
            "last_broker_ms": 1000,
        },
        "timing": {"elapsed_s": 1.5},
    }
    return plain | changed


def _screen(summary: dict[str, Any], findings: list[dict[str, Any]]) -> str:
    stream = io.StringIO()
    terminal.render(Result(summary, findings), terminal.console(stream))
    return stream.getvalue()


def test_says_verdict_where_and_what_to_do() -> None:
    screen = _screen(_summary("failed"), [_finding(), _finding(severity="info", title="not shown")])
    assert screen.startswith("FAILED: 1 at or above major, proven\n")
    for part in (
        "CRITICAL  hanging_transaction/orphan_producer  orders-3 offset 10",
        "-> kafka-transactions.sh abort --topic orders",
        "1 critical, 2 info\n",
        "Changed   since run r0: 3 new, 0 open, 4 resolved, 0 not seen",
        "offset_race: not attempted: needs x",
        "1970-01-01 00:00:00Z to 1970-01-01 00:00:01Z",
        "12,345 bytes",
        "out/runs/r1",
        "Next      ./spark-submit.sh show abababababab --output out\n",
        "\n          ./spark-submit.sh explain hanging_transaction\n",
    ):
        assert part in screen
    assert "not shown" not in screen


def test_says_what_judged() -> None:
    assert "Version   1.0.0, configuration 0123456789ab\n" in _screen(_summary("passed"), [])


def test_the_first_run_has_nothing_to_compare_with() -> None:
    assert "Changed" not in _screen(_summary("failed", previous_run=None), [_finding()])


def test_the_command_for_a_finding_is_one_line_that_a_shell_reads_as_it_is_meant() -> None:
    root = "/audits of the night/" + "prod " * 20 + "$(id)"
    stream = io.StringIO()
    result = Result(_summary("failed"), [_finding()], f"{root}/runs/r1")
    terminal.render(result, terminal.console(stream))
    line = next(line for line in stream.getvalue().splitlines() if line.startswith("Next"))
    assert shlex.split(line)[1:] == ["./spark-submit.sh", "show", "ab" * 6, "--output", root]


def test_a_run_that_fails_without_a_finding_says_so() -> None:
    gate = {"severity": "major", "certainty": "proven", "failing": 0}
    lost = [{"name": "silver.row_counts", "outcome": "failed", "evidence": ["2 rows are gone"]}]
    screen = _screen(_summary("failed", gate=gate, expectations=lost), [])
    assert screen.startswith("FAILED: what was read and what the tables hold do not agree\n")
    assert "Gate      silver.row_counts failed: 2 rows are gone" in screen


def test_fits_into_80_columns_and_one_screen() -> None:
    many = [_finding(title="long " * 30, first_offset=n) for n in range(100)]
    screen = _screen(_summary("failed", could_not_judge=["reason " * 20] * 100), many)
    assert max(len(line) for line in screen.splitlines()) <= 80
    assert "... and 95 more in findings.jsonl" in screen
    assert len(screen.splitlines()) < 70


def test_unknown_never_looks_clean() -> None:
    screen = _screen(_summary("unknown", could_not_judge=["no Kafka log files were found"]), [])
    assert screen.startswith("UNKNOWN")
    assert "No word   no Kafka log files were found" in screen


def test_hostile_text_stays_text(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = dict.fromkeys(("title", "advice", "topic", "explanation", "transactional_id"), EVIL)
    screen = _screen(_summary("failed", could_not_judge=[EVIL]), [_finding(**hostile)])
    terminal.show_finding(
        _finding(
            **hostile,
            evidence=[
                {"broker": None, "file": EVIL, "position": None, "offset": None, "what": EVIL}
            ],
        ),
        "out",
    )
    for shown in (screen, capsys.readouterr().out):
        assert re.fullmatch(r"[\x20-\x7e\n]*", shown)
        assert "[red]x[/red]\\x1b[2J" in shown
        assert ":boom:" in shown


@pytest.mark.parametrize(
    ("transactional_id", "pattern", "told"),
    [
        ("pay-0_1", None, "application: pay (Kafka Streams v1)"),
        ("pay/eu/3", r"(?P<application>[^/]+)/.*", "application: pay"),
        ("pay", None, None),
        (None, None, None),
    ],
)
def test_the_application_stands_beside_the_id(
    transactional_id: str | None,
    pattern: str | None,
    told: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal.show_finding(_finding(transactional_id=transactional_id), "out", pattern=pattern)
    said = [line.strip() for line in capsys.readouterr().out.splitlines() if "application:" in line]
    assert said == ([] if told is None else [told])
