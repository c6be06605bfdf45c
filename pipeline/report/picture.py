"""What a picture of the page is."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

LINES = 8
"""Partitions or ids in one picture: those with most to show."""


class Picture(NamedTuple):
    """One picture of the page.

    Attributes:
        title: Heading.
        svg: The drawing; None when there is nothing to draw.
        words: What it shows, with the figures that matter.
    """

    title: str
    svg: Markup | None
    words: str
