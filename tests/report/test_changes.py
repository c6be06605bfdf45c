"""What a reader in a hurry sees first: where to begin, what changed, and that unknown is never clean."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markupsafe import escape

from pipeline.config import Config
from pipeline.report import terminal
from pipeline.report.junit import MAX_CHANGES, junit
from pipeline.report.markdown import markdown
from pipeline.report.page import page_files
from tests import stored_output
from tests.stored_output import RUN_ID, finding, summary

GATE = summary()["gate"]


def _page(root: Path, findings: list[dict[str, Any]], about: dict[str, Any]) -> str:
    stored_output.write(root, stored_output.tables(), about)
    return page_files(str(root), about, findings, Config())["report.html"]


def _begin(page: str) -> str:
    return page.partition("Begin here")[2].partition("</section>")[0]


def test_the_page_begins_with_the_advice_of_the_worst_causes(tmp_path: Path) -> None:
    held = [
        finding(
            code="hanging_transaction",
            partition=n,
            first_offset=n,
            advice=f"do {n}",
            severity="critical",
        )
        for n in range(4)
    ]
    effect = finding(code="lso_pinned", partition=0, first_offset=0, advice="see the cause")
    about = summary(verdict="failed", gate=GATE | {"failing": 5})
    begin = _begin(_page(tmp_path, [*held, effect], about))
    assert [f"do {n}" in begin for n in range(4)] == [True, True, True, False]
    assert "see the cause" not in begin
    assert f"#f-{held[0]['finding_id'][:12]}" in begin


def test_one_cause_is_one_place_to_begin(tmp_path: Path) -> None:
    cause = finding(advice="abort it")
    effects = [finding(code=code, advice="see it") for code in ("lso_pinned", "zombie_write")]
    later = finding(code="version_inferred", severity="info", partition=5, advice="upgrade")
    about = summary(verdict="failed", gate=GATE | {"failing": 3, "effects": 2})
    begin = _begin(_page(tmp_path, [cause, *effects, later], about))
    assert "abort it" in begin
    assert "see it" not in begin
    assert "upgrade" not in begin


def test_what_does_not_fail_is_no_place_to_begin(tmp_path: Path) -> None:
    page = _page(tmp_path, [finding(severity="minor", advice="some day")], summary())
    assert "Begin here" not in page


def test_no_finding_is_green_only_where_everything_was_judged(tmp_path: Path) -> None:
    doubt = ["orders-0: the log is cut"]
    unknown = _page(tmp_path / "unknown", [], summary(verdict="unknown", could_not_judge=doubt))
    assert '<p class="fine">No finding' not in unknown
    assert "No finding in what could be judged." in unknown
    assert '<a href="#coverage">1 thing in scope could not be judged</a>' in unknown
    assert '<p class="fine">No finding.</p>' in _page(tmp_path / "clean", [], summary())


def test_a_check_that_failed_stands_beside_the_verdict(tmp_path: Path) -> None:
    lost = {
        "name": "silver.row_counts", "promise": "all rows", "outcome": "failed", "offences": 1,
        "evidence": ["2 rows are gone"],
    }  # fmt: skip
    about = summary(verdict="failed", expectations=[lost])
    top = _page(tmp_path, [], about).partition('id="changes"')[0]
    assert "What was read and what the tables hold do not agree" in top
    assert "<code>silver.row_counts</code>" in top
    assert "Something at or above" not in top
    assert "What was read and what the tables hold" in markdown(about, [], 10, "out")


def test_new_open_resolved_and_not_seen_are_named_everywhere(tmp_path: Path) -> None:
    states = ("new", "open", "resolved", "not_seen")
    held = [
        finding(first_offset=n, status=one, title=f"it is {one}") for n, one in enumerate(states)
    ]
    counts = summary()["counts"] | {"by_status": dict.fromkeys(states, 1)}
    about = summary(counts=counts, previous_run="r0")
    changes = _page(tmp_path, held, about).partition('id="changes"')[2].partition("</section>")[0]
    text = markdown(about, held, 10, "out")
    for name in states:
        assert f"it is {name}" in changes
        assert f"it is {name}" in text
    assert "Compared with run `r0`." in text
    resolved = text.partition("### Resolved")[2].partition("###")[0]
    assert "it is resolved" in resolved
    assert "not_seen" not in resolved


def test_what_is_over_has_no_command_to_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = finding(status="resolved", advice="kafka-transactions.sh --bootstrap-server x abort")
    page = _page(tmp_path, [over], summary())
    assert "<h3>Nothing: it is over. What was advised</h3>" in page
    assert '<pre class="command">' not in page
    terminal.show_finding(over, "out")
    assert "-> Nothing: it is over. What was advised: kafka-t" in capsys.readouterr().out
    current = _page(tmp_path, [over | {"status": "open"}], summary())
    assert "<h3>What to do</h3>" in current
    assert '<pre class="command">' in current


def test_the_command_for_a_finding_names_the_output_root_and_is_one_for_a_shell(
    tmp_path: Path,
) -> None:
    root, held = tmp_path / "the night's", finding()
    command = f"./spark-submit.sh show {held['finding_id'][:12]} --output "
    assert f"<code>{escape(command + shlex.quote(str(root)))}</code>" in _page(
        root, [held], summary()
    )
    assert f"  Details: `{command}/audits/prod`" in markdown(summary(), [held], 10, "/audits/prod")


def test_a_redacted_run_does_not_tell_where_it_lies(tmp_path: Path) -> None:
    root, about = tmp_path / "customer", summary(redaction={"text": "ids are pseudonyms"})
    assert "customer" not in _page(root, [finding()], about)
    text = markdown(about, [finding()], 10, str(root))
    assert "customer" not in text
    assert "--output DIR`" in text


def test_many_resolved_findings_are_cut_and_counted() -> None:
    held = [finding(first_offset=n, status="resolved") for n in range(25)]
    assert "- ... and 5 more in `findings.jsonl`" in markdown(summary(), held, 10, "out")


def test_what_could_not_be_judged_goes_before_findings_that_do_not_fail() -> None:
    minor = [finding(severity="minor")]
    text = markdown(summary(verdict="unknown", could_not_judge=["no owner"]), minor, 10, "out")
    assert text.index("### Could not be judged") < text.index("### Findings")
    text = markdown(summary(verdict="failed", could_not_judge=["no owner"]), minor, 10, "out")
    assert text.index("### Could not be judged") > text.index("### Findings")
    assert text.count("### Could not be judged") == 1


def test_a_finding_without_a_place_has_no_empty_one() -> None:
    text = markdown(summary(), [finding(topic=None, partition=None, first_offset=None)], 10, "out")
    assert "` `" not in text


def test_the_run_is_named() -> None:
    assert f"Run `{RUN_ID}`" in markdown(summary(), [], 10, "out")


def test_junit_names_what_changed_and_fails_nothing_by_it() -> None:
    states = ("new", "open", "resolved", "not_seen")
    held = [
        finding(first_offset=n, status=one, title=f"it is {one}") for n, one in enumerate(states)
    ]
    counts = summary()["counts"] | {"by_status": dict.fromkeys(states, 1)}
    about = summary(counts=counts, previous_run="r0", detectors={"hanging_transaction": "judged"})
    root = ElementTree.fromstring(junit(about, [], 10, held))
    case = next(one for one in root.iter("testcase") if one.get("name") == "hanging_transaction")
    assert [line.partition(":")[0] for line in case.findtext("system-out", "").splitlines()] == [
        "new", "resolved", "not seen",
    ]  # fmt: skip
    assert "it is resolved" in case.findtext("system-out", "")
    assert case.find("failure") is None
    told = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert (told["previous_run"], told["resolved"], told["suppressed"]) == ("r0", "1", "0")


def test_the_first_run_has_no_changes_in_junit() -> None:
    text = junit(summary(detectors={"hanging_transaction": "judged"}), [], 10, [finding()])
    assert "system-out" not in text


def test_many_changes_are_cut_in_junit() -> None:
    held = [finding(first_offset=n, status="resolved") for n in range(MAX_CHANGES + 5)]
    about = summary(previous_run="r0", detectors={"hanging_transaction": "judged"})
    assert "... and 5 more in findings.jsonl" in junit(about, [], 10, held)


def test_the_application_stands_beside_the_id(tmp_path: Path) -> None:
    page = _page(tmp_path, [finding(transactional_id="pay-0_1")], summary())
    assert "<dt>application</dt><dd>pay (Kafka Streams v1)</dd>" in page
    page = _page(tmp_path, [finding(transactional_id="pay")], summary())
    assert "<dt>application</dt>" not in page


def test_the_application_stands_in_markdown_and_junit() -> None:
    mine, other = finding(transactional_id="pay-0_1"), finding(transactional_id="pay")
    about = summary(detectors={"hanging_transaction": "judged"})
    assert "  Application: `pay (Kafka Streams v1)`" in markdown(about, [mine], 10, "out")
    assert "Application:" not in markdown(about, [other], 10, "out")
    assert "  application: pay (Kafka Streams v1)" in junit(about, [mine], 10)
    assert "application:" not in junit(about, [other], 10)
    about["application_pattern"] = "(?P<application>p).*"
    assert "  application: p\n" in junit(about, [other], 10)


@pytest.mark.parametrize("copies", [1, 2])
def test_several_copies_are_told_as_that(copies: int, tmp_path: Path) -> None:
    about = summary(coverage=summary()["coverage"] | {"copies": copies})
    texts = (_page(tmp_path, [], about), markdown(about, [], 10, "out"))
    assert ["at several times" in one for one in texts] == [copies > 1] * 2
