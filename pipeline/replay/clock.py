"""By how much the clock of a data partition's leader is ahead of the coordinator's.

Two brokers' clocks drift, and NTP steps them: one number for the whole life of a leader does not exist. So the number
that most markers of a group agree on holds only where the markers around agree as well; elsewhere it is estimated anew,
stretch by stretch, and where that fails too, all that is known is the configured clock skew, or not even that. A marker
that does not fit is one only if no single difference explains it and its neighbours on either side. Markers beyond the
coordinator's file convict nobody, so they may be anybody's within the skew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]
MIN_VOTERS = 3
"""Fewer markers estimate nothing: then the configured clock skew is the tolerance."""
AROUND = 4
"""Markers on each side of one that have to bear out its clock."""
AGREEING = 2 / 3
"""Share of the markers around that have to fit for a misfit to be the marker's own."""
STRETCHES = 64
"""A group whose clock is not one is estimated in at most that many stretches."""
STRETCH = 32
"""Markers of a stretch, at least."""
DRIFT = 5e-4
"""Share of the time by which two clocks part, at most: NTP corrects no faster, quartz is ten times as good."""
WIDE_MS = 60_000
"""Where markers misfit, clocks are looked for that far apart."""
FAR_MS = 93_600_000
"""And so far for brokers whose clocks show the time of two zones: 26 hours at most."""
SAMPLE = 400
"""Markers of one group that vote; more do not move the result."""
MISFITS = 2000
"""Markers of a group that are looked at one by one; the clocks of one with more are not known so well."""


class Offset(NamedTuple):
    """Difference that most voters agree on.

    Attributes:
        low: least, in ms.
        high: greatest, in ms.
        agreeing: voters that agree on it.
        voting: voters that could.
    """

    low: int
    high: int
    agreeing: int
    voting: int


class Group(Protocol):
    """Markers whose clocks are estimated together."""

    def estimate(self, voters: Longs, reach_ms: int) -> Offset:
        """Difference within so much that most of these voters agree on."""

    def agrees(self, low: Longs, high: Longs) -> Flags:
        """By marker: a transaction of its outcome holds it under these bounds, by marker."""

    def may_be_owed(self, low: Longs, high: Longs, which: Longs) -> Flags:
        """By marker of `which`: it may end a transaction within the skew that has no marker under these bounds."""


class Clock(NamedTuple):
    """Marker clock minus coordinator clock, by marker of one group in offset order.

    Attributes:
        low: least, in ms.
        high: greatest, in ms.
        is_known: False where too few markers around fit any transaction within the configured skew.
        is_misfit: A voter that fits none although those around it do.
    """

    low: Longs
    high: Longs
    is_known: Flags
    is_misfit: Flags


def clocks(
    voters: Longs,
    ms: Longs,
    skew: int,
    group: Group,
) -> Clock:
    """Clock of each marker of a group.

    Args:
        voters: Markers of the group, ascending, whose own transaction must be in the coordinator's file.
        ms: Time of each marker of the group.
        skew: Largest difference that the configuration tolerates, in ms.
        group: What its markers may belong to.
    """
    count = len(ms)
    least, greatest, *_ = group.estimate(voters, skew)
    low, high = np.full(count, least, np.int64), np.full(count, greatest, np.int64)
    is_known = np.ones(count, np.bool_)
    is_misfit = np.zeros(count, np.bool_)
    fits = group.agrees(low, high)
    if len(voters) < MIN_VOTERS:
        is_misfit[voters] = ~fits[voters]
        return Clock(low, high, is_known, is_misfit)
    if fits.all():
        return Clock(low, high, is_known, is_misfit)
    stretches = list(_stretches(voters, count))
    is_doubtful = _is_doubtful(fits, voters, count)
    is_vague = np.zeros(count, np.bool_)
    for stretch, mine in stretches:
        if is_doubtful[stretch].any():
            low[stretch], high[stretch], *_ = group.estimate(mine, skew)
            is_vague[stretch] = low[stretch][0] == -skew and high[stretch][0] == skew
    fits = group.agrees(low, high)
    is_doubtful = _is_doubtful(fits, voters, count) | is_vague
    low[is_doubtful], high[is_doubtful] = -skew, skew
    tells_nothing = _fits_by_chance(voters[is_doubtful[voters]], low, high, skew, group)
    is_unknown = is_doubtful & _is_doubtful(group.agrees(low, high), voters, count)
    for stretch, _ in stretches:
        is_known[stretch] = not is_unknown[stretch].any()
    if tells_nothing:
        is_known &= ~is_doubtful
    if _is_elsewhere(voters, fits, group):
        is_known[:] = False
    is_misfit[voters] = ~fits[voters] & ~is_doubtful[voters]
    _settle_misfits(voters, ms, skew, group, low, high, fits, is_doubtful)
    is_other = ~group.agrees(low, high)
    is_other[voters] = False
    low[is_other], high[is_other] = -skew, skew
    return Clock(low, high, is_known, is_misfit)


