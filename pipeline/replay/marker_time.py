"""Which transaction of transaction.version 0 and 1 holds a marker, by time.

Many transactions share one producer epoch and follow each other within milliseconds, and the marker is stamped by
another broker than the coordinator. So the offset between the two clocks is estimated first, over all producers of one
(data partition, leader epoch, coordinator partition, coordinator epoch) together: every marker votes for each offset
that puts it between Prepare* and Complete* of a transaction of its producer id and epoch that has its outcome. A marker
then belongs to the transaction whose interval holds it, whatever its outcome.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.replay.clock import MIN_VOTERS, clocks

Longs = NDArray[np.int64]
NONE = -(2**62)
OPEN_END = 2**62
ROUNDING_MS = 1
"""Times are whole milliseconds: two that are half a millisecond apart differ by 0 or by 1."""
SAMPLE = 400
"""Markers of one group that vote; more do not move the result."""
CANDIDATES = 512
"""Transactions that one marker may vote for."""
NEIGHBOURS = 4
"""Transactions of one epoch follow each other: only the last few before a marker can hold it."""
_SPAN = 1 << 41
"""Room for one producer's times in a combined key: 69 years of milliseconds."""


class Markers(NamedTuple):
    """Markers of one data partition in offset order; every field an int64 array, `NONE` for null."""

    offset: Longs
    ms: Longs
    producer_id: Longs
    epoch: Longs
    type: Longs
    leader_epoch: Longs
    coordinator_epoch: Longs
    coordinator_partition: Longs


class Promises(NamedTuple):
    """Transactions that list this partition; every field an int64 array, `NONE` for null.

    `prepare_ms` is `NONE` while Ongoing; `complete_ms` is `OPEN_END` until Complete*.
    """

    producer_id: Longs
    epoch: Longs
    prepare_epoch: Longs
    outcome: Longs
    version: Longs
    added_ms: Longs
    prepare_ms: Longs
    complete_ms: Longs
    prepare_leader_epoch: Longs
    complete_leader_epoch: Longs


class _Blocks(NamedTuple):
    """Prepared promises sorted by (key, prepare time), with searchable start and end keys."""

    rows: Longs
    table: NDArray[np.void]
    start: Longs
    end: Longs
    origin: int


def pairs(producer_id: Longs, epoch: Longs) -> NDArray[np.void]:
    pair = np.empty(len(producer_id), dtype=[("p", np.int64), ("e", np.int64)])
    pair["p"], pair["e"] = producer_id, epoch
    return pair


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
    blocks = _blocks(promises, use, promises.prepare_epoch[use], origin)
    code = _code(blocks.table, pairs(markers.producer_id[rest], markers.epoch[rest]))
    rest, code = rest[code >= 0], code[code >= 0]
    group = np.stack(
        (
            markers.leader_epoch[rest],
            markers.coordinator_partition[rest],
            markers.coordinator_epoch[rest],
        )
    )
    _, member = np.unique(group, axis=1, return_inverse=True)
    member = member.ravel()
    for number in range(int(member.max()) + 1 if len(member) else 0):
        of_group = np.flatnonzero(member == number)
        voters = np.flatnonzero(is_evidence[rest[of_group]])
        one = _Group(markers, promises, blocks, rest[of_group], code[of_group], skew)
        known = clocks(voters, markers.ms[one.which], skew, one.estimate, one.agrees)
        clock[0, rest[of_group]], clock[1, rest[of_group]] = known.low, known.high
        fits, best = one.holders(known.low, known.high)
        fits[~known.is_known] = 0
        found[one.which[fits == 1]] = best[fits == 1]
        ambiguous[one.which[fits > 1]] = True
        untimed[one.which[~known.is_known]] = True


