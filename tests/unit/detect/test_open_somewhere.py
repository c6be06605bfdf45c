"""The runs that sidecar checks read are all that were open at an offset that a snapshot names."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.spark import sidecars

SCHEMA = pa.schema(
    [
        ("replica_id", pa.int64()),
        ("producer_id", pa.int64()),
        ("first_offset", pa.int64()),
        ("marker_offset", pa.int64()),
        ("is_transactional", pa.bool_()),
    ]
)


def generated(rng: random.Random) -> list[dict[str, Any]]:
    runs = []
    for _ in range(rng.randint(0, 40)):
        first = rng.choice((None, *range(30)))
        marker = rng.choice((None, None if first is None else first + rng.randint(1, 9)))
        runs.append(
            dict(
                zip(
                    SCHEMA.names,
                    (rng.randint(0, 1), rng.randint(0, 2), first, marker, rng.random() < 0.8),
                    strict=True,
                )
            )
        )
    return runs


@pytest.mark.parametrize("seed", range(50))
def test_no_run_that_was_open_is_left_out(seed: int) -> None:
    rng = random.Random(seed)
    runs = generated(rng)
    keys = [(rng.randint(0, 1), rng.randint(0, 2), rng.randint(0, 40)) for _ in range(6)]
    pieces = [
        pa.Table.from_pylist(runs[start : start + 7], schema=SCHEMA)
        for start in range(0, len(runs), 7)
    ]
    cut = list(sidecars._open_somewhere(pieces, sorted({end for _, _, end in keys})))
    assert sidecars.open_at(keys, cut) == sidecars.open_at(keys, runs)
    assert len(cut) <= len(runs)


def test_runs_that_no_offset_cuts_are_not_read() -> None:
    runs = [
        dict(zip(SCHEMA.names, (1, 1, first, first + 2, True), strict=True))
        for first in range(0, 30, 3)
    ]
    cut = list(sidecars._open_somewhere([pa.Table.from_pylist(runs, schema=SCHEMA)], [10, 12]))
    assert [run["first_offset"] for run in cut] == [9]
