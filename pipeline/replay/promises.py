"""Judges what a coordinator promised a data partition: for each transaction that lists it, a marker.

Absence rarely convicts: each status that rests on something missing first asks how far the file that would hold it was
read (`pipeline.replay.coverage`).
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.replay.alive import Alive, waited_ms
from pipeline.replay.coverage import (
    ALWAYS,
    NEVER,
    CoordinatorCoverage,
    PartitionCoverage,
    Tolerances,
)
from pipeline.replay.transaction_state import ONGOING, PREPARE


class Promise(NamedTuple):
    """One transaction that lists the partition, with its first marker there.

    `has_ambiguous`: a marker that fits it fits another transaction as well, so that nobody knows whose it is.
    """

    transactional_id: str
    transaction_offset: int
    coordinator_partition: int
    epoch: int
    prepare_epoch: int | None
    state: int
    outcome: int | None
    version: int
    timeout_ms: int
    start_ms: int | None
    added_ms: int | None
    prepare_ms: int | None
    complete_ms: int | None
    prepare_leader_epoch: int | None
    has_marker: bool
    leader_epoch: int | None
    has_ambiguous: bool = False
    complete_offset: int | None = None
    complete_leader_epoch: int | None = None


class Marked(NamedTuple):
    """A Prepare* whose marker lies in the partition: what was complete before it lies there too, whatever clocks say.

    Markers precede Complete* (Kafka: `TransactionMarkerChannelManager.maybeWriteTxnCompletion`).
    """

    prepare_offset: int
    prepare_ms: int


def promise_status(
    promise: Promise,
    *,
    partition: PartitionCoverage,
    coordinator: CoordinatorCoverage,
    history_from_ms: int,
    has_open_run: bool,
    tolerances: Tolerances,
    kept_ms: int | None = None,
    marked: Marked | None = None,
    marked_until_ms: int = NEVER,
) -> tuple[str, str | None]:
    """Status of a promise and why: present, ongoing, ambiguous, missing, prepare_stuck, in_flight, context, not_copied.

    Args:
        promise: The promise.
        partition: Coverage of the data partition.
        coordinator: Coverage of the coordinator's partition.
        history_from_ms: First broker-stamped time of the partition's complete history.
        has_open_run: Data of this producer lie open in complete history: the partition was there.
        tolerances: Configured patience.
        kept_ms: Earliest Complete* of a transaction that the same coordinator wrote and whose marker lies in
            complete history; on the clock that `promise.added_ms` was read from.
        marked: Newest decision of the same coordinator partition whose marker lies in the partition.
        marked_until_ms: Newest one of any coordinator partition.
    """
    if promise.has_marker:
        return "present", None
    if promise.state == ONGOING:
        return "ongoing", None
    if promise.has_ambiguous:
        return "ambiguous", "a marker fits this transaction and another one"
    if not partition.is_copied:
        return "not_copied", "no replica of the partition is in the copy"
    started_ms = promise.added_ms if promise.added_ms is not None else promise.prepare_ms
    is_young = started_ms is None or (
        history_from_ms + tolerances.clock_skew_ms >= started_ms
        and (kept_ms is None or kept_ms >= started_ms)
    )
    # Prepared, it is its producer's only one, and open data are its data; complete, another may follow.
    if is_young and not (has_open_run and promise.state in PREPARE):
        return "context", "nothing proves that the partition was there before the transaction"
    if promise.state in PREPARE:
        epoch = promise.prepare_leader_epoch
        alive = None if epoch is None else coordinator.alive.get(epoch)
        if promise.prepare_ms is None or alive is None:
            return "in_flight", "no time to judge by"
        waited = waited_ms(alive, promise.prepare_ms)
        is_read = _is_read_beyond(promise.prepare_ms, partition, alive, marked_until_ms, tolerances)
        if marked is not None:
            until_marked = waited_ms(alive, promise.prepare_ms, marked.prepare_ms)
            is_read |= until_marked > tolerances.patience_ms
        if not is_read and not partition.is_crash_image:
            return "in_flight", "the partition may have been copied before its marker came"
        if waited > tolerances.patience_ms:
            return "prepare_stuck", f"its coordinator went on for {waited} ms"
        return "in_flight", f"its coordinator was seen for {waited} ms after Prepare*"
    if promise.complete_ms is None:
        return "in_flight", "no time to judge by"
    ended_at = promise.complete_offset
    if marked is not None and ended_at is not None and marked.prepare_offset > ended_at:
        return "missing", "Complete* was written, and the marker of a later decision came"
    epoch = promise.complete_leader_epoch
    alive = None if epoch is None else coordinator.alive.get(epoch)
    if _is_read_beyond(promise.complete_ms, partition, alive, marked_until_ms, tolerances):
        return "missing", "Complete* was written and the partition was read beyond it"
    return "in_flight", "the partition was not read far enough beyond Complete*"


def _is_read_beyond(
    event_ms: int,
    partition: PartitionCoverage,
    alive: Alive | None,
    marked_until_ms: int,
    tolerances: Tolerances,
) -> bool:
    """The partition was read beyond an event of a coordinator.

    The clock of a leader that runs on may be anything. So the time of a coordinator whose marker lies in the partition
    has to say so too, and compares only with one that nobody put back.
    """
    if not read_beyond(event_ms, partition.read_until_ms, tolerances):
        return False
    if partition.read_until_ms == ALWAYS or partition.stamps or alive is None:
        return True
    if read_beyond(event_ms, NEVER, tolerances):
        return True
    return not alive.is_put_back and read_beyond(event_ms, marked_until_ms, tolerances)


def read_beyond(event_ms: int, read_until_ms: int, tolerances: Tolerances) -> bool:
    """A file was read so far, or copied so late, that what follows an event would be in it."""
    if read_until_ms >= event_ms + tolerances.patience_ms:
        return True
    started = tolerances.copy_started_ms
    return started is not None and event_ms + tolerances.patience_ms <= started
