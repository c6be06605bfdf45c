"""Trees that no broker made: nothing hangs, nothing is written, the rest is read (figures 6 and 12)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.config import Config
from pipeline.spark import silver, tables
from pipeline.spark.plan import plan
from pipeline.spark.read_file import read_task
from pipeline.spark.sidecars import log_places
from pipeline.spark.tasks import tasks_of
from tests.builders import batch
from tests.pure_audit import accusations
from tests.pure_input import read
from tests.recordings import recording

NAME = f"{0:020d}.log"
NOBODY = 65534


def good(root: Path) -> Path:
    """A partition with two batches."""
    folder = root / "good-0"
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(batch(0, 2) + batch(2, 3))
    return folder


def rows(root: Path) -> dict[str, list[pa.RecordBatch]]:
    """Everything that is read below a root, by kind."""
    found: dict[str, list[pa.RecordBatch]] = {}
    for task in tasks_of(plan([str(root)])):
        for part in read_task(task):
            found.setdefault(part.column(0)[0].as_py(), []).append(part)
    return found


def reasons(found: dict[str, list[pa.RecordBatch]]) -> set[str]:
    texts = [
        text for part in found.get("unreadable", []) for text in part.column("detail").to_pylist()
    ]
    return {json.loads(text)["reason"] for text in texts}


def count(found: dict[str, list[pa.RecordBatch]]) -> int:
    return sum(part.num_rows for part in found.get("batch", []))


def loops(root: Path) -> None:
    (root / "loop").symlink_to(root)
    (root / "a").symlink_to(root / "b")
    (root / "b").symlink_to(root / "a")
    (root / "gone-0").symlink_to(root / "nowhere")


def special(root: Path) -> None:
    folder = root / "special-0"
    folder.mkdir()
    os.mkfifo(folder / NAME)
    os.mkfifo(root / "copy.tar.gz")
    os.mkfifo(root / "meta.properties")
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(folder)  # the path of a socket is short
    try:
        server.bind(f"{1:020d}.log")
    finally:
        os.chdir(here)
        server.close()
    (folder / f"{2:020d}.log").symlink_to("/dev/zero")


def directories(root: Path) -> None:
    (root / "dirs-0" / NAME).mkdir(parents=True)
    (root / "dirs-0" / "meta.properties").mkdir()
    (root / "x.tar").mkdir()
    (root / "y.txt").mkdir()
    deep = root
    for _ in range(80):
        deep = deep / "d"
    deep.mkdir(parents=True)


def test_a_copy_made_by_hand_beside_its_partition_is_no_topic(tmp_path: Path) -> None:
    shutil.copytree(recording("01") / "logs", tmp_path / "logs")
    broker = tmp_path / "logs" / "broker-1"
    clean = accusations(tmp_path / "logs")
    for name in ("payments-0.bak", "payments-0 (copy)", "old"):
        shutil.copytree(broker / "payments-0", broker / name)
    found = plan([str(tmp_path / "logs")])
    assert {one.name for one in found.unread} >= {
        f"broker-1/{name}" for name in ("payments-0.bak", "payments-0 (copy)", "old")
    }
    assert accusations(tmp_path / "logs") == clean
    alone = plan([str(broker / "old")])
    assert [one.topic for one in alone.replicas] == ["old"]


def test_names_that_are_no_text_reach_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (b"\xff\xfe-0", b"two\nlines-0", "emoji\U0001f600-0".encode()):
        folder = os.path.join(os.fsencode(tmp_path), name)
        os.mkdir(folder)
        Path(os.fsdecode(folder), NAME).write_bytes(batch(0, 2))
    held = read(tmp_path, Config())
    assert len(log_places(held.plan, held.facts, held.segments)) == len(held.facts) == 3
    written: list[tuple[object, ...]] = []
    monkeypatch.setattr(tables, "replace_rows", lambda _, rows, *__, **___: written.extend(rows))
    run: Any = SimpleNamespace(facts=held.facts, spark=None, output="", run_id="r", expired=())
    silver.write_replicas(run)
    for row in written:
        for value in row:
            assert not isinstance(value, str) or (value.encode() and "\n" not in value)


@pytest.mark.parametrize("make", [loops, special, directories])
@pytest.mark.timeout(20)
def test_the_rest_is_read(tmp_path: Path, make: object) -> None:
    good(tmp_path)
    assert callable(make)
    make(tmp_path)
    before = sorted(map(str, tmp_path.rglob("*")))
    assert count(rows(tmp_path)) == 2
    assert sorted(map(str, tmp_path.rglob("*"))) == before


@pytest.mark.timeout(60)
def test_a_sparse_file_of_a_terabyte(tmp_path: Path) -> None:
    folder = good(tmp_path)
    os.truncate(folder / NAME, 1 << 40)
    (tmp_path / "empty-0").mkdir()
    with (tmp_path / "empty-0" / NAME).open("wb") as sink:
        sink.truncate(1 << 40)
    begun = time.monotonic()
    found = rows(tmp_path)
    print(f"two sparse files of 1 TB: {time.monotonic() - begun:.1f} s")
    assert count(found) == 2
    assert reasons(found) & {"zero_tail", "too_large"}


def test_bytes_that_the_disk_refuses(tmp_path: Path) -> None:
    good(tmp_path)
    (tmp_path / "eio-0").mkdir()
    (tmp_path / "eio-0" / NAME).symlink_to("/proc/self/mem")
    (tmp_path / "eio-0" / f"{5:020d}.snapshot").symlink_to("/proc/self/mem")
    assert count(rows(tmp_path)) == 2


def test_no_permission_as_another_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    good(tmp_path)
    locked = tmp_path / "locked-0"
    locked.mkdir()
    (locked / NAME).write_bytes(batch(0, 1))
    closed = tmp_path / "closed"
    closed.mkdir()
    (locked / NAME).chmod(0)
    closed.chmod(0)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == 0 and parent != Path("/") and "pytest" in str(parent):
            parent.chmod(0o755)
    os.seteuid(NOBODY)
    try:
        planned = plan([str(tmp_path)])
        found = rows(tmp_path)
    finally:
        os.seteuid(0)
    assert count(found) == 2
    assert "io" in reasons(found)
    assert [one.reason for one in planned.unread] == ["io"]


CHANGES = ("append", "truncate", "replace", "remove")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.timeout(60)
def test_input_that_changes_while_it_is_read(tmp_path: Path, change: str) -> None:
    folder = good(tmp_path)
    path = folder / NAME
    content = b"".join(batch(2 * number, 2) for number in range(2_000))
    path.write_bytes(content)
    stop = threading.Event()

    def writer() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            if change == "append":
                with path.open("ab") as sink:
                    sink.write(batch(4_000 + 2 * number, 2))
            elif change == "truncate":
                os.truncate(path, len(content) // (1 + number % 3))
            elif change == "replace":
                other = folder / "other"
                other.write_bytes(content[: 1 + number * 100 % len(content)])
                other.replace(path)
            else:
                path.unlink(missing_ok=True)
                path.write_bytes(content)

    thread = threading.Thread(target=writer)
    thread.start()
    told = reads = 0
    try:
        # A file that is removed and written anew leaves few moments to see it.
        while reads < 40 or (not told and reads < 2_000):
            reads += 1
            try:
                tasks = tasks_of(plan([str(tmp_path)]))
            except FileNotFoundError:
                pytest.fail("a file that went away is no crash")
            for task in tasks:
                parts = {"unreadable": []}
                for part in read_task(task):
                    parts.setdefault(part.column(0)[0].as_py(), []).append(part)
                told += bool(reasons(parts))
    finally:
        stop.set()
        thread.join()
    print(change, told, "of", reads, "reads told a change")
    assert told


def test_what_is_read_is_bit_identical_after(tmp_path: Path) -> None:
    folder = good(tmp_path)
    status = (folder / NAME).stat()
    content = (folder / NAME).read_bytes()
    rows(tmp_path)
    after = (folder / NAME).stat()
    assert (folder / NAME).read_bytes() == content
    assert (after.st_mtime_ns, after.st_size, after.st_mode) == (
        status.st_mtime_ns, status.st_size, status.st_mode,
    )  # fmt: skip
