"""`make notebooks` makes a notebook of each file, with a kernel to open it with."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_every_notebook_is_converted(tmp_path: Path) -> None:
    said = subprocess.run(
        ["make", "-n", "--no-print-directory", "notebooks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    command = said[said.index(".venv/bin/jupytext") :]
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    sources = sorted(one.stem for one in (tmp_path / "notebooks").glob("*.py"))
    made = sorted((tmp_path / "notebooks").glob("*.ipynb"))
    assert [one.stem for one in made] == sources != []
    for one in made:
        notebook = json.loads(one.read_text(encoding="utf-8"))
        assert notebook["metadata"]["kernelspec"]["name"] == "python3", one.name
        kinds = {cell["cell_type"] for cell in notebook["cells"]}
        assert kinds == {"markdown", "code"}, one.name
