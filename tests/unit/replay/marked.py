"""Markers and transactions of one partition, and their alignment."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.replay.alignment import NONE, OPEN_END, Alignment, Markers, Promises, align

SKEW_MS = 1_000
BASE_MS = 1_795_000_000_000
ABORT, COMMIT = 0, 1
RARE_MS, BUSY_MS = 2_500, 300


def marker(ms: int | None, kind: int = COMMIT, **other: int) -> dict[str, int]:
    """One marker of producer 1, epoch 0, at `ms` of the partition leader's clock."""
    plain = {
        "producer_id": 1, "epoch": 0, "type": kind, "leader_epoch": 0, "coordinator_epoch": 0,
        "coordinator_partition": 0, "ms": NONE if ms is None else BASE_MS + ms,
    }  # fmt: skip
    return plain | other


def promise(
    prepare: int | None, complete: int | None, kind: int = COMMIT, **other: int
) -> dict[str, int]:
    """One transaction of producer 1, epoch 0; times of the coordinator's clock, None is not yet."""
    plain = {
        "producer_id": 1, "epoch": 0, "prepare_epoch": 0, "outcome": kind, "version": 0,
        "added_ms": NONE, "prepare_offset": NONE if prepare is None else prepare,
        "prepare_ms": NONE if prepare is None else BASE_MS + prepare,
        "complete_ms": OPEN_END if complete is None else BASE_MS + complete,
        "prepare_leader_epoch": 0, "complete_leader_epoch": 0,
    }  # fmt: skip
    return plain | other


def columns(kind: Any, rows: list[dict[str, int]]) -> Any:
    """Rows as the arrays that `align` takes."""
    arrays = {name: [row[name] for row in rows] for name in kind._fields}
    return kind(*(np.array(arrays[name], np.int64) for name in kind._fields))


def aligned(
    markers: list[dict[str, int]],
    promises: list[dict[str, int]],
    *,
    evidence: bool | list[bool] = True,
    early: bool | list[bool] = False,
    skew_ms: int = SKEW_MS,
    ends_nothing: list[bool] | None = None,
) -> Alignment:
    """Aligns markers at offsets 0, 10, 20..."""
    numbered = [one | {"offset": 10 * at} for at, one in enumerate(markers)]
    is_evidence = np.broadcast_to(np.array(evidence, np.bool_), len(markers))
    return align(
        columns(Markers, numbered),
        columns(Promises, promises),
        clock_skew_ms=skew_ms,
        is_evidence=is_evidence,
        may_precede=np.broadcast_to(np.array(early, np.bool_), len(markers)),
        ends_nothing=None if ends_nothing is None else np.array(ends_nothing, np.bool_),
    )
