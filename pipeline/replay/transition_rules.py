"""Which steps of a transactional id the coordinator can take.

Sources: `TransactionMetadata.prepareTransition` and `completeTransitionTo`, `TransactionCoordinator`, KIP-98, KIP-360,
KIP-890.
"""

from __future__ import annotations

from pipeline.replay.transaction_state import (
    EMPTY,
    LEGAL_PREVIOUS,
    MAX_EPOCH,
    ONGOING,
    PREPARE,
    PREPARE_ABORT,
    Record,
    listed_set,
    state_name,
)


def problem(last: Record, record: Record, version: int) -> tuple[str, str] | None:
    """Class and explanation of the rule that `last` -> `record` offends, or None."""
    state = record.state
    if state is None:
        if last.state in (ONGOING, *PREPARE):
            return "illegal_transition", f"tombstone while {state_name(last.state)}"
        return None
    if last.state not in LEGAL_PREVIOUS[state]:
        return "illegal_transition", f"{state_name(last.state)} -> {state_name(state)}"
    if state == PREPARE_ABORT and last.state != ONGOING and version < 2:
        return (
            "illegal_transition",
            f"{state_name(last.state)} -> PrepareAbort needs transaction.version 2",
        )
    problem = _epoch_problem(last, record, version)
    if problem is not None:
        return problem
    if state in PREPARE and last.state == ONGOING and record.partitions != last.partitions:
        return "partition_set_shrank", "Prepare* has to list what Ongoing listed"
    is_more = state == ONGOING and last.state == ONGOING and record.partitions != last.partitions
    if is_more and not listed_set(last) <= listed_set(record):
        return "partition_set_shrank", "a later Ongoing has to list what the earlier one listed"
    if state != EMPTY and record.txn_timeout_ms != last.txn_timeout_ms:
        detail = (
            f"timeout {last.txn_timeout_ms} ms -> {record.txn_timeout_ms} ms outside InitProducerId"
        )
        return "timeout_changed", detail
    return None


def _epoch_problem(last: Record, record: Record, version: int) -> tuple[str, str] | None:
    state, same_id = record.state, record.producer_id == last.producer_id
    delta = record.producer_epoch - last.producer_epoch
    if state == EMPTY:
        # Only a fence takes the last epoch; InitProducerId takes another producer id instead.
        is_next = delta >= 0 and record.producer_epoch < MAX_EPOCH
        is_legal = is_next if same_id else record.producer_epoch == 0
    elif state == ONGOING:
        is_legal = same_id and delta == 0
    elif state in PREPARE:
        if same_id and delta == 2 and version == 2 and state == PREPARE_ABORT:
            return "double_epoch_bump", _epoch_text(last, record)
        # Under version 0 and 1 a fence may jump: failed attempts burn epochs in memory (KAFKA-9666).
        is_burnt = version < 2 and state == PREPARE_ABORT and delta >= 0
        is_exhausted = last.producer_epoch >= MAX_EPOCH - 1 and delta in (0, 1)
        is_legal = same_id and (delta == (1 if version == 2 else 0) or is_burnt or is_exhausted)
    else:
        rotated = record.producer_epoch == 0 and last.producer_epoch == MAX_EPOCH
        known = record.producer_id == last.next_producer_id or last.next_producer_id in (None, -1)
        is_legal = (same_id and delta == 0) or (not same_id and rotated and known)
    return None if is_legal else ("epoch_rule", _epoch_text(last, record))


def _epoch_text(last: Record, record: Record) -> str:
    return (
        f"producer {last.producer_id} epoch {last.producer_epoch} {state_name(last.state)} -> "
        f"producer {record.producer_id} epoch {record.producer_epoch} {state_name(record.state)}"
    )
