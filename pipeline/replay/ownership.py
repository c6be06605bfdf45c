"""Judges the markers and promises of one data partition once markers and transactions are aligned.

Presence convicts, absence rarely: every class that rests on something missing first asks how far
the file that would hold
it was read (`pipeline.replay.coverage`). What cannot be judged is `in_flight` or `context`, never
clean and never guilty.
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

ALIGNMENTS = {
    "none": "no marker",
    "aligned": "the marker of its transaction",
    "resent": "another marker of a transaction that has one already (retry, coordinator failover)",
    "ambiguous": "two transactions fit the marker: not judged",
    "other_clock": "by the clocks it fits no transaction, nor do its neighbours: clocks too far apart, not judged",
    "in_flight": "later than the coordinator's file reaches",
    "context": "earlier than the coordinator's complete history, or below the partition's",
    "not_copied": "the coordinator's partition is not in the copy",
    "unreadable": "the marker's record is damaged or was removed by the cleaner",
    "torn": "ends a transaction the other way than its coordinator did",
    "wrong_outcome": "type differs from the decision of its transaction",
    "wrong_epoch": "epoch differs from the decision of its transaction",
    "early_completion": "written after the coordinator had declared the transaction complete",
    "manual_abort": "ABORT without any coordinator transaction: an operator's",
    "unexpected": "COMMIT without any coordinator transaction",
}


class Run(NamedTuple):
    """A row of `partition_txn` before it is judged, with what lies around it in the partition.

    `before_ms` and `after_ms` bound the time of its first batch: the last marker before it and the
    first one behind it in
    this partition, whichever producer's; None where there is none. `clock_low_ms` and `clock_high_ms` bound by how
    much its marker's clock is ahead of the coordinator's.
    """

    producer_id: int
    first_offset: int | None
    min_epoch: int | None
    max_epoch: int | None
    is_open: bool
    is_transactional: bool
    first_append_ms: int | None
    marker_offset: int | None
    marker_ms: int | None
    marker_type: int | None
    marker_epoch: int | None
    before_ms: int | None
    after_ms: int | None
    previous_epoch: int | None
    last_ms: int | None
    clock_low_ms: int
    clock_high_ms: int


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


class OwnerState(NamedTuple):
    """Last regular step of the id that holds the run's producer id."""

    transactional_id: str
    coordinator_partition: int
    is_current: bool
    state: int | None
    producer_epoch: int | None
    version: int
    append_ms: int | None


class Judgement(NamedTuple):
    """Class of a run, of its write outside a transaction, of its zombie write; and why."""

    judgement: str | None
    outside: str | None
    zombie: str | None
    reason: str | None


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


def judge_unaligned(
    marker_ms: int | None,
    marker_type: int | None,
    marker_epoch: int | None,
    *,
    promises: list[Promise],
    coordinator: CoordinatorCoverage,
    is_below_history: bool,
    has_data: bool,
    before_ms: int | None,
    ahead_ms: tuple[int, int],
    whole_from_ms: int,
    tolerances: Tolerances,
) -> str:
    """Alignment of a marker that no transaction's interval holds.

    Args:
        marker_ms: Its time, by the clock of the partition's leader.
        marker_type: 0 ABORT, 1 COMMIT; None when unreadable.
        marker_epoch: Its producer epoch.
        promises: All promises of its producer id to this partition.
        coordinator: Coverage of the owner's coordinator partition.
        is_below_history: It lies below the partition's complete history.
        has_data: It ends a run of records; one that ends none tears nothing.
        before_ms: Time of the last marker before its data; None where there is none.
        ahead_ms: By how much its clock is ahead of the coordinator's: least, greatest.
        whole_from_ms: From then on no marker of the partition can have been cut away.
        tolerances: Configured patience.
    """
    if marker_type not in (0, 1) or marker_ms is None:
        return "unreadable"
    if is_below_history:
        return "context"
    if not coordinator.is_read:
        return "not_copied"
    if not is_evidence(marker_ms, coordinator, tolerances):
        early = marker_ms < coordinator.frontier_ms + tolerances.clock_skew_ms
        return "context" if early else "in_flight"
    if _may_be_cut(marker_ms, before_ms if has_data else None, promises, coordinator, tolerances):
        return "context"
    for promise in promises:
        least, greatest = ahead_ms
        is_inside = promise.added_ms is not None and promise.added_ms <= marker_ms - greatest
        is_inside = is_inside and (
            promise.prepare_ms is None or marker_ms - least < promise.prepare_ms
        )
        if is_inside and marker_epoch == promise.epoch:
            if has_data and promise.outcome is not None and promise.outcome != marker_type:
                return "torn"
            return "manual_abort" if marker_type == 0 else "unexpected"
    if marker_type == 0:
        return "manual_abort"
    late = any(
        is_late_marker(marker_ms, marker_type, marker_epoch, promise, whole_from_ms, tolerances)
        for promise in promises
    )
    return "early_completion" if late else "unexpected"


def _may_be_cut(
    marker_ms: int,
    begun_ms: int | None,
    promises: list[Promise],
    coordinator: CoordinatorCoverage,
    tolerances: Tolerances,
) -> bool:
    """Its Prepare* may lie before the coordinator's complete history, however late the marker came.

    Not so if its data, which precede Prepare*, came later than that, nor if another transaction of the producer did.
    """
    if coordinator.frontier_ms == NEVER:
        return False
    if begun_ms is not None and begun_ms > coordinator.frontier_ms + tolerances.clock_skew_ms:
        return False
    started = (one.prepare_ms if one.added_ms is None else one.added_ms for one in promises)
    return not any(ms is not None and ms <= marker_ms for ms in started)


def is_late_marker(
    marker_ms: int,
    marker_type: int,
    marker_epoch: int | None,
    promise: Promise,
    whole_from_ms: int,
    tolerances: Tolerances,
) -> bool:
    """A COMMIT behind Complete* of a transaction that decided so and that has no other marker here."""
    return (
        marker_type == 1
        and promise.outcome == marker_type
        and promise.prepare_epoch == marker_epoch
        and not promise.has_marker
        and not promise.has_ambiguous
        and promise.prepare_ms is not None
        and promise.prepare_ms - tolerances.clock_skew_ms > whole_from_ms
        and promise.complete_ms is not None
        and promise.complete_ms < marker_ms
    )


def is_evidence(marker_ms: int, coordinator: CoordinatorCoverage, tolerances: Tolerances) -> bool:
    """The coordinator's complete history covers that time on either side of the clock skew."""
    skew = tolerances.clock_skew_ms
    return (
        coordinator.is_read
        and marker_ms > coordinator.frontier_ms + skew
        and marker_ms < coordinator.read_until_ms - skew
    )
