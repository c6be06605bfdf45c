"""What a timeline consists of."""

from __future__ import annotations

from typing import NamedTuple

LOG_APPEND_TIME = 1


class Event(NamedTuple):
    """One thing on a timeline.

    Attributes:
        kind: data, commit, abort, state or offset.
        time_ms: When.
        lane: Which line it is on.
        words: What it is, in one line.
        offset: Offset of the batch or record, where there is one.
        is_client_time: The time is the client's.
        state: Number of the coordinator's state.
        is_accused: The finding is about this.
        epoch: Producer epoch.
    """

    kind: str
    time_ms: int
    lane: str
    words: str
    offset: int | None = None
    is_client_time: bool = False
    state: int | None = None
    is_accused: bool = False
    epoch: int | None = None
