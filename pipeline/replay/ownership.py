"""Runs of a data partition, their owners, and what a marker is that no transaction of its coordinator holds.

Presence convicts, absence rarely. What cannot be judged is `in_flight` or `context`, never clean and never guilty.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.replay.coverage import NEVER, CoordinatorCoverage, Tolerances
from pipeline.replay.promises import Promise

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
