"""What a person reads when a run breaks off: one line that names the innermost cause, wherever the trace goes."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from jobs import run
from pipeline.config import Config
from pipeline.errors import AuditError

FULL = "No space left on device"
WORKER = f"""An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "parquet.py", line 97, in write
OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] {FULL}

JVM stacktrace:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "parquet.py", line 97, in write
OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] {FULL}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:586)
"""
JAVA = f"""An error occurred while calling o61.commit.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.sql.delta.OptimisticTransaction.commit(OptimisticTransaction.scala:1)
Caused by: java.io.IOException: {FULL}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


def said(error: Exception, output: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The message of an audit in which an error was raised."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(run, "_with_spark", fail)
    with pytest.raises(AuditError) as raised:
        run._audit(Config(output=str(output)), ())
    assert raised.value.exit_code == 4
    message = str(raised.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RuntimeError(WORKER), f"OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] {FULL} ("),
        (RuntimeError(JAVA), f"IOException: {FULL} ("),
        (OSError(errno.ENOSPC, FULL), f"OSError: [Errno 28] {FULL} ("),
        (MemoryError(), "MemoryError:  ("),
        (ValueError("one\x1b[31m\nand more"), "ValueError: one\\x1b[31m ("),
    ],
)  # fmt: skip
def test_the_innermost_cause(
    error: Exception, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = said(error, tmp_path, monkeypatch)
    assert message.startswith(f"could not finish: {cause}"), message
    assert message.endswith(f"(all of it: {tmp_path / run.LOG})")
    assert "Traceback" in (tmp_path / run.LOG).read_text()


def test_no_room_for_the_log_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def full(path: Path, *given: object, **more: object) -> object:
        if path.name == run.LOG:
            raise OSError(errno.ENOSPC, FULL, str(path))
        return real(path, *given, **more)

    monkeypatch.setattr(Path, "open", full)
    message = said(OSError(errno.ENOSPC, FULL), tmp_path, monkeypatch)
    assert message.endswith(f"({tmp_path / run.LOG} cannot be written: {FULL})")
