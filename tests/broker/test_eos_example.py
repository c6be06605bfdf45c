"""The example project of `docs/ci.md` does what its page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import junitparser
import pytest

from tests.broker import artifacts

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.spark]

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "eos-test"
VERSION = "4.3.1"


def test_broker_test_gate(tmp_path: Path) -> None:
    assert f"<version>{VERSION}</version>" in (EXAMPLE / "pom.xml").read_text()
    try:
        jars = artifacts.jars(VERSION)
    except artifacts.NoArtifacts as error:
        pytest.skip(f"no Kafka {VERSION}: {error}")
    environment = {**os.environ, "KAFKA_JARS": str(jars), "PYTHON": sys.executable,
                   "WORK": str(tmp_path)}  # fmt: skip
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [str(EXAMPLE / "run.sh")], env=environment, capture_output=True, text=True, timeout=580,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    (run,) = (tmp_path / "audit" / "runs").iterdir()
    suites = list(junitparser.JUnitXml.fromfile(str(run / "junit.xml")))
    assert [(suite.failures, suite.errors) for suite in suites] == [(0, 0)] * len(suites)
    assert "PASSED" in done.stdout
