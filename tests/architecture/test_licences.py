"""The page of licences says what the packages' metadata say."""

from __future__ import annotations

from docs import licences


def test_the_page_is_that_of_the_packages_that_are_here() -> None:
    written = licences.PAGE.read_text(encoding="utf-8").splitlines()
    stale = [line for line in licences.page().splitlines() if line not in written]
    assert stale == [], "run: python -m docs.licences"
    pins = (licences.REPOSITORY / "constraints.txt").read_text(encoding="utf-8").split()
    assert len([line for line in written if line[:1] == "|"]) - 2 == len(pins)


def test_what_an_audit_needs_is_told_apart() -> None:
    lines = licences.PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line[:1] == "|"]
    use = {name: use for _, name, _, use, *_ in cells}
    assert {use[name] for name in ("pyspark", "pyarrow", "great_expectations")} == {"run"}
    assert {use[name] for name in ("mypy", "pytest", "moto")} == {"dev"}
