"""What a run says while it works: on a terminal a line a stage, in a pipe nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipeline.text import sanitise


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Give a function that tells a stage's name with the seconds since the start."""
    started = time.monotonic()
    is_shown = sys.stderr.isatty()

    def say(stage: str) -> None:
        if is_shown:
            print(
                f"{time.monotonic() - started:6.1f} s  {sanitise(stage)}",
                file=sys.stderr,
                flush=True,
            )

    yield say
