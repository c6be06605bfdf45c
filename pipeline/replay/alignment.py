"""Which marker belongs to which coordinator transaction.

Under transaction.version 2 the marker's epoch alone names its transaction (KIP-890); before it, `marker_time` tells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.replay.combined import combined
from pipeline.replay.intervals import NONE, OPEN_END, Longs, Markers, Promises, may_end
from pipeline.replay.marker_time import by_time

__all__ = ["NONE", "OPEN_END", "Alignment", "Longs", "Markers", "Promises", "align"]


ABORT, COMMIT = 0, 1


class Alignment(NamedTuple):
    """What was found.

    Attributes:
        promise: By marker: index of its promise, or -1.
        is_ambiguous: By marker: several promises fit.
        is_untimed: By marker: its time tells nothing, for two clocks are further apart than the configured skew.
        low: By marker: least difference, in ms, of its clock to the coordinator's.
        high: By marker: greatest difference.
        first_marker: By promise: index of its first marker, or -1.
        marker_count: By promise: its markers.
    """

    promise: Longs
    is_ambiguous: NDArray[np.bool_]
    is_untimed: NDArray[np.bool_]
    low: Longs
    high: Longs
    first_marker: Longs
    marker_count: Longs


def align(
    markers: Markers,
    promises: Promises,
    *,
    clock_skew_ms: int,
    is_evidence: NDArray[np.bool_],
    may_precede: NDArray[np.bool_] | None = None,
    ends_nothing: NDArray[np.bool_] | None = None,
) -> Alignment:
    """Gives each marker its transaction.

    Args:
        markers: In offset order.
        promises: In any order.
        clock_skew_ms: Largest difference between two brokers' clocks.
        is_evidence: By marker: the coordinator's file holds its time, so finding no transaction would mean something.
        may_precede: By marker: its own transaction may lie before the coordinator's complete history; None: of none.
        ends_nothing: By marker: no data of its producer are open; None where nobody knows.
    """
    count = len(markers.offset)
    found = np.full(count, -1, np.int64)
    ambiguous, untimed = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    clock = np.full((2, count), clock_skew_ms, np.int64) * np.array([[-1], [1]])
    if count and len(promises.producer_id):
        _by_epoch(markers, promises, found)
        by_time(markers, promises, found, ambiguous, untimed, clock, clock_skew_ms, is_evidence)
        if may_precede is not None:
            _doubt_early(promises, found, ambiguous, may_precede)
        _doubt_repeats(markers, promises, found, ambiguous, clock_skew_ms)
        untimed |= _is_ahead_of_later(markers.ms, clock_skew_ms)
        _release(markers, promises, found, is_evidence)
        _release_operators(markers, promises, found, ends_nothing)
        is_alone = is_evidence & ~ambiguous & ~untimed
        _by_producer(markers, promises, found, is_alone)
        if ends_nothing is not None:
            _by_retry(markers, promises, found, is_alone & ends_nothing, clock, clock_skew_ms)
    first, counts = _first_markers(found, len(promises.producer_id))
    return Alignment(found, ambiguous, untimed, clock[0], clock[1], first, counts)


def _is_ahead_of_later(ms: Longs, skew: int) -> NDArray[np.bool_]:
    """Markers whose time a later marker's disproves: a clock was ahead, and was put back."""
    times = np.where(ms == NONE, OPEN_END, ms)
    return np.asarray((ms != NONE) & (ms - skew > np.minimum.accumulate(times[::-1])[::-1]))


def _by_epoch(markers: Markers, promises: Promises, found: Longs) -> None:
    """Version 2: producer id and marker epoch name one transaction, unless the epoch is not unique.

    Those behind 32767 share it, and those of version 0 and 1 that follow when the feature is taken back.
    """
    use = np.flatnonzero(promises.prepare_ms != NONE)
    is_named = promises.version[use] == 2
    if not is_named.any():
        return
    pairs = combined(promises.producer_id[use], promises.prepare_epoch[use])
    at = pairs.find(markers.producer_id, markers.epoch)
    hit = (at >= 0) & (pairs.counts[at] == 1) & is_named[pairs.first[at]]
    found[hit] = use[pairs.first[at[hit]]]


def _release(
    markers: Markers, promises: Promises, found: Longs, is_evidence: NDArray[np.bool_]
) -> None:
    """A marker whose own transaction may lie outside the coordinator's file is nobody's of the other outcome."""
    mine = np.flatnonzero((found >= 0) & ~is_evidence)
    mine = mine[promises.version[found[mine]] != 2]
    found[mine[promises.outcome[found[mine]] != markers.type[mine]]] = -1


def _release_operators(
    markers: Markers,
    promises: Promises,
    found: Longs,
    ends_nothing: NDArray[np.bool_] | None,
) -> None:
    """An ABORT that an operator wrote is no marker of a transaction that was committed (`TransactionsCommand`).

    One that ends no data says nothing against it; nor does, under version 2, one behind the marker that the epoch
    names: it bears the epoch of the data, which is that of the transaction before.
    """
    mine = np.flatnonzero(found >= 0)
    mine = mine[(markers.type[mine] == ABORT) & (promises.outcome[found[mine]] == COMMIT)]
    first, _ = _first_markers(found, len(promises.producer_id))
    is_other = (promises.version[found[mine]] == 2) & (first[found[mine]] != mine)
    if ends_nothing is not None:
        is_other |= ends_nothing[mine]
    found[mine[is_other]] = -1


