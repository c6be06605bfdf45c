"""Rows of a test as the columns that the rules of `pipeline.replay` take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.replay.columns import NONE, Collector, Columns


def of_rows(
    rows: Iterable[Mapping[str, Any]], numbers: Sequence[str], texts: Sequence[str]
) -> Columns:
    """Columns of dictionaries."""
    held = list(rows)
    collector = Collector(numbers, texts)
    coded = {}
    for name in texts:
        listed = sorted({row[name] for row in held if row[name] is not None})
        places = {text: at for at, text in enumerate(listed)}
        codes = [places.get(row[name], NONE) for row in held]
        coded[name] = (np.array(codes, np.int64), listed)
    counted = {
        name: np.array([NONE if row[name] is None else row[name] for row in held], np.int64)
        for name in numbers
    }
    collector.add_pieces(counted, coded)
    return collector.columns()
