"""One run at a time on an output root: a lock of the operating system, gone when its holder is.

Delta on a local folder does not exclude a second process (two writers can both be told that they
own a version), so the root is held from start to end. The lock is the open file, not the file: a
killed holder leaves none behind.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.errors import OutputLocked
from pipeline.text import sanitise

LOCK_NAME = ".lock"
HOLDER_NAME = ".lock-holder.json"
_MAX_HOLDER_BYTES = 4096


@contextmanager
def hold(output: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold an output root while the block runs.

    Args:
        output: the root; made when it is not there.
        wait_s: how long to wait for another run to end, in seconds.

    Raises:
        OutputLocked: another run holds it, or the folder cannot be made.
    """
    root = Path(output)
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / LOCK_NAME)
        lock.acquire(timeout=max(wait_s, 0.0))
    except Timeout:
        raise OutputLocked(
            f"{sanitise(output)} is in use by {holder(output)}; --wait SECONDS waits for it"
        ) from None
    except OSError as error:
        raise OutputLocked(
            f"{sanitise(output)} cannot be written: {error.strerror or error}"
        ) from None
    try:
        try:
            _write_holder(root / HOLDER_NAME)
        except OSError as error:
            raise OutputLocked(
                f"{sanitise(output)} cannot be written: {error.strerror or error}"
            ) from None
        yield
    finally:
        (root / HOLDER_NAME).unlink(missing_ok=True)
        lock.release()


def is_held(output: str) -> bool:
    """Whether another run holds the root now; writes nothing when the root was never used."""
    path = Path(output) / LOCK_NAME
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def holder(output: str) -> str:
    """Who holds the root, for a person: process, host and since when."""
    try:
        with (Path(output) / HOLDER_NAME).open("rb") as file:
            found = json.loads(file.read(_MAX_HOLDER_BYTES))
        return sanitise(f"process {found['pid']} on {found['host']} since {found['since']}")
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"


def _write_holder(path: Path) -> None:
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        temporary.write_text(
            json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since})
        )
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
