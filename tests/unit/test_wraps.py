"""When histories have to look for wrapped sequences."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.spark import stored, wraps
from schemas.codes import MAX_SEQUENCE


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([], False),
        ([(-1, 0, 0)], False),
        ([(0, 0, 9), (10, 10, 19)], False),
        ([(None, 0, 0)], False),
        ([(MAX_SEQUENCE - 5, 0, 9)], True),
        ([(0, 0, 9), (MAX_SEQUENCE // 2, 10, 10)], True),
        ([(0, 0, MAX_SEQUENCE)], True),
        ([(-7, 0, 0)], True),
    ],
)
def test_only_high_sequences_and_long_batches_can_wrap(
    monkeypatch: pytest.MonkeyPatch,
    batches: list[tuple[int | None, int, int]],
    expected: bool,
) -> None:
    names = ("base_sequence", "base_offset", "last_offset")
    rows = [dict(zip(names, batch, strict=True)) for batch in batches]
    kinds = [
        ("base_sequence", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
    ]
    pieces = [pa.Table.from_pylist(rows, schema=pa.schema(kinds))]
    monkeypatch.setattr(stored, "pieces", lambda *_: iter(pieces))
    assert wraps.may_wrap("out", "run") is expected