class _Group(NamedTuple):
    """Markers of one leader epoch of the partition that one epoch of a coordinator partition sent.

    Attributes:
        which: Their indices in `markers`.
        code: Their producer id and epoch, as `blocks` numbers them.
        skew: Configured clock skew, in ms.
    """

    markers: Markers
    promises: Promises
    blocks: _Blocks
    which: Longs
    code: Longs
    skew: int

    def estimate(self, voters: Longs) -> tuple[int, int, bool]:
        """Clock that most of these markers agree on, and whether all do."""
        which = self.which[voters]
        return _clock_offset(
            self.markers.ms[which],
            self.markers.type[which],
            self.code[voters],
            self.blocks,
            self.promises,
            self.skew,
            int(self.markers.coordinator_epoch[self.which[0]]),
        )

    def agrees(self, low: Longs, high: Longs) -> NDArray[np.bool_]:
        """By marker: several transactions hold it, or one of its outcome."""
        fits, best = self.holders(low, high)
        is_own = self.promises.outcome[best] == self.markers.type[self.which]
        return np.asarray((fits > 1) | ((fits == 1) & is_own))

    def holders(self, low: Longs, high: Longs) -> tuple[Longs, Longs]:
        """By marker: how many transactions hold it, and one of them.

        First by the clock alone, then, for what fits nothing, with the clock skew on the side that another coordinator
        epoch stamped; and first of the transactions whose markers a coordinator of this epoch can have sent.
        """
        count = len(self.which)
        fits, best = np.zeros(count, np.int64), np.full(count, -1, np.int64)
        for slack, reach, is_strict in (
            (0, NEIGHBOURS, True),
            (self.skew, CANDIDATES, True),
            (0, NEIGHBOURS, False),
            (self.skew, CANDIDATES, False),
        ):
            rest = np.flatnonzero(fits == 0)
            if len(rest):
                fits[rest], best[rest] = _holders(
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


def _blocks(promises: Promises, use: Longs, epochs: Longs, origin: int) -> _Blocks:
    keys = pairs(promises.producer_id[use], epochs)
    table, code = np.unique(keys, return_inverse=True)
    order = np.lexsort((promises.prepare_ms[use], code))
    code, index = code[order], use[order]
    start = code * _SPAN + np.clip(promises.prepare_ms[index] - origin, 0, _SPAN - 1)
    end = code * _SPAN + np.clip(promises.complete_ms[index] - origin, 0, _SPAN - 1)
    return _Blocks(index, table, start, end, origin)


def _code(table: NDArray[np.void], wanted: NDArray[np.void]) -> Longs:
    at = np.searchsorted(table, wanted)
    at[at == len(table)] = 0
    return np.where(table[at] == wanted, at, -1).astype(np.int64)


def _clock_offset(
    ms: Longs,
    kind: Longs,
    code: Longs,
    blocks: _Blocks,
    promises: Promises,
    skew: int,
    epoch: int,
) -> tuple[int, int, bool]:
    """Range of marker clock minus coordinator clock in ms that most markers of a group agree on; whether all do.

    `epoch` is the group's coordinator epoch: only transactions that it prepared and completed tell of its clock. A
    marker that has none of these, but may be another's, has no vote.
    """
    if len(ms) > SAMPLE:
        pick = np.linspace(0, len(ms) - 1, SAMPLE).astype(np.int64)
        ms, kind, code = ms[pick], kind[pick], code[pick]
    relative = np.clip(ms - blocks.origin, 0, _SPAN - 1)
    high = np.searchsorted(blocks.start, code * _SPAN + relative + skew, side="right")
    block_start = np.searchsorted(blocks.start, code * _SPAN, side="left")
    votes = np.zeros(2 * skew + 2, np.int64)
    voting = len(ms)
    for number in range(len(ms)):
        first = max(int(block_start[number]), int(high[number]) - CANDIDATES)
        chosen = blocks.rows[first : int(high[number])]
        chosen = chosen[
            (promises.outcome[chosen] == kind[number]) & _may_send(promises, chosen, epoch)
        ]
        own = chosen[_is_own(promises, chosen, epoch)]
        voting -= len(chosen) > 0 and len(own) == 0
        begin = ms[number] - promises.complete_ms[own]
        end = ms[number] - promises.prepare_ms[own]
        keep = (end >= -skew) & (begin <= skew)
        begin, end = np.maximum(begin[keep], -skew)[::-1], np.minimum(end[keep], skew)[::-1]
        begin[1:] = np.maximum(begin[1:], np.maximum.accumulate(end)[:-1] + 1)
        fits = begin <= end
        np.add.at(votes, begin[fits] + skew, 1)
        np.subtract.at(votes, end[fits] + skew + 1, 1)
    total = np.cumsum(votes[:-1])
    best = np.flatnonzero(total == total.max())
    if len(ms) < MIN_VOTERS or total.max() < MIN_VOTERS or best[-1] - best[0] + 1 != len(best):
        return -skew, skew, bool(total.max() == voting)
    least, greatest = int(best[0]) - ROUNDING_MS, int(best[-1]) + ROUNDING_MS
    return least - skew, greatest - skew, bool(total.max() == voting)


def _holders(
    markers: Markers,
    promises: Promises,
    blocks: _Blocks,
    which: Longs,
    code: Longs,
    clock: tuple[Longs, Longs, int],
    reach: int,
    is_strict: bool,
) -> tuple[Longs, Longs]:
    """By marker: how many transactions hold it, and one of them, among the last `reach` that began before it."""
    low, high, slack = clock
    ms, epoch = markers.ms[which], markers.coordinator_epoch[which]
    relative = np.clip(ms - blocks.origin, 0, _SPAN - 1)
    last = np.searchsorted(blocks.start, code * _SPAN + relative - low + slack, side="right") - 1
    fits = np.zeros(len(which), np.int64)
    best = np.full(len(which), -1, np.int64)
    for back in range(reach):
        at = np.maximum(last - back, 0)
        index = blocks.rows[at]
        mine = (last >= back) & (blocks.start[at] // _SPAN == code)
        if is_strict:
            mine &= _may_send(promises, index, epoch)
        early = np.where(promises.prepare_leader_epoch[index] == epoch, 0, slack)
        late = np.where(promises.complete_leader_epoch[index] == epoch, 0, slack)
        holds = (
            mine
            & (promises.prepare_ms[index] - early <= ms - low)
            & (promises.complete_ms[index] + late >= ms - high)
        )
        fits += holds
        best = np.where(holds, index, best)
    return fits, best


def _may_send(promises: Promises, index: Longs, epoch: Longs | int) -> NDArray[np.bool_]:
    """Whether a coordinator epoch can have sent markers of these transactions.

    It had read or written their Prepare*, and no earlier one had written their Complete*: what is complete is not sent
    again (Kafka: `TransactionStateManager.loadTransactionsForTxnTopicPartition`).
    """
    prepared, completed = (
        promises.prepare_leader_epoch[index],
        promises.complete_leader_epoch[index],
    )
    return np.asarray((prepared <= epoch) & ((completed == NONE) | (completed >= epoch)))


def _is_own(promises: Promises, index: Longs, epoch: int) -> NDArray[np.bool_]:
    """Whether one coordinator epoch, with its one clock, stamped Prepare* and, as far as it came, Complete*."""
    prepared, completed = (
        promises.prepare_leader_epoch[index],
        promises.complete_leader_epoch[index],
    )
    return np.asarray((prepared == epoch) & ((completed == epoch) | (completed == NONE)))
