"""What a run says while it works: on a terminal a line a stage, in a pipe nothing.

The line of the running stage moves on: how far Spark's tasks are, and for reading how many bytes a second and
how long it will take.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from pipeline.text import sanitise

EVERY_S = 0.5
LEAST_TASKS = 4
"""Of fewer tasks nobody can tell how long the rest takes."""


class Progress(Protocol):
    """Told the name of a stage as it begins, and the bytes that it will read."""

    def __call__(self, stage: str, size_bytes: int = 0, /) -> None:
        """Begin a stage."""


@contextmanager
def progress() -> Iterator[Progress]:
    """Give a function that tells a stage's name with the seconds since the start."""
    screen = _Screen(sys.stderr) if sys.stderr.isatty() else None

    def say(stage: str, size_bytes: int = 0, /) -> None:
        if screen is not None:
            screen.begin(stage, size_bytes)

    try:
        yield say
    finally:
        if screen is not None:
            screen.end()


class _Screen:
    """One moving line on a terminal, and one that stays for each stage that is over."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = self._begun = time.monotonic()
        self._stage, self._size = "", 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()

    def begin(self, stage: str, size_bytes: int) -> None:
        with self._lock:
            self._close()
            self._stage, self._size = sanitise(stage), size_bytes
            self._begun = time.monotonic()
            self._draw("")

    def end(self) -> None:
        self._over.set()
        self._ticker.join()
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._stage:
            self._draw(_took(time.monotonic() - self._begun, self._size))
            self._stream.write("\n")
            self._stage = ""

    def _tick(self) -> None:
        while not self._over.wait(EVERY_S):
            done, tasks = _tasks()
            with self._lock:
                if self._stage:
                    elapsed = time.monotonic() - self._begun
                    self._draw(how_far(done, tasks, elapsed, self._size))

    def _draw(self, more: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        line = f"{self._begun - self._started:6.1f} s  {self._stage}  {more}".rstrip()
        self._stream.write("\r" + line[:width].ljust(width))
        self._stream.flush()


def how_far(done: int, tasks: int, elapsed_s: float, size_bytes: int) -> str:
    """Share, rate and time left, as far as they can be told.

    Args:
        done: Tasks that are over.
        tasks: All tasks.
        elapsed_s: Since the stage began.
        size_bytes: Bytes that the stage reads; 0 when it is not about bytes.
    """
    if tasks < LEAST_TASKS or not done or elapsed_s <= 0:
        return f"{elapsed_s:.0f} s"
    share = done / tasks
    said = [f"{share:.0%}"]
    if size_bytes:
        said.append(f"{share * size_bytes / elapsed_s / 2**20:,.1f} MiB/s")
    said.append(f"about {elapsed_s * (1 - share) / share:.0f} s left")
    return ", ".join(said)


def _took(elapsed_s: float, size_bytes: int) -> str:
    rate = f", {size_bytes / max(elapsed_s, 0.001) / 2**20:,.1f} MiB/s" if size_bytes else ""
    return f"{elapsed_s:.1f} s{rate}"


def _tasks() -> tuple[int, int]:
    """Tasks that are over, and all, of the stages that Spark runs now; it may not have been started yet."""
    pyspark = sys.modules.get("pyspark")
    context = getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None)
    if context is None:
        return 0, 0
    try:
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
    except Exception:
        return 0, 0  # The session ends while it is asked: there is nothing to tell any more.
    known = [one for one in stages if one is not None]
    return sum(one.numCompletedTasks for one in known), sum(one.numTasks for one in known)
