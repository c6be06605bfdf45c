"""How far read_committed consumers were behind, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.report import charts
from pipeline.report.facts import Array, Columns, Row, thinned
from pipeline.report.picture import LINES, Picture
from pipeline.report.svg import short
from pipeline.text import counted


def picture(runs: Columns, replicas: list[Row], as_of_ms: int | None) -> Picture:
    """Log end minus last stable offset, before and after each marker, and at the end of the copy."""
    title = "LSO lag by partition"
    ends = {
        (one["copy"], one["topic"], one["partition"]): one["log_end_offset"]
        for one in replicas
        if one["is_replayed"]
    }
    is_txn = (runs["is_transactional"] == 1) & (runs["first_offset"] >= 0)
    series: dict[str, list[tuple[float, float]]] = {}
    now: dict[str, float] = {}
    for place, mine in _by_partition(runs, is_txn):
        times, lag = _saw(
            runs["first_offset"][mine], runs["marker_offset"][mine], runs["marker_ms"][mine]
        )
        name = _shown(place)
        open_ones = mine[runs["is_open"][mine] == 1]
        if len(open_ones) and ends.get(place) is not None:
            now[name] = float(ends[place] - runs["first_offset"][open_ones].min())
            if as_of_ms is not None:
                times = np.append(times, max([as_of_ms, *times[-1:]]))
                lag = np.append(lag, now[name])
        series[name] = thinned(times, lag)
    highest = {name: max(value for _, value in held) for name, held in series.items() if held}
    highest |= {name: value for name, value in now.items() if value > highest.get(name, 0)}
    # What is behind at the end matters most, then what was furthest behind.
    chosen = sorted(highest, key=lambda name: (-now.get(name, 0), -highest[name], name))[:LINES]
    svg = charts.lines(title, "offsets behind the log end", {name: series[name] for name in chosen})
    if not highest:
        return Picture(title, svg, "No transactional data was read.")
    worst = max(highest, key=lambda name: (highest[name], name))
    words = (
        "Offsets that a read_committed consumer could not read yet, just before and after each marker; 0 whenever "
        "nothing is open. Between two points the line is straight, whenever the records came. "
        f"Highest: {short(highest[worst])} in {worst}. "
    )
    if now:
        words += (
            f"At the end of the copy {counted(len(now), 'partition is', 'partitions are')} behind, "
            f"most of all {chosen[0]} with {short(now[chosen[0]])}."
        )
    else:
        words += "At the end of the copy no partition is behind."
    return Picture(title, svg, words)


def _saw(first: Array, marker: Array, times: Array) -> tuple[Array, Array]:
    """Times of the markers of one partition, each twice, with the lag before and after it.

    Args:
        first: First offset of each run.
        marker: Offset of its marker, -1 while it is open.
        times: The marker's time in ms, -1 where it is not known.
    """
    end = np.where(marker < 0, 2**62, marker)
    order = np.argsort(end, kind="stable")
    first, end, times = first[order], end[order], times[order]
    oldest = np.minimum.accumulate(first[::-1])[::-1]
    later = np.append(oldest[1:], 2**62)
    before, after = end - np.minimum(oldest, end), end + 1 - np.minimum(later, end + 1)
    known = (end < 2**62) & (times >= 0)
    return np.repeat(times[known], 2), np.stack([before[known], after[known]], axis=1).ravel()


def _by_partition(runs: Columns, where: Array) -> Iterator[tuple[tuple[int, str, int], Array]]:
    """(copy, topic, partition) -> numbers of its rows, in that order."""
    rows = np.flatnonzero(where)
    places = (runs["copy"][rows], runs["topic"][rows], runs["partition"][rows])
    order = np.lexsort(places[::-1])
    changes = [np.diff(one[order]) != 0 for one in places]
    cuts = np.flatnonzero(np.logical_or.reduce(changes)) + 1
    groups = [rows[part] for part in np.split(order, cuts) if len(part)]
    named = [(_place(runs, int(group[0])), group) for group in groups]
    yield from sorted(named, key=lambda item: item[0])


def _place(runs: Columns, row: int) -> tuple[int, str, int]:
    topic = runs.words["topic"][runs["topic"][row]]
    return int(runs["copy"][row]), topic, int(runs["partition"][row])


def _shown(place: tuple[int, str, int]) -> str:
    copy, topic, partition = place
    return f"{topic}-{partition}" + (f" (copy {copy})" if copy else "")
