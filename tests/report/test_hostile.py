"""Figure 7 of `docs/reliability.md`: nothing that a log holds is live in anything that people or tools read.

What was written is parsed back and compared with the same file about harmless names: the structure must be the same.
"""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from pipeline.config import Config
from pipeline.report import page, terminal
from pipeline.report.advice import commands, pieces
from pipeline.report.facts import Facts
from pipeline.report.files import finding_lines, write_json, write_together
from pipeline.report.junit import junit
from pipeline.report.markdown import markdown
from pipeline.text import sanitise
from tests import stored_output
from tests.report.hostile import corpus
from tests.stored_output import RUN_ID, Row, finding, summary

TEXTS = ("topic", "transactional_id", "group_id", "title", "explanation", "advice", "refuted_by")
CORPUS = corpus()
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _findings(texts: list[str]) -> list[Row]:
    """One finding a text, which stands in ten of its fields."""
    found = []
    for number, text in enumerate(texts):
        place = {"broker": 1, "file": text, "position": 0, "offset": number, "what": text}
        fields = dict.fromkeys(TEXTS, text) | {"class": text}
        # No table can hold half a surrogate pair.
        ids = text.encode("utf-8", "backslashreplace").decode()
        fields |= {"transactional_id": ids, "group_id": ids}
        found.append(finding(finding_id=f"{number:064x}", evidence=[place], **fields))
    return found


def _summary(texts: list[str]) -> Row:
    gate = summary()["gate"] | {"failing": len(texts)}
    said = {"outcome": "failed", "offences": 1, "promise": "plain", "evidence": texts}
    return summary(
        cluster_id=texts[0],
        command_line=texts,
        could_not_judge=texts,
        gate=gate,
        verdict="failed",
        input={"paths": texts, "fingerprint": "f"},
        expectations=[{"name": "bronze.keys", **said}],
        detectors=summary()["detectors"] | {"offset_race": texts[1]},
        coverage=summary()["coverage"] | {"skipped": texts, "skipped_files": len(texts)},
        suppressions=[
            {"code": "c", "line": 1, "state": "unused", "count": 0, "reason": text, "owner": text,
             "expires": "2027-01-31"}
            for text in texts
        ],
    )  # fmt: skip


HARMLESS = [f"plain{number}" for number in range(len(CORPUS))]


class _Structure(HTMLParser):
    """Tags with the names of their attributes, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, ...]] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("/" + tag,))

    def handle_decl(self, decl: str) -> None:
        self.found.append(("!" + decl,))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment",))


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Tables that hold the hostile ids too."""
    root = tmp_path_factory.mktemp("out")
    stored_output.write(root, stored_output.tables(), summary())
    return Facts(str(root), RUN_ID)


def _page(texts: list[str], facts: Facts) -> str:
    settings = Config(max_examples=1000)
    return page.render(_summary(texts), _findings(texts), facts, settings, "/* */", "// own")


def test_the_page_has_the_same_structure(facts: Facts) -> None:
    hostile, plain = (_Structure(_page(texts, facts)) for texts in (CORPUS, HARMLESS))
    assert hostile.found == plain.found
    assert hostile.links == plain.links
    assert not [
        names for names in hostile.found if any(name.startswith("on") for name in names[1:])
    ]


def test_the_page_shows_control_characters(facts: Facts) -> None:
    assert not _CONTROL.search(_page(CORPUS, facts))


def test_tables_of_hostile_ids_make_harmless_plots(tmp_path: Path) -> None:
    rows = stored_output.tables()
    evil = '"/><script>alert(1)</script>\x1b'
    for row in rows["coordinator"]:
        row["transactional_id"] = evil
    for name in ("replica", "partition_history"):
        for row in rows[name]:
            row["topic"] = evil
    stored_output.write(tmp_path, rows, summary())
    accused = finding(topic=evil, transactional_id=evil)
    facts = Facts(str(tmp_path), RUN_ID)
    text = page.render(summary(), [accused], facts, Config(), "/* */", "// own")
    assert "<script>alert" not in text
    assert not _CONTROL.search(text)
    assert "Timeline" in text


