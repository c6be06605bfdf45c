"""Memory of a whole audit as the input grows: `python -m tests.reliability.memory FOLDER 10 100` (figure 15).

One segment of 100,000 batches stands in as many partitions as asked for, by hard links, so that it costs no disk.
`large` instead of a number is one segment of 1 GiB without an index, which a single worker reads from end to end. The
driver's heap is 1 GiB, and `spark-submit.sh` starts it, as users do. Prints the largest resident memory of the driver,
the JVM and any Python worker of the run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests import builders

ROOT = Path(__file__).resolve().parents[2]
BATCHES = 100_000
LARGE = "large"
LARGE_BYTES = 1 << 30
RECORD_BYTES = 16 << 10
EVERY_S = 0.2


def tree(folder: Path, partitions: int) -> Path:
    """The log directory of a broker with that many partitions."""
    logs = folder / f"logs-{partitions}"
    shutil.rmtree(logs, ignore_errors=True)
    first = logs / "grown-0" / f"{0:020d}.log"
    first.parent.mkdir(parents=True)
    with first.open("wb") as sink:
        for number in range(BATCHES):
            sink.write(
                builders.batch(
                    number, producer_id=number % 7, producer_epoch=0, base_sequence=number // 7
                )
            )
    for partition in range(1, partitions):
        copy = logs / f"grown-{partition}" / first.name
        copy.parent.mkdir()
        copy.hardlink_to(first)
    return logs


def large(folder: Path) -> Path:
    """The log directory of a broker with one partition, of one segment of 1 GiB in batches of 16 KiB."""
    logs = folder / "logs-large"
    shutil.rmtree(logs, ignore_errors=True)
    only = logs / "large-0" / f"{0:020d}.log"
    only.parent.mkdir(parents=True)
    record = [builders.Rec(value=bytes(RECORD_BYTES))]
    with only.open("wb") as sink:
        for number in range(LARGE_BYTES // (RECORD_BYTES + 100)):
            sink.write(
                builders.batch(
                    number, record, producer_id=7, producer_epoch=0, base_sequence=number
                )
            )
    return logs


def group(leader: int) -> dict[int, str]:
    """Process id -> its part, of a process and all below it."""
    parents: dict[int, tuple[int, str]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text()
        except OSError:
            continue  # it has just ended
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :]
        parents[int(status.parent.name)] = (int(rest.split()[1]), name)
    found: dict[int, str] = {}
    wanted = {leader}
    while wanted:
        found |= {one: parents[one][1] for one in wanted if one in parents}
        wanted = {one for one, (parent, _) in parents.items() if parent in wanted}
    parts = {"python": "worker", "java": "JVM"}
    return {
        one: "driver" if one == leader else parts.get(name, name) for one, name in found.items()
    }


def resident(process: int) -> int:
    """Largest resident memory so far, in MiB; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    sizes = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return sizes[0] >> 10 if sizes else 0


def measured(folder: Path, what: str) -> str:
    """Audits once.

    Args:
        folder: For input and output.
        what: Number of partitions, or `large`.

    Returns:
        One line of figures.
    """
    logs = large(folder) if what == LARGE else tree(folder, int(what))
    output = folder / f"out-{what}"
    shutil.rmtree(output, ignore_errors=True)
    begun = time.monotonic()
    process = subprocess.Popen(
        [ROOT / "spark-submit.sh", "--input", logs, "--output", output,
         "--spark", "--driver-memory", "1g"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    peaks: dict[str, int] = {}
    while process.poll() is None:
        for one, name in group(process.pid).items():
            peaks[name] = max(peaks.get(name, 0), resident(one))
        time.sleep(EVERY_S)
    seconds = time.monotonic() - begun
    shutil.rmtree(output, ignore_errors=True)
    said = ", ".join(f"{name} {size} MiB" for name, size in sorted(peaks.items()))
    shutil.rmtree(logs)
    size = "one segment of 1 GiB" if what == LARGE else f"{int(what) * BATCHES} batches"
    return f"{size}: {said}; {seconds:.0f} s, exit {process.returncode}"


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        print(measured(Path(sys.argv[1]), wanted), flush=True)
