"""Two runs at once on one output, the one that holds it killed, again and again (figures 9 and 10).

Every round starts two processes of the same command. One has to be told that the other holds the output, and ends with
4; the other gets SIGKILL, with its JVM: at a commit, the next one each time, and behind the last one at a random
instant: it waits until a random number of tables is committed, all but the last at most, and then a random part of
`--longest` seconds. What each kill leaves is copied; at the end the same run id goes through on every copy and on the
output itself, and has to leave the tables, findings and report of an undisturbed run. An earlier run in the same output
has to keep its files throughout. `--first` and `--rounds` take some of the rounds, `--no-end` leaves the end to a later
call.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.recordings import recording
from tests.reliability.stored import PHYSICAL, stored, versions

ROOT = Path(__file__).resolve().parents[2]
POINTS = [f"{when} {one.layer}.{one.name}" for one in PHYSICAL for when in ("before", "after")]
EARLIER, RUN = "earlier", "night"
KEPT = "after-round-"
SAME = ("findings.jsonl", "summary.md")
"""Files of a run that tell nothing of times and command lines, and of paths the output root only."""
_ROOT = re.compile(rb"--output [^\s`<]+")
LOCKED = 4


class Round(NamedTuple):
    """How one round ended.

    Attributes:
        how: Where or when the winner was killed.
        seconds: That the round took.
        was_killed: Whether the winner still ran then.
        committed: Tables that it had committed to.
    """

    how: str
    seconds: float
    was_killed: bool
    committed: list[str]


def start(output: Path, run_id: str, point: str = "") -> subprocess.Popen[str]:
    """An audit in a process group of its own, with its JVM; it kills the group at a commit when it is told one."""
    arguments = ["--input", str(recording("06") / "logs"), "--output", str(output)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.one_run", point, *arguments, "--run-id", run_id],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def whole(output: Path, run_id: str) -> float:
    """One run from beginning to end; seconds that it took."""
    begun = time.monotonic()
    process = start(output, run_id)
    said = process.communicate()[1]
    assert process.returncode in (0, 1, 3), said
    return time.monotonic() - begun


def committed_since(before: dict[str, list[int]], output: Path) -> list[str]:
    """Tables with other commits than before."""
    return [name for name, numbers in versions(output).items() if numbers != before.get(name)]


def one_round(output: Path, point: str, behind: int, delay_s: float) -> Round:
    """Two at once; the loser has to say so, the winner is killed.

    Args:
        output: What both write to.
        point: The commit where the winner kills itself; empty for a random instant.
        behind: Tables that it has committed at least, at that instant.
        delay_s: Seconds that it has left then.
    """
    begun, before = time.monotonic(), versions(output)
    both = [start(output, RUN, point), start(output, RUN, point)]
    try:
        while all(process.poll() is None for process in both):
            time.sleep(0.05)
        loser, winner = both if both[0].poll() is not None else both[::-1]
        said = loser.communicate()[1]
        assert loser.returncode == LOCKED, (loser.returncode, said)
        assert "is in use by process" in said
        if not point:
            while winner.poll() is None and len(committed_since(before, output)) < behind:
                time.sleep(0.02)
            try:
                winner.wait(delay_s)
            except subprocess.TimeoutExpired:
                os.killpg(winner.pid, signal.SIGKILL)
        winner.communicate()
    finally:
        for process in both:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    how = point or f"{delay_s:.2f} s behind {behind} tables"
    committed = committed_since(before, output)
    return Round(how, time.monotonic() - begun, winner.returncode == -signal.SIGKILL, committed)


def files_of(output: Path, run_id: str) -> dict[str, str]:
    """File of a run -> hash, whatever output root its commands name."""
    folder = output / "runs" / run_id
    read = {file.name: _ROOT.sub(b"--output", file.read_bytes()) for file in folder.iterdir()}
    return {name: hashlib.sha256(content).hexdigest() for name, content in read.items()}


def again(folder: Path) -> None:
    """The same run id on the copy of every round's output, one after the other in one JVM; what is right goes."""
    from pipeline import audit
    from pipeline.config import Config
    from pipeline.spark import session

    running = session.build(log=folder / "spark.log")
    for copy in sorted(folder.glob(f"{KEPT}*")):
        source = str(recording("06") / "logs")
        audit.run(running, Config(inputs=(source,), output=str(copy), run_id=RUN))
        as_undisturbed(copy, folder)
        shutil.rmtree(copy)
        print(f"as undisturbed with the same run id again: {copy.name}", flush=True)
    running.stop()


def as_undisturbed(output: Path, folder: Path) -> None:
    """Tables, findings and report of the run are those of an undisturbed one; the earlier run kept its files."""
    reference = folder / "whole"
    assert files_of(output, EARLIER) == files_of(folder / "killed", EARLIER), output
    assert stored(output, EARLIER) == stored(reference, EARLIER), output
    assert stored(output, RUN) == stored(reference, RUN), output
    here, there = files_of(output, RUN), files_of(reference, RUN)
    assert all(here[name] == there[name] for name in SAME), (output, here, there)
    for name, numbers in versions(output).items():
        assert numbers == list(range(len(numbers))), (output, name, numbers)


def main() -> int:
    """Prepares the folder once, goes through some rounds, and ends with whole runs when told to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=len(POINTS) + 10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--longest", type=float, default=2, help="seconds from a commit to the latest random kill"
    )
    parser.add_argument("--no-end", action="store_true", help="further rounds will follow")
    given = parser.parse_args()
    output, reference = given.folder / "killed", given.folder / "whole"
    if not (reference / "runs" / RUN / "summary.json").exists():
        print(f"undisturbed: {whole(reference, EARLIER):.0f} s and {whole(reference, RUN):.0f} s")
        whole(output, EARLIER)
    earlier = files_of(output, EARLIER)
    for number in range(given.first, given.first + given.rounds):
        rng = random.Random(given.seed * 1000 + number)
        point = POINTS[number] if number < len(POINTS) else ""
        behind = rng.randint(1, len(PHYSICAL) - 1)
        done = one_round(output, point, behind, rng.uniform(0, given.longest))
        killed = f"killed: {done.was_killed}, committed: {' '.join(done.committed) or 'nothing'}"
        print(f"round {number}: {done.how}, {killed}, {done.seconds:.0f} s", flush=True)
        assert done.was_killed or not point, f"nobody was killed {point}"
        assert files_of(output, EARLIER) == earlier
        if done.was_killed:
            shutil.copytree(output, given.folder / f"{KEPT}{number}", dirs_exist_ok=True)
    if given.no_end:
        return 0
    again(given.folder)
    whole(output, RUN)
    as_undisturbed(output, given.folder)
    print("as undisturbed: the output of all rounds, by a process of its own")
    return 0


if __name__ == "__main__":
    sys.exit(main())
