"""The examples of the pages on CI and nights are what they say: YAML that parses, settings that are accepted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from jobs import explain
from pipeline.config import load
from pipeline.config_sections import Gate
from pipeline.gate.suites import suites
from pipeline.suppressions import load as load_suppressions

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def _block(page: str, language: str, word: str) -> str:
    (found,) = [one for one in _blocks(page, language) if word in one]
    return found


def test_the_policy_is_accepted(tmp_path: Path) -> None:
    codes = list(explain.pages())
    (tmp_path / "audit.yaml").write_text(_block("ci.md", "yaml", "require:"))
    (tmp_path / "suppressions.yaml").write_text(_block("ci.md", "yaml", "reason:"))
    config = load(str(tmp_path / "audit.yaml"), {}, codes)
    assert len(config.gate.rules) == 2
    assert config.suppressions == load_suppressions(str(tmp_path / "suppressions.yaml"), codes)
    (tmp_path / "report.yaml").write_text(_block("report.md", "yaml", "report:"))
    load(str(tmp_path / "report.yaml"), {}, codes)


@pytest.mark.parametrize("word", ["runs-on:", "artifacts:"])
def test_the_jobs_are_yaml_that_gates_and_keeps_the_files(word: str) -> None:
    text = _block("ci.md", "yaml", word)
    assert yaml.safe_load(text)
    assert "spark-submit.sh --input broker-logs --output audit" in text
    assert "audit/runs" in text


def test_the_night_is_a_script() -> None:
    script = _block("nightly.md", "bash", "nightly.sh:")
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^\d+ \d+ \* \* \*  audit  /opt/", _block("nightly.md", "", "audit  /opt"), re.M
    )


def test_every_expectation_is_explained() -> None:
    text = (DOCS / "ci.md").read_text(encoding="utf-8")
    for one in suites(Gate()):
        assert f"| `{one.name}` | {one.promise} |" in text


def test_the_count_of_faults_is_true() -> None:
    from tests.gate.test_never_open import FAULTS

    assert f"\n{len(FAULTS)} induced faults" in (DOCS / "ci.md").read_text(encoding="utf-8")
