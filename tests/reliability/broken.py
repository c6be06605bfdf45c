"""Breaks one rule for a whole pytest run: `-p tests.reliability.broken`, with AUDIT_BREAK set to its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pipeline.replay import history, transaction_state
from pipeline.replay.ownership import Judgement
from pipeline.spark import partition_rows


def _nothing(*_: Any, **__: Any) -> Judgement:
    return Judgement(None, None, None, None)


def no_duplicate() -> None:
    """Sequences that were there before are never the same."""
    history._intersects = lambda one, other: False


def no_open_run() -> None:
    """Every open transaction is innocent."""
    partition_rows.judge_run = _nothing


def no_illegal_step() -> None:
    """Every state may follow every other."""
    for state in transaction_state.LEGAL_PREVIOUS:
        transaction_state.LEGAL_PREVIOUS[state] = tuple(range(transaction_state.FENCE + 1))


def every_step_illegal() -> None:
    """No state may follow another."""
    for state in transaction_state.LEGAL_PREVIOUS:
        transaction_state.LEGAL_PREVIOUS[state] = ()


BREAKS: dict[str, Callable[[], None]] = {
    one.__name__: one for one in (no_duplicate, no_open_run, no_illegal_step, every_step_illegal)
}
if chosen := os.environ.get("AUDIT_BREAK"):
    BREAKS[chosen]()
