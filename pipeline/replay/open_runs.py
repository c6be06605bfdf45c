"""Judges the runs of one data partition: who owns an open one, and which were written outside a transaction.

What a run, a promise and an owner are, and when an absence counts, is in `pipeline.replay.ownership`.
"""

from __future__ import annotations

from pipeline.replay.alive import waited_ms
from pipeline.replay.coverage import (
    ALWAYS,
    NEVER,
    CoordinatorCoverage,
    PartitionCoverage,
    Tolerances,
)
from pipeline.replay.ownership import Judgement, OwnerState, Run
from pipeline.replay.promises import Promise, read_beyond
from pipeline.replay.transaction_state import COMPLETE, ONGOING, PREPARE
from schemas.codes import STATE_NAMES, TWO_PHASE_TIMEOUT_MS

LOST_COMMIT = "its transaction was committed, no marker came"
LOST_ABORT = "its transaction was aborted, no marker came"


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
    zombie = None if _lost_marker(run, promises, statuses) else _zombie(run, aligned)
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


def _lost_marker(run: Run, promises: list[Promise], statuses: dict[int, str]) -> bool:
    """A transaction of the run's first epoch never got its marker here: its data lie open before those of the next one.

    A coordinator skips a partition that has no leader at that moment, as if it were deleted (KAFKA-20734).
    """
    assert run.min_epoch is not None
    return any(
        _may_own(promise, run.min_epoch) and statuses.get(number) == "missing"
        for number, promise in enumerate(promises)
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
    """LogAppendTime only: appended before the transaction that closed it had added the partition (KIP-890).

    Its marker came before Complete*: so much is the leader's clock behind the coordinator's at least, if at all.
    """
    if run.first_append_ms is None or aligned.added_ms is None:
        return None
    if run.marker_ms is None or aligned.complete_ms is None:
        return None
    behind_ms = max(aligned.complete_ms - run.marker_ms, 0)
    is_early = run.first_append_ms + behind_ms < aligned.added_ms - tolerances.clock_skew_ms
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
            return Judgement(
                label,
                None,
                zombie,
                f"{promise.transactional_id} is in {STATE_NAMES[promise.state]}",
            )
        if status != "missing" or not _is_seen_late_enough(run, partition, coordinator, tolerances):
            return Judgement(
                "in_flight", None, zombie, f"its transaction is complete, marker {status}"
            )
        is_behind = owner is not None and _is_moved_on(owner, run.max_epoch)
        label = "epoch_mismatch" if is_behind else "not_in_transaction"
        return Judgement(label, None, zombie, LOST_COMMIT if promise.outcome == 1 else LOST_ABORT)
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
    state = "no known state" if owner.state is None else STATE_NAMES.get(owner.state, owner.state)
    return f"owner in {state}, epoch {owner.producer_epoch}"


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
    epoch = promise.leader_epoch
    alive = None if epoch is None else coordinator.alive.get(epoch)
    start = promise.start_ms if promise.start_ms is not None else promise.added_ms
    if alive is None or start is None:
        return Judgement("open", None, zombie, "listed by its coordinator")
    late = waited_ms(alive, start + promise.timeout_ms, tolerances.as_of_ms)
    if late > tolerances.abort_scan_ms + tolerances.patience_ms:
        return Judgement(
            "past_deadline", None, zombie, f"coordinator lived {late} ms beyond its deadline"
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
    return read_beyond(run.after_ms, partition.read_until_ms, tolerances) and read_beyond(
        run.after_ms, coordinator.settled_until_ms, tolerances
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
    if owner.append_ms is not None and read_beyond(
        owner.append_ms, partition.read_until_ms, tolerances
    ):
        return None
    return "the transaction may have been cleaned away since"
