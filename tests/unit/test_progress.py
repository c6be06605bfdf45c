"""What a run says on a terminal while it works."""

from __future__ import annotations

import io

import pytest

from jobs import progress


@pytest.mark.parametrize(
    ("done", "tasks", "elapsed_s", "size_bytes", "said"),
    [
        (0, 10, 3.0, 0, "3 s"),
        (1, 3, 3.0, 0, "3 s"),
        (5, 10, 4.0, 0, "50%, about 4 s left"),
        (5, 10, 4.0, 40 << 20, "50%, 5.0 MiB/s, about 4 s left"),
        (10, 10, 4.0, 40 << 20, "100%, 10.0 MiB/s, about 0 s left"),
    ],
)
def test_share_rate_and_time_left(
    done: int, tasks: int, elapsed_s: float, size_bytes: int, said: str
) -> None:
    assert progress.how_far(done, tasks, elapsed_s, size_bytes) == said


def test_a_pipe_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.progress() as say:
        say("reading", 10)
    assert stream.getvalue() == ""


def test_a_terminal_keeps_a_line_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]  # a stream that says it is a terminal
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "60")
    with progress.progress() as say:
        say("reading \x1b[2J3 files", 1 << 20)
        say("judging")
    lines = [line.rpartition("\r")[2].rstrip() for line in stream.getvalue().split("\n")]
    assert "reading \\x1b[2J3 files" in lines[0]
    assert lines[0].endswith("MiB/s")
    assert "judging" in lines[1]
    assert all(len(line) < 60 for line in lines)
