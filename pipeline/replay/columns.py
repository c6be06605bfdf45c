"""Rows of a table as columns: numbers as int64, texts as numbers of a list of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Longs = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
NONE = -1
"""Stands for null."""


@dataclass(frozen=True)
class Columns:
    """Columns of equal length.

    Attributes:
        numbers: By name; of a text column the place in `names`.
        names: Text column -> its different values.
    """

    numbers: dict[str, Longs]
    names: dict[str, list[str]]

    def __getitem__(self, name: str) -> Longs:
        return self.numbers[name]

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(next(iter(self.numbers.values())))

    def where(self, mask: Mask) -> Columns:
        """The rows of a mask, or of an index."""
        return Columns({name: one[mask] for name, one in self.numbers.items()}, self.names)

    def text(self, name: str, row: int) -> str | None:
        """A text of one row; None for null."""
        at = int(self.numbers[name][row])
        return None if at == NONE else self.names[name][at]

    def is_in(self, name: str, *values: str) -> Mask:
        """Rows whose text is one of some."""
        wanted = [at for at, text in enumerate(self.names[name]) if text in values]
        return np.isin(self.numbers[name], wanted)

    def value(self, name: str, row: int) -> int | None:
        """A number of one row; None for null."""
        at = int(self.numbers[name][row])
        return None if at == NONE else at


class Collector:
    """Puts pieces of a table together.

    Args:
        numbers: Columns of numbers or truths.
        texts: Columns of texts.
    """

    def __init__(self, numbers: Sequence[str], texts: Sequence[str]) -> None:
        self._numbers: dict[str, list[Longs]] = {name: [] for name in numbers}
        self._texts: dict[str, list[Longs]] = {name: [] for name in texts}
        self._known: dict[str, dict[str, int]] = {name: {} for name in texts}

    def add_pieces(
        self, piece: Mapping[str, Longs], texts: Mapping[str, tuple[Longs, Sequence[str]]]
    ) -> None:
        """Takes one piece.

        Args:
            piece: Columns of numbers; null is `NONE`.
            texts: Text column -> the place of each row in a list of texts (`NONE` for null), and the list.
        """
        for name, found in self._numbers.items():
            found.append(np.asarray(piece[name], np.int64))
        for name, held in self._texts.items():
            known = self._known[name]
            codes, listed = texts[name]
            places = [known.setdefault(text, len(known)) for text in listed]
            held.append(np.array([*places, NONE], np.int64)[codes])

    def columns(self) -> Columns:
        """Everything so far."""
        empty = np.empty(0, np.int64)
        numbers = {
            name: np.concatenate(found) if found else empty
            for name, found in (*self._numbers.items(), *self._texts.items())
        }
        return Columns(numbers, {name: list(known) for name, known in self._known.items()})


def groups(*keys: Longs) -> list[Longs]:
    """Places of the rows of each different key, in order of the keys."""
    if not len(keys[0]):
        return []
    order = np.lexsort(keys[::-1])
    change = np.zeros(len(order), np.bool_)
    for key in keys:
        change[1:] |= key[order][1:] != key[order][:-1]
    return [np.asarray(one, np.int64) for one in np.split(order, np.flatnonzero(change))]
