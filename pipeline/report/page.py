"""The page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.config import Config


def write_page(
    directory: Path, summary: dict[str, Any], findings: list[dict[str, Any]], config: Config
) -> None:
    """Stub."""
