"""How far each file was read: what may be concluded from something that is not there.

An absence counts only where the file that would hold it was read to a point provably later than the event. Every rule
that accuses by absence asks the tuples of this module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.replay.alive import Alive, known_until_ms

NEVER = -(2**62)
"""A time before every event: history is complete."""
ALWAYS = 2**62
"""A time after every event: nothing can have followed, the broker was stopped."""


class Tolerances(NamedTuple):
    """Configured patience, in ms (`conf/audit.yaml`)."""

    marker_grace_ms: int = 30_000
    clock_skew_ms: int = 1_000
    transaction_max_timeout_ms: int = 900_000
    late_buffer_ms: int = 300_000
    abort_scan_ms: int = 10_000
    copy_started_ms: int | None = None
    as_of_ms: int | None = None

    @property
    def patience_ms(self) -> int:
        """Grace plus clock skew: how much later a file has to reach before an absence in it counts."""
        return self.marker_grace_ms + self.clock_skew_ms


class CoordinatorCoverage(NamedTuple):
    """One partition of `__transaction_state` (or all of them together, for an unknown owner).

    Attributes:
        read_until_ms: So far it goes for certain, where a margin of the clock skew has to follow an event; `ALWAYS` for
            a copy of one instant.
        frontier_ms: Time from which its history is complete; `NEVER` when complete from offset 0.
        alive: By coordinator epoch: how long that coordinator provably lived.
        is_read: The partition (all partitions) was copied, the newest replica of it.
        settled_until_ms: As `read_until_ms`, where grace and clock skew have to follow.
    """

    read_until_ms: int
    frontier_ms: int
    alive: dict[int, Alive]
    is_read: bool
    settled_until_ms: int


class PartitionCoverage(NamedTuple):
    """The replica that stands for a data partition.

    Attributes:
        history_start_offset: Below it history was cut by retention, cleaning or damage: context only.
        read_until_ms: Latest broker-stamped time in it; `ALWAYS` for a copy of one instant.
        is_one_instant: Every broker of the copy was stopped cleanly before it was taken, this one with the last.
        is_copied: A replica of the partition is in the copy at all.
        is_crash_image: Its broker was not stopped cleanly, others of the copy were: what a dead broker left.
        stamps: Other times of its broker, where that was stopped cleanly and all its files end with it.
    """

    history_start_offset: int
    read_until_ms: int
    is_one_instant: bool
    is_copied: bool = True
    is_crash_image: bool = False
    stamps: tuple[int, ...] = ()


NOT_COPIED = PartitionCoverage(0, NEVER, False, False)
NO_COORDINATOR = CoordinatorCoverage(NEVER, ALWAYS, {}, False, NEVER)


def certain_until(
    until_ms: int, times: NDArray[np.int64], stamps: tuple[int, ...], margin_ms: int
) -> int:
    """How far a file goes, whatever one jump of its broker's clock before the end pretends.

    Args:
        until_ms: Newest time in it, or `ALWAYS`.
        times: Of its records, in the order of their offsets.
        stamps: Other times of its broker that count for it.
        margin_ms: So much time has to follow an event before the file counts as read beyond it.
    """
    if until_ms == ALWAYS:
        return ALWAYS
    if stamps:
        times = np.sort(np.concatenate((times, np.array(stamps, np.int64))))
    known = known_until_ms(times, margin_ms)
    return NEVER if known is None else min(until_ms, known)


def is_behind(
    until_ms: int | None,
    partition: PartitionCoverage,
    coordinator: CoordinatorCoverage,
    tolerances: Tolerances,
) -> bool:
    """The coordinators were read beyond the end of a partition's file: what they do not own there, nobody does.

    Args:
        until_ms: Latest broker-stamped time in the partition's file; None without one.
        partition: Coverage of the partition.
        coordinator: Coverage of all coordinator partitions together.
        tolerances: Configured patience.
    """
    if not coordinator.is_read:
        return False
    if partition.is_one_instant and coordinator.read_until_ms == ALWAYS:
        return True
    return (
        until_ms is not None and coordinator.settled_until_ms >= until_ms + tolerances.patience_ms
    )
