"""Which markers without a transaction are evidence: the coordinator's file certainly goes on behind them.

Order tells without clocks: Complete* is written when all markers are (Kafka:
`TransactionMarkerChannelManager.maybeWriteTxnCompletion`). So a coordinator's file that holds the Complete* of a marker
holds the Prepare* of every marker before it in the partition. Behind the last such marker only clocks are left, and
both may have been set since.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pipeline.replay.alignment import Alignment
from pipeline.replay.alive import waited_ms
from pipeline.replay.clock import MIN_VOTERS
from pipeline.replay.coverage import ALWAYS, CoordinatorCoverage
from pipeline.replay.intervals import OPEN_END, Longs, Markers, Promises

Flags = NDArray[np.bool_]


def borne_out(
    markers: Markers,
    promises: Promises,
    found: Alignment,
    is_evidence: Flags,
    coordinator: Callable[[int], CoordinatorCoverage],
    skew_ms: int,
) -> Flags:
    """Which of these markers are evidence whatever the clocks did.

    Args:
        markers: In offset order.
        promises: The transactions that list the partition.
        found: Which marker is whose.
        is_evidence: By marker: the coordinator's file holds its time, by the clocks.
        coordinator: Number of a coordinator partition -> how far it was read.
        skew_ms: Largest difference between two brokers' clocks.
    """
    result = is_evidence.copy()
    is_lonely = is_evidence & (found.promise < 0) & ~found.is_ambiguous & ~found.is_untimed
    for partition in np.unique(markers.coordinator_partition[is_lonely]):
        covered = coordinator(int(partition))
        if covered.read_until_ms == ALWAYS:
            continue
        ended = _ended(markers, promises, found, int(partition))
        proven_until = _proven_until(ended, promises, found)
        mine = is_lonely & (markers.coordinator_partition == partition)
        for one in np.flatnonzero(mine & (np.arange(len(mine)) > proven_until)):
            result[one] = _is_lived_through(
                int(one), ended, markers, promises, found, covered, skew_ms
            )
    return result


def _ended(markers: Markers, promises: Promises, found: Alignment, partition: int) -> Longs:
    """Markers of a coordinator partition whose Complete* is in its file."""
    has = np.flatnonzero((found.promise >= 0) & (markers.coordinator_partition == partition))
    return np.asarray(has[promises.complete_ms[found.promise[has]] != OPEN_END])


def _proven_until(ended: Longs, promises: Promises, found: Alignment) -> int:
    """The last marker that its epoch names, or one of several that only times tell: the last may be others'."""
    is_named = promises.version[found.promise[ended]] == 2
    named, timed = ended[is_named], ended[~is_named]
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
