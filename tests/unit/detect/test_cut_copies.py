"""Copies of clean recordings, cut at random moments: nobody may be accused. AUDIT_CUTS sets how many.

Every file ends at its own moment, clean-shutdown files are gone, half of the checkpoints are old;
some copies lack a coordinator partition, a broker or a segment, or hold an old segment beside a
merged one. Grace and clock skew are scaled to recordings that last seconds.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
from pathlib import Path

import pytest

from pipeline.config import Config
from tests import cuts, pure_rules
from tests.planting.copied import CopiedLogs, split
from tests.pure_audit import accusations, replayed
from tests.pure_input import read
from tests.recordings import recording
from tests.score import complaints, expected, is_loud, told

pytestmark = pytest.mark.slow
CUTS = int(os.environ.get("AUDIT_CUTS", "100"))
CLEAN = (
    "01", "02", "04a", "05a", "10a", "10c", "11a", "11b", "12a", "13a", "14a", "25a", "26a", "30",
    "34", "36", "37b", "40b", "41a", "43a", "44a", "45a", "46b", "48a", "50a", "51a", "52a",
)  # fmt: skip
KINDS = ("whole", "whole", "coordinator", "broker", "segment", "merged")
GRACE_MS = {"14a": 5_000, "26a": 25_000}
"""The longest that markers took, where that is more than the usual 100 ms."""
OPEN_MS = {"14a": 60_000}


@pytest.fixture(autouse=True)
def _durations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "duration", _duration)


@functools.cache
def _duration(source: Path) -> tuple[int, int]:
    return _measured(source)


_measured = cuts.duration


def config(number: str) -> Config:
    """Tolerances of 150 ms and 20 ms in place of 30 s and 1 s."""
    return Config(
        marker_grace_ms=GRACE_MS.get(number, 150), clock_skew_ms=20,
        transaction_max_timeout_ms=OPEN_MS.get(number, 20_000), late_buffer_ms=5_000,
    )  # fmt: skip


def how_to_cut(source: Path, rng: random.Random) -> cuts.How:
    """What is cut, and what is left out."""
    coordinator = sorted({one.name for one in source.glob("broker-*/__transaction_state-*")})
    brokers = sorted(one.name for one in source.glob("broker-*"))
    kind = rng.choice(KINDS)
    left_out = rng.sample(coordinator, rng.randint(1, max(1, len(coordinator) // 2)))
    lost_broker = [rng.choice(brokers)] if len(brokers) > 1 else []
    return cuts.How(
        by_time=rng.random() < 0.8,
        spread=rng.choice([0.02, 0.1, 0.3, 0.5, 1.0]),
        latest=rng.choice([0.05, 0.3, 1.0]),
        without=tuple(left_out) if kind == "coordinator" else (),
        without_brokers=tuple(lost_broker) if kind == "broker" else (),
        lose_segment=kind == "segment",
        old_beside_merged=kind == "merged",
    )


@pytest.mark.parametrize("seed", range(CUTS))
def test_a_cut_copy_accuses_nobody(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    number = rng.choice(CLEAN)
    source = recording(number) / "logs"
    how = how_to_cut(source, rng)
    print(number, how)
    cuts.cut(source, tmp_path / "cut", seed, how)
    found = accusations(tmp_path / "cut", config(number))
    assert [told(one) for one in found if is_loud(one)] == []


LATE = {
    # In 06 one coordinator partition has no file: only a clean stop says that it was empty.
    "06": (("orphan_producer",), (0, 1, 2)),
    # Nothing in 08a says when it was written: these seeds leave its last offsets.
    "08a": ((), (5, 8, 9)),
    "19": ((), (0, 1, 2)),
    "37a": ((), (0, 1, 2)),
}


LATE_CUTS = [(number, seed) for number, (_, seeds) in LATE.items() for seed in seeds]


@pytest.mark.parametrize(("number", "seed"), LATE_CUTS)
def test_a_late_cut_keeps_what_it_must_show(number: str, seed: int, tmp_path: Path) -> None:
    folder = recording(number)
    first, last = cuts.duration(folder / "logs")
    spread = 0.01 * seed
    cuts.cut(folder / "logs", tmp_path / "cut", seed, cuts.How(latest=0, spread=spread))
    begun_ms = int(last - spread / 2 * (last - first))
    scaled = Config(marker_grace_ms=50, clock_skew_ms=5, copy_started_ms=begun_ms)
    one = replayed(read(tmp_path / "cut", scaled))
    ends = {(place.topic, place.partition): place.log_end_offset for place in one.read.facts}
    expect = expected(folder)
    must = [
        wanted
        for wanted in expect["must"]
        if wanted["first_offset"] < ends[wanted["topic"], wanted["partition"]]
        and wanted.get("class") not in LATE[number][0]
    ]
    assert must
    assert complaints(pure_rules.accusations(one), {**expect, "must": must}) == []


@pytest.mark.parametrize("number", ["14a", "23", "26a"])
def test_a_broker_that_was_not_copied_refutes_nothing(number: str, tmp_path: Path) -> None:
    """All others were stopped cleanly, at instants of their own."""
    folder = recording(number)
    for name in sorted(one.name for one in (folder / "logs").glob("broker-*")):
        rest = tmp_path / f"without-{name}"
        rest.mkdir()
        for broker in (folder / "logs").glob("broker-*"):
            if broker.name != name:
                (rest / broker.name).symlink_to(broker)
        loud = [told(one) for one in accusations(rest) if is_loud(one)]
        allowed = number == "23" and all("replica_divergence" in one for one in loud)
        assert allowed or loud == [], name


def _segments(source: Path, *, last: bool) -> list[Path]:
    """Segments of partitions that have more than one: each one's last, or all the others."""
    found = []
    for folder in sorted(source.glob("broker-*/*-*")):
        logs = sorted(folder.glob("*.log"))
        if len(logs) > 1 and not folder.name.startswith(cuts.UNCUT):
            found += logs[-1:] if last else logs[:-1]
    return found


