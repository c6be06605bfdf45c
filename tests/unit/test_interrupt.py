"""Ctrl-C is told as what it is, whatever Spark's cancelled jobs throw on the way."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from jobs import run
from pipeline.config import Config


def test_the_interrupt_is_noted_and_the_handler_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    pressed = threading.Event()
    with pytest.raises(KeyboardInterrupt), run._interrupt_noted(pressed):
        signal.raise_signal(signal.SIGINT)
    assert pressed.is_set()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("is_pressed", [True, False])
def test_an_error_behind_it_is_no_reason(
    is_pressed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancelled(*arguments: object) -> None:
        pressed = arguments[-1]
        assert isinstance(pressed, threading.Event)
        if is_pressed:
            pressed.set()
        raise RuntimeError("Job 0 cancelled")

    monkeypatch.setattr(run, "_with_spark", cancelled)
    wanted = KeyboardInterrupt if is_pressed else run.AuditError
    with pytest.raises(wanted):
        run._audit(Config(output=str(tmp_path)), ())
