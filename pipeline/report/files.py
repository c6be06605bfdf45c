"""Files of one run: written whole or not at all, `summary.json` last."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from schemas.gold import FINDING


def write_findings(path: Path, findings: Iterable[dict[str, Any]]) -> None:
    """One finding a line, the columns of `gold.finding` in order."""
    lines = (
        json.dumps({name: finding.get(name) for name in FINDING.names}, ensure_ascii=False) + "\n"
        for finding in findings
    )
    _replace(path, lines)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """A JSON object with sorted keys."""
    _replace(path, [json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"])


def write_text(path: Path, text: str) -> None:
    """A text file in UTF-8."""
    _replace(path, [text])


def _replace(path: Path, lines: Iterable[str]) -> None:
    """Temp file in the same folder, flushed to disk, then renamed over the target."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(lines)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
