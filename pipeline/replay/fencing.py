"""Instances of one transactional id that fence each other, and the producer epochs that this costs.

Source: `TransactionCoordinator.handleInitProducerId`, `TransactionMetadata.isProducerEpochExhausted`; KIP-98, KIP-360.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.replay.application import application
from pipeline.replay.columns import NONE, Columns, Longs, groups
from pipeline.replay.statement import Place, Statement, span
from pipeline.replay.transaction_state import MAX_EPOCH
from pipeline.text import counted
from schemas.codes import TXN_TOPIC

NUMBERS = (
    "copy", "coordinator_partition", "offset", "append_ms", "producer_id", "producer_epoch",
    "previous_producer_epoch", "transaction_version",
)  # fmt: skip
TEXTS = ("transactional_id", "cause")
FENCES = ("fence", "init_again")
CAUSES = (*FENCES, "epoch_exhausted")
"""Causes of the steps that `statements` takes: each burns an epoch."""
_DAY_MS = 86_400_000
_ENOUGH = 100
"""Epochs burnt from which on a rate says anything."""


class Limits(NamedTuple):
    """What counts as a storm (`health` in the settings); times in ms."""

    storm_fences: int
    storm_window_ms: int
    reuse_fences: int
    reuse_window_ms: int
    forecast_days: int
    pattern: str | None = None


def statements(steps: Columns, limits: Limits) -> list[Statement]:
    """What the fences of each transactional id say.

    Args:
        steps: Columns `NUMBERS` and `TEXTS` of `silver.coordinator_step` with one of `CAUSES`.
        limits: From where on they are told.
    """
    said = []
    is_known = steps["append_ms"] != NONE
    known = steps.where(is_known)
    is_fence, is_abort = known.is_in("cause", *FENCES), known.is_in("cause", "fence")
    for rows in groups(known["copy"], known["transactional_id"]):
        rows = rows[np.argsort(known["append_ms"][rows], kind="stable")]
        fences, aborts = rows[is_fence[rows]], rows[is_abort[rows]]
        most, at = _busiest(known["append_ms"][fences], limits.storm_window_ms)
        if most >= limits.storm_fences:
            said.append(_storm(known, fences[at : at + most], limits))
        most, at = _busiest(known["append_ms"][aborts], limits.reuse_window_ms)
        if most >= limits.reuse_fences:
            said.append(_race(known, aborts[at : at + most], limits))
        burn = _burn(known, rows, limits)
        if burn is not None:
            said.append(burn)
    return said


def _busiest(times: Longs, window_ms: int) -> tuple[int, int]:
    """Most events in a window, and the first of them."""
    if not len(times):
        return 0, 0
    counts = np.searchsorted(times, times + window_ms, side="right") - np.arange(len(times))
    at = int(np.argmax(counts))
    return int(counts[at]), at


def _storm(steps: Columns, rows: Longs, limits: Limits) -> Statement:
    name, took = _of(steps, rows)
    return _said(
        steps, "storm", rows, f"{name} was fenced {counted(len(rows), 'time')} within {span(took)}",
        f"{counted(len(rows), 'InitProducerId request')} of {name}, application "
        f"{application(name, limits.pattern)}, within {span(took)}: instances "
        "start again and again, or several share the id.",
    )  # fmt: skip


def _race(steps: Columns, rows: Longs, limits: Limits) -> Statement:
    name, took = _of(steps, rows)
    return _said(
        steps, "id_reuse_race", rows, f"instances of {name} abort each other's transactions",
        f"{counted(len(rows), 'time')} within {span(took)} InitProducerId of {name}, application "
        f"{application(name, limits.pattern)}, aborted a transaction that another instance had open.",
    )  # fmt: skip


def _burn(steps: Columns, rows: Longs, limits: Limits) -> Statement | None:
    """Forecast to the last epoch; under version 2 every transaction takes an epoch, and that is meant so."""
    rows = rows[steps["transaction_version"][rows] < 2]
    last = int(steps["producer_id"][rows[-1]]) if len(rows) else NONE
    mine = rows[steps["producer_id"][rows] == last]
    burnt = steps["producer_epoch"][mine] - steps["previous_producer_epoch"][mine]
    is_counted = (burnt > 0) & (steps["previous_producer_epoch"][mine] != NONE)
    count = int(burnt[is_counted].sum())
    if count < _ENOUGH:
        return None
    name, took = _of(steps, mine)
    now = int(steps["producer_epoch"][mine[-1]])
    days = (MAX_EPOCH - now) * max(took, 1) / count / _DAY_MS
    if days > limits.forecast_days:
        return None
    return _said(
        steps, "epoch_burn", mine, f"{name} uses up its producer epochs within {days:.3g} days",
        f"{name}, application {application(name, limits.pattern)}: {counted(count, 'epoch')} burnt within "
        f"{span(took)}, epoch {now} now. At that rate "
        f"epoch {MAX_EPOCH} is reached in {days:.3g} days; the coordinator then gives a new "
        "producer id, and what the old one left is no longer fenced.",
    )  # fmt: skip


def _of(steps: Columns, rows: Longs) -> tuple[str, int]:
    times = steps["append_ms"][rows]
    return steps.text("transactional_id", int(rows[0])) or "", int(times[-1] - times[0])


def _said(steps: Columns, label: str, rows: Longs, title: str, explanation: str) -> Statement:
    first, last = int(rows[0]), int(rows[-1])
    partition = int(steps["coordinator_partition"][first])
    return Statement(
        int(steps["copy"][first]), label, "minor", "proven", title, explanation, topic=TXN_TOPIC,
        partition=partition, transactional_id=steps.text("transactional_id", first),
        producer_id=steps.value("producer_id", last), producer_epoch=steps.value("producer_epoch", last),
        first_timestamp_ms=steps.value("append_ms", first), last_timestamp_ms=steps.value("append_ms", last),
        places=tuple(
            Place(TXN_TOPIC, partition, int(steps["offset"][at]), "InitProducerId") for at in rows[:5]
        ),
    )  # fmt: skip
