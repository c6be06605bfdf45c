"""How far a reader of committed data gets in one partition, and who holds it up.

The last stable offset is the first offset of the oldest transaction that is open, or whose marker is not yet below the
high watermark; else the high watermark. Where the start of the log has passed it, it is there.

Source: `ProducerStateManager.firstUnstableOffset` and `lastStableOffset`, `UnifiedLog.fetchLastStableOffsetMetadata`
and `maybeIncrementFirstUnstableOffset`, `AbortedTxn`; KIP-98.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from pipeline.replay.producer import Run
from pipeline.wire.batch import CONTROL_ABORT
from pipeline.wire.txn_index import AbortedTxn

_VERSION = 0
_NEVER = 2**63


class Pin(NamedTuple):
    """A stretch of the log's growth during which one run held the last stable offset.

    Attributes:
        producer_id: whose run it was.
        run_number: which of its runs.
        last_stable_offset: first offset of the run: where the last stable offset stood.
        pinned_from_offset: the run's first offset, or the marker of the last run that had begun before it, if that is
            greater: from there on it was the oldest open one.
        pinned_to_offset: its marker; None while it still pins.
    """

    producer_id: int
    run_number: int
    last_stable_offset: int
    pinned_from_offset: int
    pinned_to_offset: int | None


def _transactional(runs: Iterable[Run]) -> list[tuple[int, Run]]:
    """Transactional runs with their first offset, in its order."""
    found = [
        (run.first_offset, run)
        for run in runs
        if run.is_transactional and run.first_offset is not None
    ]
    return sorted(found, key=lambda pair: pair[0])


def pins(runs: Iterable[Run]) -> list[Pin]:
    """Gives who held the last stable offset, in log order; runs that never did are left out.

    Args:
        runs: All runs of one replica, in any order.
    """
    found: list[Pin] = []
    ended = -1
    for first_offset, run in _transactional(runs):
        start = max(first_offset, ended)
        if run.marker_offset is None:
            found.append(Pin(run.producer_id, run.run_number, first_offset, start, None))
            break
        if start < run.marker_offset:
            found.append(
                Pin(run.producer_id, run.run_number, first_offset, start, run.marker_offset)
            )
        ended = max(ended, run.marker_offset)
    return found


def last_stable_offset(
    runs: Iterable[Run],
    high_watermark: int | None,
    log_end_offset: int,
    log_start_offset: int = 0,
) -> int:
    """Gives the last stable offset at the end of the log.

    Args:
        runs: All runs of one replica, in any order.
        high_watermark: None when unknown: then everything up to the log end counts as replicated.
        log_end_offset: Offset behind the last batch.
        log_start_offset: Offset below which DeleteRecords or retention took the records, from files or not.
    """
    end = log_end_offset if high_watermark is None else min(high_watermark, log_end_offset)
    unstable = (
        first_offset
        for first_offset, run in _transactional(runs)
        if run.marker_offset is None or run.marker_offset >= end
    )
    return min(end, max(log_start_offset, next(unstable, end)))


def aborted(runs: Iterable[Run]) -> list[AbortedTxn]:
    """Gives the aborted transactions with data as the broker's `.txnindex` files list them, by marker.

    `last_stable_offset` is the first offset of the oldest transaction of another producer that was open at the marker,
    else the offset behind the marker.

    Args:
        runs: All runs of one replica, in any order.
    """
    ordered = _transactional(runs)
    by_marker = sorted(
        (run.marker_offset, first, run) for first, run in ordered if run.marker_offset is not None
    )
    found: list[AbortedTxn] = []
    is_open: list[tuple[int, int]] = []
    begun = 0
    for marker_offset, first_offset, run in by_marker:
        while begun < len(ordered) and ordered[begun][0] < marker_offset:
            other = ordered[begun][1].marker_offset
            heappush(is_open, (ordered[begun][0], _NEVER if other is None else other))
            begun += 1
        while is_open and is_open[0][1] <= marker_offset:
            heappop(is_open)
        if run.marker_type == CONTROL_ABORT:
            stable = is_open[0][0] if is_open else marker_offset + 1
            found.append(AbortedTxn(_VERSION, run.producer_id, first_offset, marker_offset, stable))
    return found
