"""The same input gives the same answer, whatever the process, the place and the clock (figures 13 and 14)."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.config import Config
from pipeline.spark import walk
from pipeline.spark.plan import plan
from pipeline.wire import segment
from pipeline.wire.batch import Batch
from tests import builders
from tests.pure_audit import accusations
from tests.recordings import recording
from tests.reliability.stored import stored
from tests.spark.audited import audited

ROOT = Path(__file__).resolve().parents[2]
RUN = "night"
TEN_YEARS_MS = 10 * 365 * 86_400_000
PLACES = (
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
    {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "random", "TZ": "America/St_Johns", "LC_ALL": "POSIX"},
)
PURE = """
import hashlib, sys
from pipeline.config import Config
from pipeline.spark.plan import plan
from tests.pure_audit import accusations
for folder in sys.argv[1:]:
    print(hashlib.sha256(repr((plan([folder]), accusations(folder, Config()))).encode()).hexdigest())
"""
MAX = 2**63 - 1
TIMES = (-1, 0, MAX)
BASE_AT, MAX_AT = 27, 35
"""Places of the first and the greatest time in a batch header."""


@pytest.mark.slow
def test_hash_seed_time_zone_and_locale() -> None:
    folders = [str(recording(number) / "logs") for number in ("06", "08a", "14a")]
    said = [
        subprocess.run(
            [sys.executable, "-c", PURE, *folders],
            env={**os.environ, **place, "PYTHONPATH": str(ROOT)},
            check=True, capture_output=True, text=True,
        ).stdout
        for place in PLACES
    ]  # fmt: skip
    assert said[0].count("\n") == len(folders)
    assert said[0] == said[1] == said[2]


class Shuffled:
    """`os.scandir` of a file system that lists as it likes."""

    def __init__(self, path: str, rng: random.Random) -> None:
        with _SCANDIR(path) as entries:
            self.entries = list(entries)
        rng.shuffle(self.entries)

    def __enter__(self) -> Iterator[os.DirEntry[str]]:
        return iter(self.entries)

    def __exit__(self, *error: object) -> None:
        return


_SCANDIR, _TIME_NS = os.scandir, time.time_ns


def test_the_order_of_a_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(recording("14a") / "logs")
    whole = plan([folder])
    for seed in range(20):
        rng, listed = random.Random(seed), list[str]()

        def scandir(path: str, rng: random.Random = rng, listed: list[str] = listed) -> Shuffled:
            listed.append(path)
            return Shuffled(path, rng)

        monkeypatch.setattr(walk.os, "scandir", scandir)
        assert plan([folder]) == whole
        assert len(listed) > len(list(Path(folder).iterdir()))


def with_times(source: Path, target: Path, rng: random.Random) -> None:
    """A copy in which most batches of user topics carry an odd time, their checksum put right."""
    shutil.copytree(source, target)
    changed = 0
    for file in target.glob("*/*-[0-9]*/*.log"):
        if file.parent.name.startswith("__"):
            continue
        data = file.read_bytes()
        parts = []
        for item in segment.iterate(data):
            part = bytearray(data[item.position : item.position + item.size_bytes])
            if isinstance(item, Batch) and item.magic == 2 and rng.random() < 0.7:
                struct.pack_into(">q", part, BASE_AT, rng.choice(TIMES))
                struct.pack_into(">q", part, MAX_AT, rng.choice(TIMES))
                part = bytearray(builders.with_crc(part))
                changed += 1
            parts.append(bytes(part))
        file.write_bytes(b"".join(parts))
    assert changed > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_odd_times_are_read(seed: int, tmp_path: Path) -> None:
    """Times of applications and of markers decide less, but nothing breaks on them."""
    with_times(recording("06") / "logs", tmp_path / "logs", random.Random(seed))
    accusations(tmp_path / "logs", Config())


@pytest.mark.spark
@pytest.mark.slow
def test_tables_of_another_process_and_place(spark: SparkSession, tmp_path: Path) -> None:
    """A process of its own, with another hash seed, time zone and locale."""
    source = recording("06") / "logs"
    audited(spark, source, tmp_path / "here", run_id=RUN, now_ms=time.time_ns() // 1_000_000)
    command = [sys.executable, "-m", "jobs", "--input", str(source), "--run-id", RUN]
    subprocess.run(
        [*command, "--output", str(tmp_path / "there")],
        env={**os.environ, **PLACES[1], "PYTHONPATH": str(ROOT)},
        check=False, capture_output=True,
    )  # fmt: skip
    assert stored(tmp_path / "there", RUN) == stored(tmp_path / "here", RUN)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.full
def test_tables_of_other_clocks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clocks of the driver that are ten years off."""
    source = recording("06") / "logs"
    held = []
    for moved_ms in (0, -TEN_YEARS_MS, TEN_YEARS_MS):
        output = tmp_path / str(moved_ms)
        moved_ns = moved_ms * 1_000_000
        monkeypatch.setattr(time, "time_ns", lambda moved=moved_ns: _TIME_NS() + moved)
        monkeypatch.setattr(time, "time", lambda moved=moved_ns: (_TIME_NS() + moved) / 1e9)
        audited(spark, source, output, run_id=RUN, now_ms=time.time_ns() // 1_000_000)
        monkeypatch.undo()
        held.append(stored(output, RUN))
    assert held[0] == held[1] == held[2]


@pytest.mark.spark
def test_an_audit_of_odd_times(spark: SparkSession, tmp_path: Path) -> None:
    with_times(recording("06") / "logs", tmp_path / "logs", random.Random(1))
    result = audited(spark, tmp_path / "logs", tmp_path / "out")
    assert result.exit_code in (0, 1, 3)
    assert Path(result.output_dir, "report.html").exists()
