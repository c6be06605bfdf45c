"""Transactions of one producer epoch as intervals of time, and the markers that lie in them.

A transaction's markers are written between its Prepare* and its Complete*, by the coordinator's clock; the two may bear
the clocks of two coordinators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.replay.clock import MIN_VOTERS, SAMPLE, Offset
from pipeline.replay.combined import Combined, combined

Longs = NDArray[np.int64]
NONE = -(2**62)
OPEN_END = 2**62
ROUNDING_MS = 1
"""Times are whole milliseconds: two that are half a millisecond apart differ by 0 or by 1."""
CANDIDATES = 512
"""Transactions that one marker may vote for."""
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
    prepare_offset: Longs
    prepare_ms: Longs
    complete_ms: Longs
    prepare_leader_epoch: Longs
    complete_leader_epoch: Longs


class Blocks(NamedTuple):
    """Prepared promises sorted by (key, prepare time), with searchable keys of it."""

    rows: Longs
    pairs: Combined
    start: Longs
    origin: int


def sorted_blocks(promises: Promises, use: Longs, epochs: Longs, origin: int) -> Blocks:
    """Promises by producer id, epoch and the time of Prepare*."""
    pairs = combined(promises.producer_id[use], epochs)
    code = pairs.number
    order = np.lexsort((promises.prepare_ms[use], code))
    code, index = code[order], use[order]
    start = code * _SPAN + np.clip(promises.prepare_ms[index] - origin, 0, _SPAN - 1)
    return Blocks(index, pairs, start, origin)


def rows_of(blocks: Blocks, code: int) -> Longs:
    """Promises of one producer id and epoch, by time."""
    begin, end = np.searchsorted(blocks.start, (code * _SPAN, (code + 1) * _SPAN))
    return blocks.rows[begin:end]


def may_end(
    promises: Promises, rows: Longs, ms: int | Longs, kind: int | Longs, skew: int
) -> NDArray[np.bool_]:
    """By promise of `rows`: a marker of that time and outcome may be its own, on clocks within the skew."""
    return np.asarray(
        (promises.outcome[rows] == kind)
        & (promises.prepare_ms[rows] - skew <= ms)
        & (promises.complete_ms[rows] + skew >= ms)
    )


def clock_offset(
    ms: Longs,
    kind: Longs,
    code: Longs,
    blocks: Blocks,
    promises: Promises,
    skew: int,
    epoch: int,
    candidates: int = CANDIDATES,
) -> Offset:
    """Range of marker clock minus coordinator clock in ms that most markers of a group agree on.

    `epoch` is the group's coordinator epoch: only transactions that it prepared and completed tell of its clock. A
    marker that has none of these, but may be another's, has no vote.
    """
    begins, ends, voting = [], [], 0
    for begin, end, may_vote in _votes(ms, kind, code, blocks, promises, skew, epoch, candidates):
        begins.append(begin)
        ends.append(end + 1)
        voting += may_vote
    at = np.concatenate((*begins, *ends)) if begins else np.empty(0, np.int64)
    change = np.where(np.arange(len(at)) < len(at) // 2, 1, -1)
    order = np.argsort(at, kind="stable")
    at, total = at[order], np.cumsum(change[order])
    # Of equal differences the last one has counted all votes.
    is_last = np.append(at[1:] != at[:-1], True)[: len(at)]
    at, total = at[is_last], total[is_last]
    most = int(total.max(initial=0))
    best = np.flatnonzero(total == most)
    is_one = len(best) > 0 and best[-1] - best[0] + 1 == len(best)
    if len(ms) < MIN_VOTERS or most < MIN_VOTERS or not is_one:
        return Offset(-skew, skew, most, voting)
    until = int(at[best[-1] + 1]) - 1
    return Offset(int(at[best[0]]) - ROUNDING_MS, until + ROUNDING_MS, most, voting)


def _votes(
    ms: Longs,
    kind: Longs,
    code: Longs,
    blocks: Blocks,
    promises: Promises,
    skew: int,
    epoch: int,
    candidates: int,
) -> Iterator[tuple[Longs, Longs, bool]]:
    """By marker: the differences that it votes for, as intervals that do not overlap; whether it has a vote."""
    if len(ms) > SAMPLE:
        pick = np.linspace(0, len(ms) - 1, SAMPLE).astype(np.int64)
        ms, kind, code = ms[pick], kind[pick], code[pick]
    relative = np.clip(ms - blocks.origin, 0, _SPAN - 1)
    key = code * _SPAN + np.clip(relative + skew, 0, _SPAN - 1)
    high = np.searchsorted(blocks.start, key, side="right")
    # Of many transactions as many behind the marker as before it.
    near = np.searchsorted(blocks.start, code * _SPAN + relative, side="right") + candidates // 2
    high = np.minimum(high, near)
    block_start = np.searchsorted(blocks.start, code * _SPAN, side="left")
    for number in range(len(ms)):
        first = max(int(block_start[number]), int(high[number]) - candidates)
        chosen = blocks.rows[first : int(high[number])]
        chosen = chosen[
            (promises.outcome[chosen] == kind[number]) & _may_send(promises, chosen, epoch)
        ]
        own = chosen[_is_own(promises, chosen, epoch)]
        begin = ms[number] - promises.complete_ms[own]
        end = ms[number] - promises.prepare_ms[own]
        keep = (end >= -skew) & (begin <= skew)
        begin, end = np.maximum(begin[keep], -skew)[::-1], np.minimum(end[keep], skew)[::-1]
        begin[1:] = np.maximum(begin[1:], np.maximum.accumulate(end)[:-1] + 1)
        fits = begin <= end
        yield begin[fits], end[fits], len(own) > 0 or not len(chosen)


def holders_of(
    markers: Markers,
    promises: Promises,
    blocks: Blocks,
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
        if not mine.any():
            break
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
