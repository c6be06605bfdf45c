"""Judges the runs, markers and promises of one data partition once markers and transactions are aligned.

Presence convicts, absence rarely: every class that rests on something missing first asks how far
the file that would hold
it was read (`pipeline.replay.coverage`). What cannot be judged is `in_flight` or `context`, never
clean and never guilty.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.replay.coordinator import COMPLETE, ONGOING, PREPARE
from pipeline.replay.coverage import (
    ALWAYS,
    NEVER,
    CoordinatorCoverage,
    PartitionCoverage,
    Tolerances,
    alive_ms,
)
from schemas.codes import TWO_PHASE_TIMEOUT_MS

ALIGNMENTS = {
    "none": "no marker",
    "aligned": "the marker of its transaction",
    "resent": "another marker of a transaction that has one already (retry, coordinator failover)",
    "ambiguous": "two transactions fit the marker: not judged",
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
        alive = alive_ms(coordinator, promise.prepare_leader_epoch)
        if promise.prepare_ms is None or alive is None:
            return "in_flight", "no time to judge by"
        waited = alive - promise.prepare_ms
        is_read = _read_beyond(promise.prepare_ms, partition.read_until_ms, tolerances)
        if not is_read and not partition.is_crash_image:
            return "in_flight", "the partition may have been copied before its marker came"
        if waited > tolerances.patience_ms:
            return "prepare_stuck", f"its coordinator went on for {waited} ms"
        return "in_flight", f"its coordinator was seen for {waited} ms after Prepare*"
    if promise.complete_ms is None:
        return "in_flight", "no time to judge by"
    if _read_beyond(promise.complete_ms, partition.read_until_ms, tolerances):
        return "missing", "Complete* was written and the partition was read beyond it"
    return "in_flight", "the partition was not read far enough beyond Complete*"


def _read_beyond(event_ms: int, read_until_ms: int, tolerances: Tolerances) -> bool:
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
    for promise in promises:
        is_inside = promise.added_ms is not None and promise.added_ms <= marker_ms
        is_inside = is_inside and (promise.prepare_ms is None or marker_ms < promise.prepare_ms)
        if is_inside and marker_epoch == promise.epoch:
            if promise.outcome is not None and promise.outcome != marker_type:
                return "torn"
            return "manual_abort" if marker_type == 0 else "unexpected"
    if marker_type == 0:
        return "manual_abort"
    late = any(
        is_late_marker(marker_ms, marker_type, marker_epoch, promise, whole_from_ms, tolerances)
        for promise in promises
    )
    return "early_completion" if late else "unexpected"


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


def judge_run(
    run: Run,
    alignment: str,
    aligned: Promise | None,
    promises: list[Promise],
    owner: OwnerState | None,
    *,
    partition: PartitionCoverage,
    coordinator: CoordinatorCoverage,
    everything: CoordinatorCoverage,
    statuses: dict[int, str],
    tolerances: Tolerances,
) -> Judgement:
    """Class of one run.

    Args:
        run: The run.
        alignment: Alignment of its closing marker (`ALIGNMENTS`).
        aligned: The promise that its marker fulfils.
        promises: All promises of its producer id to this partition, by time.
        owner: Last state of the id that holds its producer id.
        partition: Coverage of this partition.
        coordinator: Coverage of the owner's coordinator partition (unknown owner: of all together).
        everything: Coverage of all coordinator partitions together.
        statuses: Index in `promises` -> status (`promise_status`).
        tolerances: Configured patience.
    """
    if not run.is_transactional or run.first_offset is None:
        return Judgement(None, None, None, None)
    if run.first_offset < partition.history_start_offset:
        is_open = "context" if run.is_open else None
        return Judgement(is_open, None, None, "begins below the partition's complete history")
    zombie = _zombie(run, aligned)
    if not run.is_open:
        outside = None
        is_lonely = alignment in ("manual_abort", "unexpected")
        if is_lonely and owner is not None and run.marker_ms is not None:
            outside = _outside_closed(run, promises, coordinator, tolerances)
        elif aligned is not None:
            outside = _swallowed(run, aligned, tolerances)
        return Judgement(None, outside, zombie, None)
    return _judge_open(
        run, promises, owner, zombie, partition, coordinator, everything, statuses, tolerances
    )


def _zombie(run: Run, aligned: Promise | None) -> str | None:
    """Two epochs in one run, or a run that the marker of a later epoch's transaction closed.

    A transaction whose Ongoing is gone began perhaps one epoch below its Prepare* (version 2, a fence).
    """
    assert run.max_epoch is not None
    assert run.min_epoch is not None
    if run.min_epoch < run.max_epoch:
        return "after_fence"
    if aligned is not None and aligned.added_ms is not None and aligned.epoch > run.max_epoch:
        return "after_fence"
    return None


def _outside_closed(
    run: Run, promises: list[Promise], coordinator: CoordinatorCoverage, tolerances: Tolerances
) -> str | None:
    assert run.marker_ms is not None
    if not _history_known(run, coordinator, tolerances):
        return None
    earliest, latest = run.marker_ms - run.clock_high_ms, run.marker_ms - run.clock_low_ms
    legal = any(
        promise.added_ms is not None
        and promise.added_ms <= latest
        and (promise.prepare_ms is None or promise.prepare_ms >= earliest)
        for promise in promises
    )
    return None if legal else _outside_class(run)


def _outside_class(run: Run, owner_state: int | None = None) -> str:
    """Late data of a producer whose marker came already, or a partition that was never added."""
    assert run.max_epoch is not None
    came = run.previous_epoch is not None and run.previous_epoch >= run.max_epoch
    return "after_completion" if came and owner_state != ONGOING else "partition_not_added"


def _swallowed(run: Run, aligned: Promise, tolerances: Tolerances) -> str | None:
    """LogAppendTime only: appended before the transaction that closed it had added the partition (KIP-890)."""
    if run.first_append_ms is None or aligned.added_ms is None:
        return None
    is_early = run.first_append_ms < aligned.added_ms - tolerances.clock_skew_ms
    return "swallowed" if is_early else None


def _history_known(run: Run, coordinator: CoordinatorCoverage, tolerances: Tolerances) -> bool:
    """The coordinator's history is complete since before the run began."""
    if coordinator.frontier_ms == NEVER:
        return True
    return (
        run.before_ms is not None
        and coordinator.frontier_ms + tolerances.clock_skew_ms < run.before_ms
    )


