"""Of a table's rows those that lie nearest to given points, group by group, however long the table is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.report.facts import Array, Row

_MANY = 100_000
"""Rows that are held before the far ones are dropped."""


class Groups:
    """Numbers for combinations of values of some columns.

    Args:
        columns: Column -> the values that count.
    """

    def __init__(self, columns: Mapping[str, Collection[Any]]) -> None:
        self.columns = {name: list(dict.fromkeys(values)) for name, values in columns.items()}
        self._place = {
            name: {value: number for number, value in enumerate(values)}
            for name, values in self.columns.items()
        }

    def number(self, *values: Any) -> int:
        """The number of one combination; -1 when it does not count."""
        found = 0
        for name, value in zip(self.columns, values, strict=True):
            if value not in self._place[name]:
                return -1
            found = found * len(self.columns[name]) + self._place[name][value]
        return found

    def of(self, rows: pa.Table) -> Array:
        """The number of each row, -1 for those that do not count."""
        found = np.zeros(rows.num_rows, np.int64)
        wrong = np.zeros(rows.num_rows, bool)
        for name, values in self.columns.items():
            column = rows[name].combine_chunks()
            known = pa.array(values, column.type)
            place = pc.fill_null(pc.index_in(column, value_set=known), -1).to_numpy()
            found = found * len(values) + place
            wrong |= place < 0
        return np.where(wrong, -1, found)


class Selection(NamedTuple):
    """Rows to keep.

    Attributes:
        groups: How rows are grouped.
        column: The number whose distance counts; rows without it are not chosen.
        points: Group -> numbers to be near to.
        keep: Rows on each side of a point.
    """

    groups: Groups
    column: str
    points: Mapping[int, Collection[int]]
    keep: int = 15


def nearest(
    pieces: Iterable[pa.Table], selections: Sequence[Selection]
) -> tuple[list[Row], list[Counter[int]]]:
    """The rows that any selection keeps, each once, and how many with its column each group of a selection has.

    Args:
        pieces: The table, a piece at a time.
        selections: What to keep.
    """
    held: pa.Table | None = None
    counts: list[Counter[int]] = [Counter() for _ in selections]
    for piece in pieces:
        for one, count in zip(selections, counts, strict=True):
            known = piece.filter(pc.is_valid(piece[one.column]))
            groups, numbers = np.unique(one.groups.of(known), return_counts=True)
            count.update(dict(zip(groups.tolist(), numbers.tolist(), strict=True)))
        held = piece if held is None else pa.concat_tables([held, piece])
        if held.num_rows > _MANY:
            held = _thinned(held, selections)
    return ([] if held is None else _thinned(held, selections).to_pylist()), counts


def _thinned(rows: pa.Table, selections: Sequence[Selection]) -> pa.Table:
    chosen = np.zeros(rows.num_rows, bool)
    for one in selections:
        column = rows[one.column].combine_chunks()
        groups = np.where(
            pc.is_valid(column).to_numpy(zero_copy_only=False), one.groups.of(rows), -1
        )
        values = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
        order = np.lexsort((values, groups))
        groups, values = groups[order], values[order]
        for group, points in one.points.items():
            first, last = np.searchsorted(groups, (group, group + 1)) if group >= 0 else (0, 0)
            mine = values[first:last]
            for point in points:
                at = int(np.searchsorted(mine, point))
                low, high = max(at - one.keep, 0), min(at + one.keep, len(mine))
                chosen[order[first + low : first + high]] = True
    return rows.filter(pa.array(chosen))


def grouped(rows: Iterable[Row], *columns: str) -> dict[Any, list[Row]]:
    """Rows by the values of columns: a value for one column, a tuple for several."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        key = tuple(row[name] for name in columns)
        found[key if len(columns) > 1 else key[0]].append(row)
    return found
