"""Draws a timeline: one lane a partition, transactional id or group, what the finding is about in a red ring."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pipeline.report.causes import Finding
from pipeline.report.event import Event
from pipeline.report.svg import ALERT, INK, SOFT, Canvas, TimeScale, clipped
from pipeline.report.words import instant
from pipeline.text import counted
from schemas.codes import STATE_NAMES

WIDTH, LEFT, RIGHT, LANE = 760.0, 150.0, 95.0, 38.0
_COMMIT, _ABORT, _DATA = "#2f7d4f", "#b3541e", "#2563a8"
_STATE_COLOURS = {
    1: "#2563a8",
    2: "#7a4fa3",
    3: "#7a4fa3",
    4: "#2f7d4f",
    5: "#b3541e",
    7: "#b42318",
}


def plot(events: Sequence[Event], finding: Finding) -> Markup | None:
    """The picture of a timeline; None when there is nothing with a time."""
    if not events:
        return None
    lanes = list(dict.fromkeys(event.lane for event in sorted(events, key=_lane_order)))
    height = 26 + LANE * len(lanes) + 26
    canvas = Canvas(
        WIDTH,
        height,
        f"Timeline of {finding['code']}, {counted(len(events), 'event')}",
    )
    first, last = events[0].time_ms, events[-1].time_ms
    margin = max((last - first) * 0.03, 1)
    scale = TimeScale(first - margin, last + margin, LEFT, WIDTH - RIGHT)
    for number, lane in enumerate(lanes):
        y = 22 + LANE * number + LANE / 2
        canvas.line(LEFT, y, WIDTH - RIGHT, y, class_="grid")
        canvas.text(LEFT - 10, y + 4, clipped(lane, 23), fill=INK, anchor="end")
    before = -1e9
    for time_ms, words in scale.ticks(5):
        x = scale.at(time_ms)
        canvas.line(x, 18, x, height - 24, class_="grid", stroke_dasharray="2 4")
        if x - before > 90:
            canvas.text(x, height - 9, words, anchor="middle")
            before = x
    ends: dict[str, float] = {}
    epochs = {event.epoch for event in events} - {None}
    for event in events:
        y = 22 + LANE * lanes.index(event.lane) + LANE / 2
        _draw(canvas, event, scale.at(event.time_ms), y, ends, len(epochs) > 1)
    return canvas.markup()


def _draw(
    canvas: Canvas, event: Event, x: float, y: float, ends: dict[str, float], with_epoch: bool
) -> None:
    hint = f"{instant(event.time_ms)}  {event.words}"
    if event.is_accused:
        canvas.circle(x, y, 9, "none", stroke=ALERT, stroke_width="2", class_="alert")
    if event.kind == "data":
        fill = "#ffffff" if event.is_client_time else _DATA
        canvas.circle(x, y, 4, fill, hint, stroke=_DATA, stroke_width="1.6")
    elif event.kind == "commit":
        canvas.polygon([(x, y - 6), (x + 5.5, y + 4.5), (x - 5.5, y + 4.5)], _COMMIT, hint)
    elif event.kind == "abort":
        canvas.polygon([(x, y + 6), (x + 5.5, y - 4.5), (x - 5.5, y - 4.5)], _ABORT, hint)
    elif event.kind == "state":
        colour = _STATE_COLOURS.get(event.state or 0, "#5b6472")
        canvas.rect(x - 2, y - 7, 4, 14, colour, hint)
    else:
        canvas.polygon([(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)], "#0f7c85", hint)
    label = _label(event) + (f" e{event.epoch}" if with_epoch and event.epoch is not None else "")
    if label and x >= ends.get(event.lane, -1e9) and x + 6.2 * len(label) < canvas.width:
        canvas.text(x + (11 if event.is_accused else 6), y - 7, label, fill=SOFT, font_size="9.5")
        ends[event.lane] = x + 5.6 * len(label) + 12


def _label(event: Event) -> str:
    if event.kind == "state":
        return STATE_NAMES.get(event.state, "Tombstone") if event.state is not None else "Tombstone"
    return "" if event.offset is None else str(event.offset)


def _lane_order(event: Event) -> tuple[int, str]:
    return (("state", "data", "commit", "abort", "offset").index(event.kind) > 0, event.lane)