def _accused_without(segment: Path, source: Path, target: Path) -> list[str]:
    shutil.copytree(source, target)
    for file in (target / segment.parent.relative_to(source)).glob(f"{segment.stem}.*"):
        file.unlink()
    gap = f"damaged_log gap_between_segments major proven {' '.join(segment.parent.name.rsplit('-', 1))} "
    found = [told(one) for one in accusations(target) if is_loud(one)]
    found = [one for one in found if not one.startswith(gap)]
    shutil.rmtree(target)
    return [f"{segment.parent.name} {segment.stem}: {one}" for one in found]


@pytest.mark.parametrize(
    ("number", "last"),
    [
        ("01", False),
        ("02", False),
        ("10a", False),
        *((number, True) for number in ("01", "02", "10c", "40b")),
    ],
)
def test_a_segment_that_was_not_copied_refutes_nothing(
    number: str, last: bool, tmp_path: Path
) -> None:
    """All brokers were stopped cleanly; checkpoints say where each log ends. That it is missing may be told."""
    source = recording(number) / "logs"
    segments = _segments(source, last=last)
    chosen = random.Random(0).sample(segments, min(10, len(segments)))
    accused = [one for file in chosen for one in _accused_without(file, source, tmp_path / "in")]
    assert accused == []


@pytest.mark.parametrize("number", ["20a", "20b"])
def test_a_partition_copied_before_its_marker_is_not_stuck(number: str, tmp_path: Path) -> None:
    """A transaction waits for one dead partition; its other one had the marker at once, but was copied before."""
    logs = CopiedLogs(recording(number) / "logs", tmp_path / "copy")
    for stopped in logs.path.glob("broker-*/.kafka_cleanshutdown"):
        stopped.unlink()
    file = next(logs.folder("s-topic", 0).glob("*.log"))
    rows = split(file.read_bytes())
    owners = {
        row.producer_id for row in rows[: next(i for i, r in enumerate(rows) if r.is_marker) + 1]
    }
    first = next(i for i, row in enumerate(rows) if row.is_marker and row.producer_id not in owners)
    file.write_bytes(b"".join(row.data for row in rows[:first]))
    found = accusations(logs.path)
    alive = [one for one in found if (one["topic"], one["partition"]) != ("s-topic", 1)]
    assert [told(one) for one in alive if is_loud(one)] == []
