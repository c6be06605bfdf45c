"""Files of one run: written whole or not at all, together, `summary.json` last."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.gold import FINDING


def finding_lines(findings: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One finding a line, the columns of `gold.finding` in order."""
    return (
        json.dumps({name: finding.get(name) for name in FINDING.names}, ensure_ascii=False) + "\n"
        for finding in findings
    )


def write_json(path: Path, value: dict[str, Any]) -> None:
    """A JSON object with sorted keys."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_together(path.parent, {path.name: [text]})


def write_together(directory: Path, files: Mapping[str, Iterable[str]]) -> None:
    """Text files in UTF-8: all of them on disk beside their targets before the first is renamed over its own.

    A disk that fills up or fails while they are written leaves the earlier ones, which fit together.

    Args:
        directory: Made when it is not there.
        files: Name -> text in pieces.

    Raises:
        OSError: one could not be written; nothing half written is left.
    """
    directory.mkdir(parents=True, exist_ok=True)
    staged = {directory / f"{name}.tmp": directory / name for name in files}
    try:
        for temporary, lines in zip(staged, files.values(), strict=True):
            with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.writelines(lines)
                stream.flush()
                os.fsync(stream.fileno())
        for temporary, target in staged.items():
            os.replace(temporary, target)
    except OSError:
        for temporary in staged:
            temporary.unlink(missing_ok=True)
        raise
    folder = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
