"""Files that are not read are named, with a reason, and many of them make no long line."""

from __future__ import annotations

from pipeline.coverage_report import NAMED, left_aside
from pipeline.spark.inventory import Skipped


def test_each_reason_names_its_files() -> None:
    skipped = [
        Skipped("b/notes.txt", "foreign", "not a file of a log", 5),
        Skipped("b/orders-0.bak/0.log", "not_replayed", "a copy made by hand", 9),
        Skipped("a/core.1", "foreign", "not a file of a log", 7),
    ]
    assert left_aside(skipped) == [
        "foreign: not a file of a log (2 files): a/core.1, b/notes.txt",
        "not_replayed: a copy made by hand (1 file): b/orders-0.bak/0.log",
    ]
    assert left_aside([]) == []


def test_many_files_are_cut_and_counted() -> None:
    skipped = [Skipped(f"{n:04}", "foreign", "not a file of a log") for n in range(NAMED + 1_500)]
    (line,) = left_aside(reversed(skipped))
    assert line.startswith("foreign: not a file of a log (1,520 files): 0000, 0001,")
    assert line.endswith("0019, ... and 1,500 more")
