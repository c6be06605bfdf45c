"""Plots as SVG with presentation attributes: they look right where style sheets are stripped.

Elements are made with `xml.etree`, which escapes; nothing is pasted into markup. Classes are there for the
page's dark mode only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree

from markupsafe import Markup

from pipeline.text import sanitise

FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
INK, SOFT, GRID, ALERT = "#1f2933", "#52606d", "#d9dee5", "#b42318"
PALETTE = ("#2563a8", "#b3541e", "#2f7d4f", "#7a4fa3", "#8a6d00", "#0f7c85", "#a33b6b", "#5b6472")
_STEPS_MS = (
    1, 5, 10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000,
    1_800_000, 3_600_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000, 604_800_000,
    2_592_000_000, 31_536_000_000,
)  # fmt: skip


class Canvas:
    """An SVG image.

    Args:
        width: In units; the page scales it.
        height: In units.
        label: What the picture shows, for those who do not see it.
    """

    def __init__(self, width: float, height: float, label: str) -> None:
        self.width, self.height = width, height
        self.root = ElementTree.Element(
            "svg",
            {
                "viewBox": f"0 0 {width:g} {height:g}",
                "width": f"{width:g}",
                "height": f"{height:g}",
                "role": "img",
                "aria-label": sanitise(label),
                "font-family": FONT,
                "font-size": "11",
            },
        )
        self._into = self.root

    def _add(self, name: str, hint: str = "", **attributes: object) -> ElementTree.Element:
        given = {
            key.rstrip("_").replace("_", "-"): f"{value:.6g}"
            if isinstance(value, float)
            else str(value)
            for key, value in attributes.items()
        }
        element = ElementTree.SubElement(self._into, name, given)
        if hint:
            ElementTree.SubElement(element, "title").text = sanitise(hint)
        return element

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        hint: str = "",
        **more: object,
    ) -> None:
        """A filled rectangle."""
        self._add(
            "rect",
            hint,
            x=x,
            y=y,
            width=max(width, 0.0),
            height=max(height, 0.0),
            fill=fill,
            **more,
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, stroke: str = GRID, **more: object
    ) -> None:
        """A straight line."""
        self._add("line", "", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, **more)

    def polyline(self, points: Iterable[tuple[float, float]], stroke: str, hint: str = "") -> None:
        """A line through points."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._add(
            "polyline",
            hint,
            points=joined,
            fill="none",
            stroke=stroke,
            stroke_width="1.6",
            stroke_linejoin="round",
        )

    def circle(
        self, x: float, y: float, radius: float, fill: str, hint: str = "", **more: object
    ) -> None:
        """A dot."""
        self._add("circle", hint, cx=x, cy=y, r=radius, fill=fill, **more)

    def polygon(self, points: Sequence[tuple[float, float]], fill: str, hint: str = "") -> None:
        """A filled shape."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._add("polygon", hint, points=joined, fill=fill)

    def text(
        self,
        x: float,
        y: float,
        content: str,
        fill: str = SOFT,
        anchor: str = "start",
        **more: object,
    ) -> None:
        """A line of text."""
        name = "ink" if fill in (INK, SOFT) else "tint"
        element = self._add(
            "text", "", x=x, y=y, fill=fill, text_anchor=anchor, class_=name, **more
        )
        element.text = sanitise(content)

    def markup(self) -> Markup:
        """The image, ready for the page."""
        return Markup(ElementTree.tostring(self.root, encoding="unicode"))


class TimeScale:
    """Times in ms along the x axis."""

    def __init__(self, first_ms: float, last_ms: float, left: float, right: float) -> None:
        span = max(last_ms - first_ms, 1.0)
        self.first, self.last = first_ms, first_ms + span
        self.left, self.right = left, right

    def at(self, time_ms: float) -> float:
        """Its place on the axis."""
        share = (time_ms - self.first) / (self.last - self.first)
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)

    def ticks(self, count: int = 6) -> list[tuple[int, str]]:
        """Round times with their words; the day is written where it changes."""
        span = self.last - self.first
        longest = _STEPS_MS[-1] * math.ceil(span / count / _STEPS_MS[-1])
        step = next((one for one in _STEPS_MS if span / one <= count), longest)
        found, day = [], ""
        for number in range(math.ceil(self.first / step), math.floor(self.last / step) + 1):
            try:
                moment = datetime.fromtimestamp(number * step / 1000, UTC)
            except (OverflowError, ValueError, OSError):
                continue
            clock = f"{moment:%H:%M:%S}" if step >= 1000 else f"{moment:%H:%M:%S.%f}"[:-3]
            clock = f"{moment:%H:%M}" if step >= 60_000 else clock
            words = f"{moment:%Y-%m-%d}" if step >= 86_400_000 else clock
            today = f"{moment:%m-%d}"
            if step < 86_400_000 and today != day:
                words = f"{today} {clock}"
            day = today
            found.append((number * step, words))
        return found[: count * 3]


def value_ticks(highest: float, count: int = 4) -> list[float]:
    """Round values from 0 to at least `highest`."""
    if highest <= 0:
        return [0.0, 1.0]
    raw = highest / count
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(one * scale for one in (1, 2, 2.5, 5, 10) if one * scale >= raw)
    return [number * step for number in range(math.ceil(highest / step) + 1)]


def clipped(name: str, length: int) -> str:
    """A name in at most `length` characters: its middle is left out, for its end tells partitions apart."""
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def short(value: float) -> str:
    """A figure for an axis: 1.5k, 20M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{value:.4g}"
