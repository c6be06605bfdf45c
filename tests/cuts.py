"""Cut copies of recordings: as if somebody had copied the log directories while brokers ran.

`cut` copies a recording's logs without the clean-shutdown file and ends every `.log` at its own
moment; sidecars are then older, newer or gone, checkpoints may be older. `several` lays many cuts
side by side into one tree (`cut-000/broker-1`, `cut-001/broker-1`...); an audit keeps them apart.
"""

from __future__ import annotations

import random
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from pipeline.wire.batch import Batch
from pipeline.wire.segment import iterate
from tests.planting.copied import Row, split

CHECKPOINTS = (
    "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    "log-start-offset-checkpoint", "cleaner-offset-checkpoint",
)  # fmt: skip
UNCUT = "__cluster_metadata-"


@dataclass(frozen=True)
class How:
    """How copies are cut.

    Attributes:
        by_time: each file ends at a moment of its broker's clock; else at any byte, torn.
        spread: how far apart the files' moments lie, as a share of the recording's duration.
        latest: the moments lie around one in the last part of this share (0.2: a late cut).
        old_checkpoints: share of cuts whose checkpoint files are older than the data.
        without: partition directories to leave out, e.g. `__transaction_state-2`.
        without_brokers: broker directories to leave out, e.g. `broker-3`.
        lose_segment: leave out one segment of a partition that has three or more.
        old_beside_merged: leave an old segment beside a merged one.
    """

    by_time: bool = True
    spread: float = 0.5
    latest: float = 1.0
    old_checkpoints: float = 0.5
    without: tuple[str, ...] = ()
    without_brokers: tuple[str, ...] = ()
    lose_segment: bool = False
    old_beside_merged: bool = False


def broker_times(rows: list[Row]) -> list[int]:
    """Return for each batch the broker's time so far: markers, internal records, LogAppendTime.

    CreateTime of user data is the application's and counts nothing; 0 before the first.
    """
    times, now = [], 0
    for row in rows:
        if row.is_marker or row.attributes & 0x08 or row.producer_id < 0:
            now = max(now, row.time_ms)
        times.append(now)
    return times


def duration(source: Path) -> tuple[int, int]:
    """Return the first and last broker-stamped time (ms) in `__transaction_state` and markers."""
    times = [
        row.time_ms
        for log in source.glob("broker-*/*/*.log")
        if not log.parent.name.startswith(UNCUT)
        for row in split(log.read_bytes())
        if row.is_marker or log.parent.name.startswith("__transaction_state")
    ]
    return (min(times), max(times)) if times else (0, 0)


def cut(source: Path, target: Path, seed: int, how: How | None = None) -> Path:
    """Make one cut copy.

    Args:
        source: a recording's `logs` folder.
        target: a folder that does not exist.
        seed: decides every moment.

    Returns:
        `target`.
    """
    how, rng = how or How(), random.Random(seed)
    first, last = duration(source)
    span = last - first
    start = last - rng.random() * how.latest * span
    is_old = rng.random() < how.old_checkpoints
    for broker in sorted(source.glob("broker-*")):
        if broker.name in how.without_brokers:
            continue
        copy = Path(shutil.copytree(broker, target / broker.name))
        (copy / ".kafka_cleanshutdown").unlink(missing_ok=True)
        for folder in sorted(path for path in copy.iterdir() if path.is_dir()):
            if folder.name in how.without:
                shutil.rmtree(folder)
            elif not folder.name.startswith(UNCUT):
                moment = start + (rng.random() - 0.5) * how.spread * span
                _cut_partition(folder, moment if how.by_time else None, rng)
                _rearrange(folder, how, rng)
        if is_old:
            _age_checkpoints(copy, rng)
    return target


def several(source: Path, root: Path, count: int, seed: int, how: How | None = None) -> Path:
    """Lay `count` cuts of one recording into one tree; cut n has seed `seed` + n."""
    for number in range(count):
        cut(source, root / f"cut-{number:03d}", seed + number, how)
    return root


