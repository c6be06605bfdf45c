"""Structure that a reviewer would otherwise have to watch."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("jobs", "pipeline", "schemas")
PURE = {"pyspark", "pandas", "delta", "great_expectations", "logging", "time", "datetime"}


def _modules(*packages: str) -> list[Path]:
    return [file for package in packages for file in sorted((ROOT / package).rglob("*.py"))]


def _imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_imports_go_one_way() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["schemas", "pipeline/wire", "pipeline/replay"])
def test_the_core_knows_no_spark_and_no_clock(folder: str) -> None:
    for file in _modules(folder):
        roots = {name.partition(".")[0] for name in _imports(file)}
        assert not roots & PURE, file


def test_few_modules_know_delta() -> None:
    known = {
        str(file.relative_to(ROOT))
        for file in _modules("pipeline")
        if re.search(
            r"format\([\"']delta|\bDeltaLog\b|^(from|import) delta", file.read_text(), re.M
        )
    }
    assert known <= {"pipeline/spark/commits.py", "pipeline/spark/tables.py"}


def test_every_package_can_be_imported_from_an_archive() -> None:
    for package in PACKAGES:
        for folder in {file.parent for file in _modules(package)}:
            assert (folder / "__init__.py").exists(), folder


def test_nothing_inside_the_pipeline_is_random_or_now() -> None:
    forbidden = re.compile(r"\.now\(|uuid4|\brandom\b|time\.time\(|current_timestamp|F\.rand\b")
    # Names of files in a Delta table must be new; no row depends on them.
    names_files = {"pipeline/spark/commits.py", "pipeline/spark/parquet.py"}
    for file in _modules("pipeline", "schemas"):
        if file.relative_to(ROOT).as_posix() not in names_files:
            assert not forbidden.search(file.read_text()), file


def test_versions_of_spark_and_delta_are_pinned_alike() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    lines = (ROOT / "constraints.txt").read_text().lower().replace("_", "-").splitlines()
    constraints = dict(line.split("==") for line in lines)
    wanted = parser["options"]["install_requires"] + parser["options.extras_require"]["dev"]
    for requirement in wanted.split():
        name, _, version = requirement.lower().partition("==")
        name = re.split(r"[<>=,]", name)[0].replace("_", "-")
        assert name in constraints, f"{name} is not in constraints.txt"
        assert not version or constraints[name] == version


def test_every_declared_module_of_a_detector_is_registered() -> None:
    listed = (ROOT / "pipeline" / "detect" / "__init__.py").read_text()
    for file in _modules("pipeline/detect"):
        if re.search(r"^CODE = ", file.read_text(), re.MULTILINE):
            assert re.search(rf"^    {file.stem},$", listed, re.MULTILINE), (
                f"{file.stem} is not in DETECTORS"
            )


def test_no_two_tests_have_one_name() -> None:
    """Their folders are no packages, so pytest could not import the second one."""
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