def _judge_open(
    run: Run,
    promises: list[Promise],
    owner: OwnerState | None,
    zombie: str | None,
    partition: PartitionCoverage,
    coordinator: CoordinatorCoverage,
    everything: CoordinatorCoverage,
    statuses: dict[int, str],
    tolerances: Tolerances,
) -> Judgement:
    assert run.max_epoch is not None
    for number, promise in reversed(list(enumerate(promises))):
        if promise.has_marker or not _may_own(promise, run.max_epoch):
            continue
        if promise.state == ONGOING:
            return _ongoing(run, promise, zombie, coordinator, tolerances)
        status = statuses[number]
        if promise.state in PREPARE:
            label = "prepare_stuck" if status == "prepare_stuck" else "in_flight"
            return Judgement(label, None, zombie, f"{promise.transactional_id}: {status}")
        if status != "missing" or not _is_seen_late_enough(run, partition, coordinator, tolerances):
            return Judgement(
                "in_flight", None, zombie, f"its transaction is complete, marker {status}"
            )
        is_behind = owner is not None and _is_moved_on(owner, run.max_epoch)
        label = "epoch_mismatch" if is_behind else "not_in_transaction"
        return Judgement(label, None, zombie, "its transaction is complete, no marker came")
    if owner is None:
        return _unowned(run, zombie, partition, everything, tolerances)
    if not coordinator.is_read:
        return _not_copied(run, zombie, tolerances, "its coordinator partition is not in the copy")
    if (
        owner.is_current
        and owner.producer_epoch is not None
        and owner.producer_epoch < run.max_epoch
    ):
        return Judgement("in_flight", None, zombie, "the coordinator's file is older than the data")
    is_moved_on = _is_moved_on(owner, run.max_epoch)
    # Complete from offset 0, the file holds every transaction of the old epoch: order proves, no time is asked.
    if not (is_moved_on and coordinator.frontier_ms == NEVER):
        reason = _unprovable(run, owner, partition, coordinator, tolerances)
        if reason is not None:
            return Judgement("in_flight", None, zombie, reason)
    is_known = _history_known(run, coordinator, tolerances)
    outside = _outside_class(run, owner.state) if is_known else None
    if is_moved_on:
        return Judgement("epoch_mismatch", None, zombie or "after_fence", _owner_text(owner))
    return Judgement("not_in_transaction", outside, zombie, _owner_text(owner))


