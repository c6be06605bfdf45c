"""Packs of batches, in the order of the log and a bounded number at a time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.replay.producer_arrays import INPUT
from pipeline.spark import producer_rows
from pipeline.spark.columnar import Pack


def pack(*offsets: int) -> Pack:
    rows = pa.table({name: pa.array(offsets, pa.int64()) for name in INPUT})
    return Pack(0, producer_rows.KIND, min(offsets), rows)


def test_a_pack_of_two_stretches_does_not_hold_up_what_lies_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producer_rows, "STEP_ROWS", 4)
    packs = [
        pack(0, 1, 90, 91),
        *(pack(*range(first, first + 4)) for first in range(2, 90, 4)),
        pack(92, 93),
    ]
    steps = [one["base_offset"].tolist() for one in producer_rows._steps(packs)]
    assert [offset for step in steps for offset in step] == list(range(94))
    assert max(len(step) for step in steps) <= 8


def test_rows_of_a_pack_are_put_in_order() -> None:
    (step,) = producer_rows._steps([pack(5, 3, 4)])
    assert step["base_offset"].tolist() == [3, 4, 5]