def test_junit_is_read_back(facts: Facts) -> None:
    text = junit(_summary(CORPUS), _findings(CORPUS), 1000)
    root = ElementTree.fromstring(text)
    plain = ElementTree.fromstring(junit(_summary(HARMLESS), _findings(HARMLESS), 1000))
    assert [one.tag for one in root.iter()] == [one.tag for one in plain.iter()]
    failure = next(one for one in root.iter("failure"))
    assert failure.text is not None
    assert sanitise(CORPUS[0]) in failure.text
    assert not _CONTROL.search(text)


def test_markdown_holds_nothing_live() -> None:
    def kinds(texts: list[str]) -> list[str]:
        parser = MarkdownIt("gfm-like", {"linkify": False, "html": True})
        tokens = parser.parse(markdown(_summary(texts), _findings(texts), 1000, "out"))
        return [one.type for token in tokens for one in (token, *(token.children or ()))]

    short = [text for text in CORPUS if len(text) < 1000]
    found = kinds(short)
    assert found == kinds(HARMLESS[: len(short)])
    assert not {"link_open", "image", "html_inline", "html_block"} & set(found)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_terminal_gets_no_escape(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal  # type: ignore[method-assign]  # a stream that says it is one
    about, found = _summary(CORPUS[:-1]), _findings(CORPUS[:-1])
    result: Any = SimpleNamespace(summary=about, examples=found, output_dir="out/runs/r1")
    terminal.render(result, terminal.console(stream))
    assert not _CONTROL.search(stream.getvalue())


def test_json_is_read_back(tmp_path: Path) -> None:
    texts = [sanitise(text) for text in CORPUS]
    write_together(tmp_path, {"findings.jsonl": finding_lines(_findings(texts))})
    lines = (tmp_path / "findings.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line)["title"] for line in lines] == texts
    write_json(tmp_path / "summary.json", _summary(CORPUS))
    assert json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["command_line"]


@pytest.mark.parametrize("name", ["topic", "transactional_id", "group_id"])
def test_no_command_with_something_for_a_shell(name: str) -> None:
    for text in map(sanitise, CORPUS):
        if re.fullmatch(r"[A-Za-z0-9._-]*", text):
            continue
        advice = f"kafka-transactions.sh --bootstrap-server <host:port> abort --topic {text} --partition 0"
        assert commands(finding(advice=advice, **{name: text})) == []
    plain = (
        "kafka-transactions.sh --bootstrap-server <host:port> describe --transactional-id a.b_c-1"
    )
    found = commands(finding(advice=f"First: {plain}; only then"))
    assert found == [plain]


def test_advice_in_pieces_has_each_word_once() -> None:
    first = "kafka-transactions.sh --bootstrap-server <host:port> describe --transactional-id a"
    then = "kafka-transactions.sh --bootstrap-server <host:port> abort --topic t --partition 0"
    old = f"{then} --producer-id 7"
    told = finding(
        advice=f"First: {first}; only when empty: {then} (brokers older than 3.0: {old})"
    )
    assert pieces(told, with_commands=True) == [
        (False, "First:"), (True, first), (False, "only when empty:"), (True, then),
        (False, "brokers older than 3.0:"), (True, old),
    ]  # fmt: skip
    assert pieces(told, with_commands=False) == [(False, told["advice"])]
    hostile = told | {"topic": "a;rm"}
    assert pieces(hostile, with_commands=True) == [(False, told["advice"])]


def test_junit_says_where_its_run_came_from() -> None:
    root = ElementTree.fromstring(junit(_summary(HARMLESS), [], 1000))
    for suite in root.iter("testsuite"):
        said = {one.get("name"): one.get("value") for one in suite.iter("property")}
        assert said["inputs"] == said["command_line"] == " ".join(HARMLESS)
        assert said["input_fingerprint"] == "f"
        assert said.keys() >= {"run_id", "version", "configuration", "verdict"}