def _stretches(voters: Longs, count: int) -> Iterator[tuple[slice, Longs]]:
    """Markers one after the other, and the voters among them."""
    size = max(STRETCH, -(-len(voters) // STRETCHES))
    for first in range(0, len(voters), size):
        begin = int(voters[first]) if first else 0
        end = int(voters[first + size]) if first + size < len(voters) else count
        yield slice(begin, end), voters[first : first + size]


def _is_elsewhere(voters: Longs, fits: Flags, group: Group) -> bool:
    """A difference beyond the configured skew explains more markers: regular transactions fit at many."""
    chosen = _sample(voters, fits[voters])
    fitting = np.count_nonzero(fits[chosen])
    if fitting == len(chosen):
        return False
    for reach_ms in (WIDE_MS, FAR_MS):
        found = group.estimate(chosen, reach_ms)
        if found.agreeing * len(chosen) > fitting * found.voting:
            return True
    return False


def _sample(voters: Longs, fits: Flags) -> Longs:
    """Misfits and others, from everywhere: markers that are few among many would be left out."""
    of_both = (voters[~fits], voters[fits])
    spread = (np.linspace(0, len(one) - 1, min(len(one), SAMPLE // 2)) for one in of_both)
    parts = (one[at.astype(np.int64)] for one, at in zip(of_both, spread, strict=True))
    return np.sort(np.concatenate(list(parts)))


def _fits_by_chance(voters: Longs, low: Longs, high: Longs, skew: int, group: Group) -> bool:
    """Wherever the clock were, transactions are so dense that one of them would hold a marker."""
    if not len(voters):
        return False
    shifts = (-5 * skew, -3 * skew, 3 * skew, 5 * skew)
    fitting = sum(
        np.count_nonzero(group.agrees(low + shift, high + shift)[voters]) for shift in shifts
    )
    return bool(fitting > (1 - AGREEING) * len(shifts) * len(voters))


def _settle_misfits(
    voters: Longs, ms: Longs, skew: int, group: Group, low: Longs, high: Longs, fits: Flags,
    is_doubtful: Flags,
) -> None:  # fmt: skip
    """Gives voters that do not fit the widest bounds that explain them.

    Near an end of the group few markers would bear out that a clock was stepped: there a misfit convicts only if no
    transaction within the skew lacks a marker.
    """
    misfits = np.flatnonzero(~fits[voters] & ~is_doubtful[voters])
    fitting = voters[fits[voters]]
    before = np.searchsorted(fitting, voters[misfits])
    is_end = np.minimum(before, len(fitting) - before) < MIN_VOTERS
    is_end[is_end] = group.may_be_owed(low, high, voters[misfits[is_end]])
    for number, at in enumerate(misfits):
        bounds = (-skew, skew)
        one = voters[at]
        if number < MISFITS and not is_end[number]:
            drift = _drift(ms, int(one), fitting)
            drifted = (max(low[one] - drift, -skew), min(high[one] + drift, skew))
            bounds = _shared(voters, int(at), skew, group) or drifted
        low[one], high[one] = bounds


def _drift(ms: Longs, one: int, fitting: Longs) -> int:
    """By how much the clocks may have drifted between a marker and the three nearest ones that fit, in ms."""
    if not len(fitting):
        return 0
    behind = int(np.searchsorted(fitting, one))
    around = fitting[max(behind - MIN_VOTERS, 0) : behind + MIN_VOTERS]
    apart = np.sort(np.abs(ms[around] - ms[one]))[:MIN_VOTERS]
    return int(apart[-1] * DRIFT)


def _shared(voters: Longs, at: int, skew: int, group: Group) -> tuple[int, int] | None:
    """One difference that explains a voter and those before it, around it or behind it."""
    for before, behind in ((AROUND, AROUND), (2 * AROUND, 0), (0, 2 * AROUND)):
        around = voters[max(at - before, 0) : at + behind + 1]
        found = group.estimate(around, skew)
        if found.agreeing == found.voting and len(around) >= MIN_VOTERS:
            return found.low, found.high
    return None


def _is_doubtful(fits: Flags, voters: Longs, count: int) -> Flags:
    """By marker: too few of the voters around it fit."""
    is_low = is_crowded(~fits[voters])
    return np.asarray(is_low[nearest(voters, count)])


def is_crowded(is_odd: Flags) -> Flags:
    """By event in order: over a third of those around it, itself included, are odd; of less than three, none."""
    total = np.concatenate(([0], np.cumsum(is_odd)))
    at = np.arange(len(is_odd))
    first, last = np.maximum(at - AROUND, 0), np.minimum(at + AROUND + 1, len(is_odd))
    share = (total[last] - total[first]) / np.maximum(last - first, 1)
    return np.asarray((share > 1 - AGREEING) & (last - first >= MIN_VOTERS))


def nearest(voters: Longs, count: int) -> Longs:
    """By marker: number of the voter at or behind it, else of the last one."""
    return np.minimum(np.searchsorted(voters, np.arange(count)), len(voters) - 1)
