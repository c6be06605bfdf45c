"""Which transaction of transaction.version 0 and 1 holds a marker, by time.

Many transactions share one producer epoch and follow each other within milliseconds, and the marker is stamped by
another broker than the coordinator. So the offset between the two clocks is estimated first, over all producers of one
(data partition, leader epoch, coordinator partition, coordinator epoch) together: every marker votes for each offset
that puts it between Prepare* and Complete* of a transaction of its producer id and epoch that has its outcome. A marker
then belongs to the transaction whose interval holds it, whatever its outcome.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.replay.clock import Offset, clocks
from pipeline.replay.combined import combined
from pipeline.replay.intervals import (
    CANDIDATES,
    NONE,
    Blocks,
    Longs,
    Markers,
    Promises,
    clock_offset,
    holders_of,
    may_end,
    rows_of,
    sorted_blocks,
)

WIDE_CANDIDATES = 8192
"""Transactions that a marker may vote for where clocks are looked for far apart."""
NEIGHBOURS = 4
"""Transactions of one epoch follow each other: only the last few before a marker can hold it."""


def by_time(
    markers: Markers,
    promises: Promises,
    found: Longs,
    ambiguous: NDArray[np.bool_],
    untimed: NDArray[np.bool_],
    clock: Longs,
    skew: int,
    is_evidence: NDArray[np.bool_],
) -> None:
    """Versions 0 and 1: by the interval that holds the marker, once the clock offset is known.

    Only markers whose own transaction must be in the coordinator's file tell the clock offset: others would vote for
    their neighbours'.
    """
    use = np.flatnonzero(promises.prepare_ms != NONE)
    rest = np.flatnonzero((found < 0) & (markers.ms != NONE))
    if not len(use) or not len(rest):
        return
    origin = int(promises.prepare_ms[use].min()) - 10 * skew - 1
    blocks = sorted_blocks(promises, use, promises.prepare_epoch[use], origin)
    code = blocks.pairs.find(markers.producer_id[rest], markers.epoch[rest])
    rest, code = rest[code >= 0], code[code >= 0]
    groups = combined(
        markers.leader_epoch[rest],
        markers.coordinator_partition[rest],
        markers.coordinator_epoch[rest],
    )
    member = groups.number
    for number in range(len(groups.first)):
        of_group = np.flatnonzero(member == number)
        voters = np.flatnonzero(is_evidence[rest[of_group]])
        one = _Group(markers, promises, blocks, rest[of_group], code[of_group], skew)
        known = clocks(voters, markers.ms[one.which], skew, one)
        clock[0, rest[of_group]], clock[1, rest[of_group]] = known.low, known.high
        fits, best = one.holders(known.low, known.high)
        fits[~known.is_known] = 0
        found[one.which[fits == 1]] = best[fits == 1]
        ambiguous[one.which[fits > 1]] = True
        untimed[one.which[~known.is_known]] = True
        is_odd = promises.outcome[best] != markers.type[one.which]
        is_odd = known.is_misfit & ((fits == 0) | ((fits == 1) & is_odd))
        _by_order(one, np.flatnonzero(is_odd), found, ambiguous)


def _by_order(one: _Group, misfits: Longs, found: Longs, ambiguous: NDArray[np.bool_]) -> None:
    """Markers that no clock explains: in order they may be what their producer's next are.

    The clock of either broker may have been set there, and the other's right behind. Only a marker that does not follow
    in order either, or that is of the other outcome, shows more than that.
    """
    order_of = {int(code): _in_order(one, int(code)) for code in np.unique(one.code[misfits])}
    which = one.which[misfits]
    before = found[which].copy()
    found[which] = -1
    for step, numbers in ((1, range(len(which))), (-1, range(len(which) - 1, -1, -1))):
        for number in numbers:
            marker = int(which[number])
            if found[marker] < 0:
                rows = order_of[int(one.code[misfits[number]])]
                found[marker] = _next_in_order(one, rows, marker, step, found)
    lost = found[which] < 0
    ambiguous[which[~lost]] = False
    found[which[lost]] = before[lost]


def _in_order(one: _Group, code: int) -> Longs:
    rows = rows_of(one.blocks, code)
    return rows[np.argsort(one.promises.prepare_offset[rows], kind="stable")]


def _next_in_order(one: _Group, rows: Longs, marker: int, step: int, found: Longs) -> int:
    """The transaction that follows the one whose marker is the nearest (`step` -1: precedes it), if it may be its."""
    taken = np.flatnonzero(found >= 0)
    taken = taken[one.promises.outcome[found[taken]] == one.markers.type[taken]]
    has_marker = np.isin(rows, found[taken])
    beside = found[:marker] if step > 0 else found[marker + 1 :]
    known = np.flatnonzero(np.isin(rows, beside[beside >= 0]))
    if step > 0:
        at = int(known[-1]) + 1 if len(known) else 0
    else:
        at = int(known[0]) - 1 if len(known) else -1
    if not 0 <= at < len(rows) or has_marker[at]:
        return -1
    return int(rows[at]) if one.promises.outcome[rows[at]] == one.markers.type[marker] else -1


class _Group(NamedTuple):
    """Markers of one leader epoch of the partition that one epoch of a coordinator partition sent.

    Attributes:
        which: Their indices in `markers`.
        code: Their producer id and epoch, as `blocks` numbers them.
        skew: Configured clock skew, in ms.
    """

    markers: Markers
    promises: Promises
    blocks: Blocks
    which: Longs
    code: Longs
    skew: int

    def estimate(self, voters: Longs, reach_ms: int) -> Offset:
        """Difference within so much that most of these markers agree on."""
        which = self.which[voters]
        return clock_offset(
            self.markers.ms[which],
            self.markers.type[which],
            self.code[voters],
            self.blocks,
            self.promises,
            reach_ms,
            int(self.markers.coordinator_epoch[self.which[0]]),
            CANDIDATES if reach_ms <= self.skew else WIDE_CANDIDATES,
        )

    def agrees(self, low: Longs, high: Longs) -> NDArray[np.bool_]:
        """By marker: several transactions that its coordinator epoch can have ended hold it, or one of its outcome."""
        fits, best = self._holders(low, high, are_strict=(True,))
        is_own = self.promises.outcome[best] == self.markers.type[self.which]
        return np.asarray((fits > 1) | ((fits == 1) & is_own))

    def may_be_owed(self, low: Longs, high: Longs, which: Longs) -> NDArray[np.bool_]:
        """By marker of `which`: it may end a transaction within the skew that has no marker under these bounds.

        A marker whose clock is not known narrower than the skew takes no transaction from another one.
        """
        fits, best = self.holders(low, high)
        has_marker = np.zeros(len(self.promises.outcome), np.bool_)
        has_marker[best[(fits == 1) & (high - low < 2 * self.skew)]] = True
        return np.array([self._is_owed(at, has_marker) for at in which], np.bool_)

    def _is_owed(self, at: int, has_marker: NDArray[np.bool_]) -> bool:
        one = self.which[at]
        rows = rows_of(self.blocks, int(self.code[at]))
        may = may_end(self.promises, rows, self.markers.ms[one], self.markers.type[one], self.skew)
        return bool((may & ~has_marker[rows]).any())

    def holders(self, low: Longs, high: Longs) -> tuple[Longs, Longs]:
        """By marker: how many transactions hold it, and one of them.

        First by the clock alone, then, for what fits nothing, with the clock skew on the side that another coordinator
        epoch stamped; and first of the transactions whose markers a coordinator of this epoch can have sent.
        """
        return self._holders(low, high, are_strict=(True, False))

    def _holders(
        self, low: Longs, high: Longs, are_strict: tuple[bool, ...]
    ) -> tuple[Longs, Longs]:
        count = len(self.which)
        fits, best = np.zeros(count, np.int64), np.full(count, -1, np.int64)
        passes = ((0, NEIGHBOURS), (self.skew, CANDIDATES))
        for is_strict, (slack, reach) in product(are_strict, passes):
            rest = np.flatnonzero(fits == 0)
            if len(rest):
                fits[rest], best[rest] = holders_of(
                    self.markers,
                    self.promises,
                    self.blocks,
                    self.which[rest],
                    self.code[rest],
                    (low[rest], high[rest], slack),
                    reach,
                    is_strict,
                )
        return fits, best
