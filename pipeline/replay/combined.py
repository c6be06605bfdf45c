"""Rows numbered by the combination of values that they hold.

One integer a row sorts about ten times as fast as a row of several values does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]


class Combined(NamedTuple):
    """Different combinations of values, in the order of their values.

    Attributes:
        levels: For each column its different values, and the keys of what stands in the columns up to it.
        first: The first row of each combination.
        number: Of each row, its combination's.
        counts: Rows of each.
    """

    levels: tuple[tuple[Longs, Longs], ...]
    first: Longs
    number: Longs
    counts: Longs

    def find(self, *columns: Longs) -> Longs:
        """Number of the combination that each row of other columns holds, or -1."""
        number = np.zeros(len(columns[0]), np.int64)
        is_known = np.ones(len(number), np.bool_)
        for (values, keys), column in zip(self.levels, columns, strict=True):
            rank, is_value = _ranked(values, column)
            number, is_key = _ranked(keys, number * len(values) + rank)
            is_known &= is_value & is_key
        return np.where(is_known, number, -1)


def combined(*columns: Longs) -> Combined:
    """Number the rows of some columns of one length by what they hold."""
    number = np.zeros(len(columns[0]), np.int64)
    levels = []
    for column in columns:
        values, rank = np.unique(column, return_inverse=True)
        # At most the square of the number of rows, whatever the columns hold.
        keys, number = np.unique(number * len(values) + rank, return_inverse=True)
        levels.append((values, keys))
    _, first, counts = np.unique(number, return_index=True, return_counts=True)
    return Combined(tuple(levels), first, number, counts)


def _ranked(values: Longs, wanted: Longs) -> tuple[Longs, NDArray[np.bool_]]:
    """Where each value stands among ascending ones, and whether it does."""
    if not len(values):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.searchsorted(values, wanted)
    at[at == len(values)] = 0
    return at, values[at] == wanted
