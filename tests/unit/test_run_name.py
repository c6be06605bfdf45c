"""A run's name: known before anything is read, and the moment of the verdict wherever brokers stamp in order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.run import DEFAULTS
from jobs.self_check import SAMPLE
from pipeline.config import Config, load
from pipeline.config_sections import parse_time
from pipeline.run_name import newest_ms, run_name
from pipeline.spark.plan import plan
from tests.pure_input import read
from tests.recordings import all_recordings, recording


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_it_is_the_newest_time_of_the_logs(folder: Path) -> None:
    known = [one.read_until_ms for one in read(folder / "logs", Config()).facts]
    newest = max(one for one in known if one is not None)
    assert newest_ms(plan([str(folder / "logs")]).files) == newest


def test_the_same_input_and_settings_have_the_same_name() -> None:
    planned = plan([str(recording("06") / "logs")])
    name = run_name(planned, Config())
    assert re.fullmatch(r"20261127T235428Z-[0-9a-f]{8}", name)
    assert run_name(planned, Config(output="elsewhere", now_ms=7)) == name
    assert run_name(planned, Config(clock_skew_ms=2000))[:16] == name[:16]
    assert run_name(planned, Config(clock_skew_ms=2000)) != name
    given = Config(as_of_ms=parse_time("2026-11-26T02:10:00Z"))
    assert run_name(planned, given).startswith("20261126T021000Z-")


def test_logs_without_a_time_have_no_moment() -> None:
    planned = replace(plan([str(recording("06") / "logs")]), files=())
    assert run_name(planned, Config()).startswith("run-")
    assert run_name(planned, Config(as_of_ms=2**62)).startswith("run-")


def test_a_file_that_went_away_is_left_to_the_ingest() -> None:
    planned = plan([str(recording("06") / "logs")])
    gone = [replace(one, path="/nowhere/00000000000000000000.log") for one in planned.files]
    assert newest_ms(gone) is None


def test_the_readme_shows_the_name_that_the_sample_gets() -> None:
    named = run_name(plan([str(SAMPLE / "logs")]), load(str(DEFAULTS), {"now_ms": 0}))
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"Run       {named}, " in readme
    assert f"runs/{named}/report.html" in readme
