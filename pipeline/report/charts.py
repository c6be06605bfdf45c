"""The charts of the page: lines over time, stacked bars over time, bars by name, and a map of dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from markupsafe import Markup

from pipeline.report.svg import (
    ALERT,
    GRID,
    INK,
    PALETTE,
    SOFT,
    Canvas,
    TimeScale,
    clipped,
    short,
    value_ticks,
)
from pipeline.text import plural

WIDTH, HEIGHT = 640.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 16.0, 28.0, 46.0
LEGEND = 15.0
FAR = 4.0
"""A threshold more than this many times above the highest value is named at the edge, not drawn to scale."""


class Alert(NamedTuple):
    """A value that operators alert on."""

    value: float
    words: str


Series = Mapping[str, Sequence[tuple[float, float]]]


class _Frame:
    """Axes, grid, threshold and legend that charts over time share."""

    def __init__(
        self,
        label: str,
        unit: str,
        span: tuple[float, float],
        highest: float,
        alert: Alert | None,
        names: Sequence[str],
    ) -> None:
        self._names = _legend(names)
        more = max((row for _, row, _ in self._names), default=0)
        self.canvas = Canvas(WIDTH, HEIGHT + LEGEND * more, label)
        self.x = TimeScale(*span, LEFT, WIDTH - RIGHT)
        is_far = alert is not None and alert.value > FAR * max(highest, 1e-9)
        top = max(highest, alert.value) if alert is not None and not is_far else highest
        self.ticks = value_ticks(top)
        self._axes(unit)
        self._alert, self._is_far = alert, is_far

    def y(self, value: float) -> float:
        share = min(max(value / self.ticks[-1], 0.0), 1.0)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    def _axes(self, unit: str) -> None:
        for value in self.ticks:
            self.canvas.line(LEFT, self.y(value), WIDTH - RIGHT, self.y(value), class_="grid")
            self.canvas.text(LEFT - 6, self.y(value) + 4, short(value), anchor="end")
        self.canvas.text(LEFT, TOP - 14, unit, fill=SOFT)
        last = -1e9
        for time_ms, words in self.x.ticks():
            at = self.x.at(time_ms)
            if at - last > 6.4 * len(words) + 10 and at < WIDTH - 30:
                anchor = "start" if at < LEFT + 3 * len(words) else "middle"
                self.canvas.line(at, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 4, stroke=SOFT)
                self.canvas.text(at, HEIGHT - BOTTOM + 16, words, anchor=anchor)
                last = at + (3.2 * len(words) if anchor == "start" else 0)

    def finish(self) -> Markup:
        """Threshold on top of the data, legend below; the picture."""
        if self._alert is not None:
            self._threshold(self._alert, self._is_far)
        for number, (at, row, shown) in enumerate(self._names):
            y = HEIGHT + LEGEND * row
            self.canvas.rect(at, y - 15, 9, 9, PALETTE[number % len(PALETTE)])
            self.canvas.text(at + 13, y - 7, shown, fill=INK)
        return self.canvas.markup()

    def _threshold(self, alert: Alert, is_far: bool) -> None:
        at = TOP - 7 if is_far else self.y(alert.value)
        words = alert.words + (" (far above this chart)" if is_far else "")
        self.canvas.line(
            LEFT, at, WIDTH - RIGHT, at, stroke=ALERT, stroke_dasharray="5 4", class_="alert"
        )
        # Above the plot: on the line it would stand on the data.
        self.canvas.text(WIDTH - RIGHT, TOP - 14, words, fill=ALERT, anchor="end")


def _legend(names: Sequence[str]) -> list[tuple[float, int, str]]:
    """Where each name stands: its place from the left, its row, and the name as it is shown."""
    found, at, row = [], LEFT, 0
    for name in names:
        shown = clipped(name, 26)
        wide = 26 + 6.4 * len(shown)
        if at > LEFT and at + wide > WIDTH:
            at, row = LEFT, row + 1
        found.append((at, row, shown))
        at += wide
    return found


def lines(
    label: str, unit: str, series: Series, alert: Alert | None = None, is_level: bool = False
) -> Markup | None:
    """Lines over time; None without a point.

    Args:
        label: What the picture shows.
        unit: Of the values.
        series: Name -> (time in ms, value).
        alert: Drawn as a dashed line.
        is_level: A value holds until the next one.
    """
    points = [point for held in series.values() for point in held]
    if not points:
        return None
    times = [time for time, _ in points]
    frame = _Frame(
        label,
        unit,
        (min(times), max(times)),
        max(value for _, value in points),
        alert,
        list(series),
    )
    for number, (name, held) in enumerate(series.items()):
        colour = PALETTE[number % len(PALETTE)]
        placed = [(frame.x.at(time), frame.y(value)) for time, value in held]
        if is_level:
            corners = [(later[0], now[1]) for now, later in pairwise(placed)]
            placed = [point for pair in zip_longest(placed, corners) for point in pair if point]
        if len(held) == 1:
            frame.canvas.circle(*placed[0], 3, colour, hint=f"{name}: {short(held[0][1])}")
        else:
            frame.canvas.polyline(placed, colour, hint=name)
    return frame.finish()


def stacked(
    label: str, unit: str, bucket_ms: float, starts: Sequence[float], series: Mapping[str, Sequence[float]],
    alert: Alert | None = None,
) -> Markup | None:  # fmt: skip
    """Bars over time, one part a series on top of the other; None without a bar.

    Args:
        label: What the picture shows.
        unit: Of the values.
        bucket_ms: Width of a bar in time.
        starts: Begin of each bar.
        series: Name -> value in each bar.
        alert: Drawn as a dashed line.
    """
    if not starts:
        return None
    totals = [sum(held[number] for held in series.values()) for number in range(len(starts))]
    frame = _Frame(
        label, unit, (starts[0], starts[-1] + bucket_ms), max(totals), alert, list(series)
    )
    wide = max(frame.x.at(starts[0] + bucket_ms) - frame.x.at(starts[0]) - 1.5, 1.0)
    for number, start in enumerate(starts):
        base = 0.0
        for colour, (name, held) in enumerate(series.items()):
            if held[number]:
                top = frame.y(base + held[number])
                frame.canvas.rect(
                    frame.x.at(start) + 0.75, top, wide, frame.y(base) - top,
                    PALETTE[colour % len(PALETTE)], hint=f"{name}: {short(held[number])}",
                )  # fmt: skip
                base += held[number]
    return frame.finish()


def ranking(
    label: str, rows: Sequence[tuple[str, float, str]], alert: Alert | None = None
) -> Markup | None:
    """Horizontal bars by name; None without a row.

    Args:
        label: What the picture shows.
        rows: Name, value, and the value in words.
        alert: Drawn as a dashed line with its words; at the end of the bars where it is far beyond all of them.
    """
    if not rows:
        return None
    high, name_width = 22.0, 210.0
    canvas = Canvas(WIDTH, high * len(rows) + (12 if alert is None else 28), label)
    top = max(max(value for _, value, _ in rows), 1e-9)
    room = WIDTH - name_width - 110
    for number, (name, value, words) in enumerate(rows):
        y = 6 + number * high
        shown = clipped(name, 32)
        canvas.text(name_width - 8, y + 14, shown, fill=INK, anchor="end")
        canvas.rect(
            name_width,
            y + 3,
            max(room * value / top, 1.5),
            high - 8,
            PALETTE[0],
            hint=f"{name}: {words}",
        )
        canvas.text(name_width + room * value / top + 6, y + 14, words)
    if alert is not None:
        is_far = alert.value > top
        at = name_width + room * (1 if is_far else alert.value / top)
        bottom = high * len(rows) + 8
        canvas.line(at, 2, at, bottom, stroke=ALERT, stroke_dasharray="5 4", class_="alert")
        said = alert.words + (" (far beyond these bars)" if is_far else "")
        canvas.text(at, bottom + 14, said, fill=ALERT, anchor="end")
    return canvas.markup()


def dots(
    label: str, rows: Sequence[str], columns: Sequence[str], values: Mapping[tuple[int, int], float]
) -> Markup | None:
    """A map: a dot where a row has to do with a column, larger for more; None when it is empty.

    Args:
        label: What the picture shows.
        rows: Names on the left.
        columns: Names above.
        values: (row, column) -> amount.
    """
    if not values:
        return None
    cell, name_width, name_height = 22.0, 200.0, 120.0
    canvas = Canvas(
        name_width + cell * len(columns) + 40, name_height + cell * len(rows) + 8, label
    )
    top = max(values.values())
    for number, name in enumerate(columns):
        x = name_width + cell * number + cell / 2
        canvas.line(x, name_height, x, name_height + cell * len(rows), stroke=GRID, class_="grid")
        shown = clipped(name, 22)
        canvas.text(
            0,
            0,
            shown,
            fill=SOFT,
            transform=f"translate({x + 3:g} {name_height - 6:g}) rotate(-50)",
        )
    for number, name in enumerate(rows):
        y = name_height + cell * number + cell / 2
        canvas.line(name_width, y, name_width + cell * len(columns), y, stroke=GRID, class_="grid")
        canvas.text(
            name_width - 8,
            y + 4,
            clipped(name, 30),
            fill=INK,
            anchor="end",
        )
    for (row, column), value in values.items():
        hint = (
            f"{rows[row]} wrote {short(value)} {plural(int(value), 'record')} to {columns[column]}"
        )
        canvas.circle(
            name_width + cell * column + cell / 2, name_height + cell * row + cell / 2,
            2.5 + 6.5 * (value / top) ** 0.5, PALETTE[0], hint=hint,
        )  # fmt: skip
    return canvas.markup()
