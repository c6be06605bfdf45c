"""Rows numbered by what they hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.replay.combined import combined

NONE = -(2**62)
ROWS = st.lists(
    st.tuples(st.sampled_from((NONE, -1, 0, 7, 2**62)), st.integers(-2, 2), st.integers(0, 1))
)


def columns(rows: list[tuple[int, int, int]]) -> list[np.ndarray]:
    return list(np.array(rows, np.int64).reshape(-1, 3).T)


@given(ROWS, ROWS)
def test_each_combination_has_one_number_in_order(
    rows: list[tuple[int, int, int]], others: list[tuple[int, int, int]]
) -> None:
    one = combined(*columns(rows))
    different = sorted(set(rows))
    assert one.number.tolist() == [different.index(row) for row in rows]
    assert [rows[at] for at in one.first] == different
    assert one.first.tolist() == [rows.index(row) for row in different]
    assert one.counts.tolist() == [rows.count(row) for row in different]
    found = one.find(*columns(others)).tolist()
    assert found == [different.index(row) if row in different else -1 for row in others]


def test_columns_of_many_values_do_not_overflow() -> None:
    many = np.arange(2**11)
    one = combined(*[many] * 6)
    assert one.number.tolist() == many.tolist()
    assert one.find(*[many] * 6).tolist() == many.tolist()
    assert one.find(*[many] * 5, many[::-1]).tolist() == [-1] * len(many)
