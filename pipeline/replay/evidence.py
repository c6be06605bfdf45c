"""Which markers without a transaction are evidence: the coordinator's file certainly goes on behind them.

Order tells without clocks: Complete* is written when all markers are (Kafka:
`TransactionMarkerChannelManager.maybeWriteTxnCompletion`). So a coordinator's file that holds the Complete* of a marker
holds the Prepare* of every marker before it in the partition. Behind the last such marker only clocks are left, and
both may have been set since - unless the copy began late enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pipeline.replay.alignment import Alignment
from pipeline.replay.alive import waited_ms
from pipeline.replay.clock import MIN_VOTERS
from pipeline.replay.coverage import ALWAYS, CoordinatorCoverage, Tolerances
from pipeline.replay.intervals import NONE, OPEN_END, Longs, Markers, Promises, may_end

Flags = NDArray[np.bool_]


def borne_out(
    markers: Markers,
    promises: Promises,
    found: Alignment,
    is_evidence: Flags,
    coordinator: Callable[[int], CoordinatorCoverage],
    tolerances: Tolerances,
) -> Flags:
    """Which of these markers are evidence whatever the clocks did.

    Args:
        markers: In offset order.
        promises: The transactions that list the partition.
        found: Which marker is whose.
        is_evidence: By marker: the coordinator's file holds its time, by the clocks.
        coordinator: Number of a coordinator partition -> how far it was read.
        tolerances: Configured patience.
    """
    result = is_evidence.copy()
    is_lonely = is_evidence & (found.promise < 0) & ~found.is_ambiguous & ~found.is_untimed
    is_lonely &= ~_is_long_before_copy(markers.ms, tolerances)
    for partition in np.unique(markers.coordinator_partition[is_lonely]):
        covered = coordinator(int(partition))
        if covered.read_until_ms == ALWAYS:
            continue
        ended = _ended(markers, promises, found, int(partition))
        proven_until = _proven_until(ended, promises, found, tolerances.clock_skew_ms)
        mine = is_lonely & (markers.coordinator_partition == partition)
        for one in np.flatnonzero(mine & (np.arange(len(mine)) > proven_until)):
            result[one] = _is_lived_through(
                int(one), ended, markers, promises, found, covered, tolerances.clock_skew_ms
            )
    return result


def _is_long_before_copy(ms: Longs, tolerances: Tolerances) -> Flags:
    """All files were copied later, by a clock that nobody put back before it."""
    started = tolerances.copy_started_ms
    if started is None:
        return np.zeros(len(ms), np.bool_)
    is_put_back = ms < np.maximum.accumulate(ms) - tolerances.clock_skew_ms
    return np.asarray((ms + tolerances.patience_ms <= started) & ~is_put_back)


def _ended(markers: Markers, promises: Promises, found: Alignment, partition: int) -> Longs:
    """Markers of a coordinator partition whose Complete* is in its file."""
    has = np.flatnonzero((found.promise >= 0) & (markers.coordinator_partition == partition))
    return np.asarray(has[promises.complete_ms[found.promise[has]] != OPEN_END])


def _proven_until(ended: Longs, promises: Promises, found: Alignment, skew_ms: int) -> int:
    """The last marker that its epoch names, or one of several that only times tell: the last may be others'.

    Behind a clock that was put back all may be.
    """
    whose = found.promise[ended]
    is_named, ms = promises.version[whose] == 2, promises.prepare_ms[whose]
    order = np.argsort(promises.prepare_offset[whose])
    is_timed = np.zeros(len(ended), np.bool_)
    is_timed[order] = ms[order] >= np.maximum.accumulate(ms[order]) - skew_ms
    named, timed = ended[is_named], ended[is_timed & ~is_named]
    last = int(named[-1]) if len(named) else -1
    return max(last, int(timed[-MIN_VOTERS]) if len(timed) >= MIN_VOTERS else -1)


def _is_lived_through(
    one: int,
    ended: Longs,
    markers: Markers,
    promises: Promises,
    found: Alignment,
    covered: CoordinatorCoverage,
    skew_ms: int,
) -> bool:
    """From the last marker before it on, whose two clocks agree, its coordinator certainly wrote for longer."""
    before = int(np.searchsorted(ended, one))
    if not before:
        return False
    last, whose = ended[before - 1], found.promise[ended[before - 1]]
    passed_ms = int(markers.ms[one] - markers.ms[last])
    ahead_ms = markers.ms[last] - promises.prepare_ms[whose]
    behind_ms = promises.complete_ms[whose] - markers.ms[last]
    alive = covered.alive.get(int(promises.complete_leader_epoch[whose]))
    if passed_ms < 0 or min(ahead_ms, behind_ms) < -skew_ms or alive is None:
        return False
    return waited_ms(alive, int(promises.complete_ms[whose])) > passed_ms + skew_ms


def overtaken(late: Flags, partition: Longs, prepared: Longs, completed: Longs) -> Flags:
    """Late markers that follow the marker of a transaction whose Prepare* lies behind their Complete*.

    Then order tells, and no clock: a broker's may have been set just before, and the other's just behind.

    Args:
        late: By marker in offset order: its time is behind Complete* of its transaction.
        partition: Coordinator partition of each.
        prepared: Offset there of its transaction's Prepare*.
        completed: Offset there of its Complete*.
    """
    result = np.zeros(len(late), np.bool_)
    on_time = np.where(late, NONE, prepared)
    for one in np.unique(partition[late]):
        mine = np.flatnonzero(partition == one)
        result[mine] = np.maximum.accumulate(on_time[mine]) > completed[mine]
    return result & late


def have_rivals(
    at: Longs,
    whose: Longs,
    late: Flags,
    markers: Markers,
    promises: Promises,
    found: Alignment,
    tolerances: Tolerances,
) -> Flags:
    """Late markers of transactions for which another one came in time that is nobody else's: either may be the marker.

    Args:
        at: Markers.
        whose: The transaction of each.
        late: Which of them are late.
        markers: In offset order.
        promises: The transactions that list the partition.
        found: Which marker is whose.
        tolerances: Configured patience.
    """
    result = np.zeros(len(at), np.bool_)
    free = np.flatnonzero(found.promise < 0)
    for place in np.flatnonzero(late):
        one, promise = at[place], whose[place]
        is_alike = markers.producer_id[free] == markers.producer_id[one]
        is_alike &= markers.epoch[free] == markers.epoch[one]
        is_alike &= may_end(
            promises,
            np.full(len(free), promise),
            markers.ms[free],
            markers.type[free],
            tolerances.clock_skew_ms,
        )
        result[place] = is_alike.any()
    return result
