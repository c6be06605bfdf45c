"""The launcher of this checkout, set up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobs import set_up

LAUNCHER = Path(__file__).resolve().parents[2] / "spark-submit.sh"


@pytest.fixture(scope="session")
def launcher() -> Path:
    """Its path; the set-up, which `make test` has done already, is done when it was not."""
    if not set_up.is_ready(is_dev=False):
        subprocess.run([str(LAUNCHER), "--help"], check=True, capture_output=True)
    return LAUNCHER
