"""Where the recordings of real brokers are."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent
_PLACES = (_HERE / "recordings", _HERE.parent.parent / "shared" / "recordings")


def all_recordings() -> list[Path]:
    """Folders of all recordings at hand, by name; those of the repository win."""
    found: dict[str, Path] = {}
    for place in _PLACES:
        if place.is_dir():
            for folder in place.iterdir():
                if (folder / "logs").is_dir():
                    found.setdefault(folder.name, folder)
    return [found[name] for name in sorted(found)]


def recording(name: str) -> Path:
    """Folder of one recording; skips the test when it is not at hand.

    Args:
        name: the folder's name, or its number alone ("06", "15a").
    """
    for folder in all_recordings():
        if folder.name == name or folder.name.split("-")[0] == name:
            return folder
    reason = f"recording {name} is neither in tests/recordings nor beside the repository"
    print(reason)
    pytest.skip(reason)
