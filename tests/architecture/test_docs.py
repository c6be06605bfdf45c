"""The generated pages are what the code says now, and nothing in them is missing or dead."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from docs import generate
from docs.classes import CLASSES
from jobs import explain
from pipeline.detect import DETECTORS
from schemas import bronze, gold, silver

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
SOURCES = "\n".join(file.read_text() for file in sorted((ROOT / "pipeline").rglob("*.py")))
TEXTS = [file for file in sorted((ROOT / "pipeline").rglob("*.py")) if file.parent.name != "wire"]
REGENERATE = "run: python -m docs.generate"


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_generated_pages_are_current() -> None:
    for name, text in generate.pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"{name} is old; {REGENERATE}"


def test_every_detector_has_a_page_and_no_page_is_left_over() -> None:
    pages = {file.stem for file in (DOCS / "detectors").glob("*.md")} - {"README"}
    assert pages == set(explain.pages()), REGENERATE
    assert set(CLASSES) == set(explain.pages())


def test_every_table_has_a_section() -> None:
    text = (DOCS / "tables.md").read_text(encoding="utf-8")
    for table in (*gold.TABLES, *silver.TABLES, *bronze.TABLES):
        assert f"\n## {table.layer}.{table.name}\n" in text
        assert all(f"| `{name}` |" in text for name in table.names)


@pytest.mark.parametrize("code", sorted(CLASSES))
def test_classes_are_those_of_the_code(code: str) -> None:
    known = {one.name for one in CLASSES[code]}
    assert len(known) == len(CLASSES[code])
    for name in known:
        assert f'"{name}"' in SOURCES, f"{code}/{name} is in the documentation only"
    file = ROOT / "pipeline" / "detect" / f"{code}.py"
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    for one in (node for node in nodes if isinstance(node, ast.keyword)):
        if one.arg == "class_" and isinstance(one.value, ast.Constant):
            assert str(one.value.value) in known


def test_fixed_versions_are_told_for_every_class() -> None:
    for module in DETECTORS:
        known = {one.name for one in CLASSES[module.CODE]}
        if isinstance(module.FIXED_IN, str):
            continue
        named = set(module.FIXED_IN) - {"*"}
        assert named <= known, f"{module.CODE}: no class {sorted(named - known)}"
        assert "*" in module.FIXED_IN or named == known, module.CODE
    page = explain.pages()["marker_audit"]
    assert "* `wrong_epoch`: KAFKA-19446" in page
    assert "* every other class: no defect known" in page


@pytest.mark.parametrize("file", TEXTS, ids=_name)
def test_texts_count_in_words(file: Path) -> None:
    """`1 batch`, `2 batches`: a template names both words, other texts use `counted`."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        said = re.search(r"\w\(s\)|\{\w*(?:count|records|bytes|turns)\} [a-z]+s\b", line)
        assert said is None, f"{file.name}:{number}: {said[0]}"


def test_severities_and_certainties_are_the_contracts() -> None:
    for one in (one for classes in CLASSES.values() for one in classes):
        assert set(one.severity.split(", or ")) <= set(gold.SEVERITIES)
        assert one.certainty in gold.CERTAINTIES


def test_the_recordings_name_known_classes() -> None:
    for file in (ROOT / "tests" / "recordings").glob("*/expect.json"):
        for entries in json.loads(file.read_text(encoding="utf-8"))["must"]:
            for entry in entries if isinstance(entries, list) else [entries]:
                names = entry.get("class", [])
                for name in names if isinstance(names, list) else [names]:
                    known = {one.name for one in CLASSES.get(entry["code"], ())}
                    assert name in known or entry["code"] not in CLASSES


def test_a_docstring_without_a_part_is_refused() -> None:
    text = explain.pages()["manual_abort"]
    assert generate.detector_page("manual_abort", text).startswith("# manual_abort\n")
    with pytest.raises(ValueError, match="Normal"):
        generate.detector_page("manual_abort", text.replace("Normal:", "Usual:"))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_options_in_pages_exist(page: Path) -> None:
    from jobs.cli import cli

    known = {opt for job in cli.commands.values() for one in job.params for opt in one.opts}
    known |= {"--spark", "--help"}
    for line in re.findall(r"^.*spark-submit\.sh.*$", page.read_text(encoding="utf-8"), re.M):
        ours = line.partition("spark-submit.sh")[2].partition("--spark ")[0]
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", ours)) <= known, line