def _cut_partition(folder: Path, moment: float | None, rng: random.Random) -> None:
    logs = sorted(folder.glob("*.log"))
    sizes = [log.stat().st_size for log in logs]
    if moment is None:
        keep = rng.randint(0, sum(sizes))
    else:
        keep, now = 0, 0
        for log in logs:
            rows = split(log.read_bytes())
            times = [max(now, time) for time in broker_times(rows)]
            inside = sum(time <= moment for time in times)
            if not any(times):  # nothing there says when it was written
                inside = rng.randint(0, len(rows))
            keep += sum(len(row.data) for row in rows[:inside])
            now = times[-1] if times else now
            if inside < len(rows):
                keep += rng.randint(0, len(rows[inside].data) - 1) if rng.random() < 0.5 else 0
                break
    for number, (log, size) in enumerate(zip(logs, sizes, strict=True)):
        left = keep - sum(sizes[:number])
        if (left >= size and keep < sum(sizes)) or keep == sum(sizes):
            continue
        if left <= 0 and number:
            for file in folder.glob(f"{log.stem}.*"):
                file.unlink()
            continue
        data = log.read_bytes()[: max(left, 0)]
        log.write_bytes(data)
        batches = [one for one in iterate(data) if isinstance(one, Batch)]
        end = batches[-1].last_offset + 1 if batches else int(log.stem)
        _cut_sidecars(folder, log, len(data), end, rng)


def _cut_sidecars(folder: Path, log: Path, size: int, end: int, rng: random.Random) -> None:
    """Make each sidecar agree with the log, leave it newer, or drop it."""
    base = int(log.stem)
    layouts = {"index": ">ii", "timeindex": ">qi", "txnindex": ">hqqqq"}
    for suffix, form in layouts.items():
        file, choice = log.with_suffix(f".{suffix}"), rng.random()
        if not file.exists() or choice < 0.2:
            continue
        if choice < 0.3 and suffix != "txnindex":
            file.unlink()
            continue
        data, step = file.read_bytes(), struct.calcsize(form)
        rows = [struct.unpack_from(form, data, at) for at in range(0, len(data) - step + 1, step)]
        fits = {
            "index": lambda row: row[1] < size and base + row[0] < end,
            "timeindex": lambda row: base + row[1] < end,
            "txnindex": lambda row: row[3] < end,
        }[suffix]
        file.write_bytes(b"".join(struct.pack(form, *row) for row in rows if fits(row)))
    for file in folder.glob("*.snapshot"):
        if int(file.stem) > end and rng.random() < 0.8:
            file.unlink()
    epochs = folder / "leader-epoch-checkpoint"
    if epochs.exists() and rng.random() < 0.8:
        lines = [x for x in epochs.read_text().splitlines()[2:] if int(x.split()[1]) <= end]
        epochs.write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def _rearrange(folder: Path, how: How, rng: random.Random) -> None:
    logs = sorted(folder.glob("*.log"))
    if how.lose_segment and len(logs) >= 3:
        for file in folder.glob(f"{rng.choice(logs[:-1]).stem}.*"):
            file.unlink()
    elif how.old_beside_merged and len(logs) >= 3:
        at = rng.randrange(len(logs) - 2)
        logs[at].write_bytes(logs[at].read_bytes() + logs[at + 1].read_bytes())
        for suffix in (".index", ".timeindex"):
            logs[at].with_suffix(suffix).unlink(missing_ok=True)


def _age_checkpoints(broker: Path, rng: random.Random) -> None:
    for name in CHECKPOINTS:
        file = broker / name
        if not file.exists():
            continue
        lines = []
        for line in file.read_text().splitlines()[2:]:
            topic, partition, offset = line.split()
            if rng.random() < 0.9:
                lines.append(f"{topic} {partition} {int(int(offset) * rng.random())}")
        file.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
