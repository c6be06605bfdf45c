"""Appends to `__transaction_state` that failed, and what was written again.

When followers lag, the coordinator drops its pending state while the record stays in the log (Kafka:
`TransactionStateManager.appendTransactionToLog`).
"""

from __future__ import annotations

from pipeline.replay.transaction_state import ONGOING, PREPARE, PREPARE_ABORT, Record
from pipeline.replay.transition_rules import problem as rule_broken

FAILED_APPEND_MS = 1000
"""A failed append is known only after the followers were waited for; two steps closer than this were both taken."""


def is_repeat(last: Record, record: Record, rule: str) -> bool:
    """The same step again, or a Prepare* replaced by another before Complete*: a failed append."""
    if rule == "partition_set_shrank" and not waited(last, record):
        return False
    if record.producer_id != last.producer_id:
        return False
    bump = record.producer_epoch - last.producer_epoch
    if record.state in PREPARE and last.state in PREPARE:
        # Only a fence takes another epoch the second time; a client's EndTxn comes again with its own.
        return bump == 0 or (bump == 1 and record.state == PREPARE_ABORT)
    return record.state == last.state and bump == 0


def is_plain_repeat(last: Record, record: Record) -> bool:
    """A legal step that changes nothing: written again after a failed append."""
    return (
        record.state == last.state == ONGOING
        and record.partitions == last.partitions
        and record.producer_epoch == last.producer_epoch
    )


def is_failed_attempt(before: Record, last: Record, record: Record, version: int) -> bool:
    """`last` was never adopted: the record follows from the state before it, after the wait for the followers."""
    if before.state is None or not waited(last, record):
        return False
    return rule_broken(before, record, version) is None


def waited(last: Record, record: Record) -> bool:
    """Long enough between the two for the first one's append to have failed."""
    if last.append_ms is None or record.append_ms is None:
        return False
    return record.append_ms - last.append_ms >= FAILED_APPEND_MS
