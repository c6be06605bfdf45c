"""Hook of mkdocs: the pages of the detectors in the navigation, whichever there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Put a page for each detector below the entry `Detectors`.

    Args:
        config: Settings of mkdocs.

    Raises:
        ValueError: `mkdocs.yml` has no such entry.
    """
    entry = next(
        (one for one in config["nav"] if one == {"Detectors": "detectors/README.md"}), None
    )
    if entry is None:
        raise ValueError("the navigation has no entry Detectors: detectors/README.md")
    pages = sorted(Path(config["docs_dir"], "detectors").glob("*.md"))
    names = [file.stem for file in pages if file.stem != "README"]
    overview: list[Any] = [{"All detectors": "detectors/README.md"}]
    entry["Detectors"] = overview + [{name: f"detectors/{name}.md"} for name in names]
    return config