def _doubt_early(
    promises: Promises,
    found: Longs,
    ambiguous: NDArray[np.bool_],
    may_precede: NDArray[np.bool_],
) -> None:
    """Of several markers of one transaction, the first may be that of one before the coordinator's complete history."""
    first, counts = _first_markers(found, len(promises.producer_id))
    is_early = (counts > 1) & (promises.version != 2)
    is_early[is_early] = may_precede[first[is_early]]
    mine = np.flatnonzero(found >= 0)
    mine = mine[is_early[found[mine]]]
    found[mine], ambiguous[mine] = -1, True


def _doubt_repeats(
    markers: Markers,
    promises: Promises,
    found: Longs,
    ambiguous: NDArray[np.bool_],
    skew: int,
) -> None:
    """A second marker of one transaction may be the only one of the next, where a clock was stepped in between.

    So may one of the other outcome, where too few markers tell the clock. Beyond the skew, order tells.
    """
    first, counts = _first_markers(found, len(promises.producer_id))
    again = np.flatnonzero((found >= 0) & (markers.ms != NONE))
    is_second = (counts[found[again]] > 1) & (first[found[again]] != again)
    outcome = promises.outcome[found[again]]
    again = again[is_second | ((outcome != markers.type[again]) & (outcome != NONE))]
    owed = np.flatnonzero((counts == 0) & (promises.prepare_ms != NONE) & (promises.version != 2))
    if not len(again) or not len(owed):
        return
    for one in again:
        mine = owed[
            (promises.producer_id[owed] == markers.producer_id[one])
            & (promises.prepare_epoch[owed] == markers.epoch[one])
        ]
        if may_end(promises, mine, markers.ms[one], markers.type[one], skew).any():
            found[one], ambiguous[one] = -1, True
        elif counts[found[one]] > 1:
            found[one] = _next_owed(markers, promises, found, int(one), mine)


def _next_owed(markers: Markers, promises: Promises, found: Longs, one: int, owed: Longs) -> int:
    """What follows in order the newest transaction of its producer, where that lacks a marker; else what was found."""
    before = found[:one][
        (found[:one] >= 0) & (markers.producer_id[:one] == markers.producer_id[one])
    ]
    newest = promises.prepare_offset[before].max(initial=NONE)
    later = np.flatnonzero(
        (promises.producer_id == markers.producer_id[one])
        & (promises.prepare_epoch == markers.epoch[one])
        & (promises.prepare_offset > newest)
    )
    if not len(later):
        return int(found[one])
    following = later[np.argmin(promises.prepare_offset[later])]
    is_its = following in owed and promises.outcome[following] == markers.type[one]
    return int(following if is_its else found[one])


def _by_producer(
    markers: Markers, promises: Promises, found: Longs, is_evidence: NDArray[np.bool_]
) -> None:
    """A marker with an epoch that no transaction has: it may lie inside one of its producer (wrong epoch)."""
    rest = np.flatnonzero((found < 0) & is_evidence & (markers.ms != NONE))
    if not len(rest):
        return
    taken = np.zeros(len(promises.producer_id), np.bool_)
    taken[found[found >= 0]] = True
    for number in rest:
        ms = markers.ms[number]
        holds = np.flatnonzero(
            (promises.producer_id == markers.producer_id[number])
            & (promises.prepare_ms != NONE)
            & ~taken
            & (promises.prepare_epoch != markers.epoch[number])
            & (promises.outcome == markers.type[number])
            & (promises.prepare_ms <= ms)
            & (promises.complete_ms >= ms)
        )
        if len(holds) == 1:
            found[number] = holds[0]


def _by_retry(
    markers: Markers,
    promises: Promises,
    found: Longs,
    may_repeat: NDArray[np.bool_],
    clock: Longs,
    skew: int,
) -> None:
    """A marker that ends nothing, right behind Complete* of a transaction that has one like it: it was sent twice.

    A coordinator whose connection broke sends its markers again (Kafka:
    `TransactionMarkerRequestCompletionHandler.onComplete`). Another thread of the leader may still be busy with the
    first request when the second one is answered, and append it a moment later.
    """
    rest = np.flatnonzero((found < 0) & may_repeat & (markers.ms != NONE))
    if not len(rest):
        return
    first, _ = _first_markers(found, len(promises.producer_id))
    for one in rest:
        ms = markers.ms[one]
        mine = np.flatnonzero(
            (promises.producer_id == markers.producer_id[one])
            & (promises.prepare_epoch == markers.epoch[one])
            & (promises.outcome == markers.type[one])
            & (first >= 0)
            & (first < one)
            & (promises.complete_ms <= ms - clock[0, one])
            & (promises.complete_ms + skew >= ms - clock[1, one])
        )
        if len(mine):
            found[one] = mine[np.argmax(promises.complete_ms[mine])]


def _first_markers(found: Longs, promise_count: int) -> tuple[Longs, Longs]:
    first = np.full(promise_count, -1, np.int64)
    counts = np.zeros(promise_count, np.int64)
    has = np.flatnonzero(found >= 0)
    np.add.at(counts, found[has], 1)
    first[found[has][::-1]] = has[::-1]
    return first, counts
