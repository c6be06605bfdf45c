"""Licences of the pinned packages, as their own metadata tell: `docs/licences.md`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageMetadata, PackageNotFoundError, distribution
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "licences.md"
_HEAD = """# Licences of the dependencies

Nothing of them is part of this repository: the first start installs what `setup.cfg` names. The table is made of the
packages' own metadata by `python -m docs.licences`. *run* is what an audit needs, *dev* what tests and documents do.
Spark, Delta Lake and the JARs of Delta Lake (`io.delta`) are under the Apache License 2.0.

| package | version | for | licence |
|---|---|---|---|
"""
_CLASSIFIER = "License :: OSI Approved :: "


def licence(metadata: PackageMetadata) -> str:
    """The SPDX expression, else the classifiers, else the first line of the text."""
    expression = metadata.get("License-Expression")
    if expression:
        return str(expression)
    listed = [one for one in metadata.get_all("Classifier") or () if one.startswith(_CLASSIFIER)]
    if listed:
        return ", ".join(one.removeprefix(_CLASSIFIER) for one in listed)
    text = str(metadata.get("License") or "").strip()
    return text.splitlines()[0][:80] if text else "its metadata name none"


def needed(of: str) -> set[str]:
    """Names of packages that one needs without extras, itself included, as far as they are here."""
    found: set[str] = set()
    waiting = [of]
    while waiting:
        name = _plain(waiting.pop())
        one = _installed(name)
        if one is None or name in found:
            continue
        found.add(name)
        waiting += [_name(text) for text in one.requires or () if "extra ==" not in text]
    return found


def rows(pins: list[str], direct: list[str]) -> Iterator[str]:
    """Lines of the table, in the order of the pins; what is not installed here is left out.

    Args:
        pins: Lines `name==version`.
        direct: Packages that an audit imports.
    """
    at_run = set().union(*map(needed, direct))
    for pin in pins:
        one = _installed(pin.partition("==")[0])
        if one is not None:
            use = "run" if _plain(one.name) in at_run else "dev"
            yield f"| {one.name} | {one.version} | {use} | {licence(one.metadata)} |\n"


def page() -> str:
    """The whole page."""
    from jobs.set_up import requirements

    pins = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    direct = [_name(text) for text in requirements(is_dev=False)]
    return _HEAD + "".join(rows([pin for pin in pins if "==" in pin], direct))


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