def _may_own(promise: Promise, epoch: int) -> bool:
    """The epoch is the transaction's; one whose Ongoing is gone shows only the epoch that its end bumped, perhaps."""
    return promise.epoch == epoch or (promise.added_ms is None and promise.epoch == epoch + 1)


def _is_moved_on(owner: OwnerState, run_epoch: int) -> bool:
    """The id is past the run's epoch, and not merely by the bump that ends a version-2 transaction."""
    if owner.state is None:
        return False
    if not owner.is_current:
        return True
    if owner.producer_epoch is None:
        return True
    own_end = owner.version == 2 and owner.state in COMPLETE
    return owner.producer_epoch > run_epoch + (1 if own_end else 0)


def _owner_text(owner: OwnerState) -> str:
    return f"owner state {owner.state}, epoch {owner.producer_epoch}"


def _ongoing(
    run: Run,
    promise: Promise,
    zombie: str | None,
    coordinator: CoordinatorCoverage,
    tolerances: Tolerances,
) -> Judgement:
    """A legally open run, unless a coordinator that was provably alive let its deadline pass."""
    if promise.timeout_ms == TWO_PHASE_TIMEOUT_MS:
        return Judgement("open", None, zombie, "two-phase commit: no deadline")
    alive = alive_ms(coordinator, promise.leader_epoch)
    if alive is not None and tolerances.as_of_ms is not None:
        alive = min(alive, tolerances.as_of_ms)
    start = promise.start_ms if promise.start_ms is not None else promise.added_ms
    if alive is None or start is None:
        return Judgement("open", None, zombie, "listed by its coordinator")
    late = alive - start - promise.timeout_ms - tolerances.abort_scan_ms - tolerances.patience_ms
    if late > 0:
        return Judgement(
            "past_deadline", None, zombie, f"coordinator alive {alive - start} ms after its start"
        )
    return Judgement("open", None, zombie, "listed by its coordinator, deadline not reached")


def _unowned(
    run: Run,
    zombie: str | None,
    partition: PartitionCoverage,
    everything: CoordinatorCoverage,
    tolerances: Tolerances,
) -> Judgement:
    if not everything.is_read:
        return _not_copied(
            run, zombie, tolerances, "not every coordinator partition is in the copy"
        )
    if not _history_known(run, everything, tolerances):
        return _not_copied(
            run, zombie, tolerances, "the coordinator's history was cut since it began"
        )
    if not _is_seen_late_enough(run, partition, everything, tolerances):
        return Judgement("in_flight", None, zombie, "files do not reach far enough beyond it")
    return Judgement("orphan_producer", None, zombie, "no transactional id holds the producer id")


def _not_copied(run: Run, zombie: str | None, tolerances: Tolerances, reason: str) -> Judgement:
    behind = 0
    if run.after_ms is not None and run.last_ms is not None:
        behind = run.last_ms - run.after_ms
    limit = tolerances.transaction_max_timeout_ms + tolerances.late_buffer_ms
    label = "owner_not_copied_late" if behind > limit else "owner_not_copied"
    return Judgement(label, None, zombie, f"{reason}; open for at least {behind} ms")


def _is_seen_late_enough(
    run: Run,
    partition: PartitionCoverage,
    coordinator: CoordinatorCoverage,
    tolerances: Tolerances,
) -> bool:
    """Both files reach beyond the run's first batch by grace and skew, or the copy is of one instant."""
    if partition.is_one_instant and coordinator.read_until_ms == ALWAYS:
        return True
    if run.after_ms is None:
        return False
    return _read_beyond(run.after_ms, partition.read_until_ms, tolerances) and _read_beyond(
        run.after_ms, coordinator.read_until_ms, tolerances
    )


def _unprovable(
    run: Run,
    owner: OwnerState,
    partition: PartitionCoverage,
    coordinator: CoordinatorCoverage,
    tolerances: Tolerances,
) -> str | None:
    """Why the missing transaction proves nothing yet; None when it does."""
    if not _is_seen_late_enough(run, partition, coordinator, tolerances):
        return "files do not reach far enough beyond it"
    if partition.is_one_instant and coordinator.read_until_ms == ALWAYS:
        return None
    if _history_known(run, coordinator, tolerances):
        return None
    if owner.append_ms is not None and _read_beyond(
        owner.append_ms, partition.read_until_ms, tolerances
    ):
        return None
    return "the transaction may have been cleaned away since"
