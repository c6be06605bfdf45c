"""The transaction coordinator's state machine, replayed from `__transaction_state`.

A record is an attempt: when followers lag, the coordinator drops its pending state while the
record stays in the log, and
the step is written again (Kafka: `TransactionStateManager.appendTransactionToLog`). A step counts once the next
regular one follows; failed attempts get the cause `repeated_append` and never convict.

Sources: `TransactionMetadata.prepareTransition` and `completeTransitionTo`, `TransactionCoordinator`, KIP-98, KIP-360,
KIP-890.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.replay.failed_append import is_failed_attempt, is_plain_repeat, is_repeat, waited
from pipeline.replay.transaction import (
    Transaction,
    completed,
    not_completed,
    not_prepared,
    opened,
    prepared,
)
from pipeline.replay.transaction_state import (
    COMPLETE,
    EMPTY,
    LEGAL_PREVIOUS,
    MAX_EPOCH,
    ONGOING,
    PREPARE,
    PREPARE_COMMIT,
    Record,
    listed,
    state_name,
)
from pipeline.replay.transition_rules import problem as rule_broken

FENCE_FOLLOW_UP_MS = 30_000
"""An `Empty` this soon after CompleteAbort is the retried InitProducerId that fenced (version 2)."""

CAUSES = {
    "first_retained": "first record that the log still holds of this id",
    "init": "first InitProducerId",
    "init_again": "InitProducerId of a new or returning instance, nothing open",
    "init_retry": "InitProducerId repeated, epoch kept",
    "epoch_exhausted": "new producer id because the epoch was used up",
    "add_partitions": "AddPartitionsToTxn, AddOffsetsToTxn, or the first write under version 2",
    "client_commit": "EndTxn commit",
    "client_abort": "EndTxn abort",
    "timeout": "aborted by the coordinator after the transaction timeout",
    "fence": "aborted by InitProducerId of another instance",
    "empty_abort": "abort of a transaction that wrote nothing (version 2)",
    "complete": "all markers answered",
    "expiry": "tombstone: id idle for transactional.id.expiration.ms",
    "repeated_append": "attempt whose append failed or that was written again",
}


class Step(NamedTuple):
    """What one record means: cause, feature level, and the rule that it offends (None when legal)."""

    cause: str
    transaction_version: int
    previous_state: int | None
    previous_producer_epoch: int | None
    violation: str | None
    explanation: str | None


class IdState(NamedTuple):
    """State of one transactional id: the last two records that count, and its transaction in progress."""

    last: Record | None = None
    before: Record | None = None
    transaction: Transaction | None = None
    earlier: Transaction | None = None


NEW = IdState()


def step(
    state: IdState, record: Record, *, frontier_offset: int, is_complete: bool
) -> tuple[IdState, Step, Transaction | None]:
    """Takes one record.

    Args:
        state: The id's state; unchanged.
        record: The next record of the same id by offset.
        frontier_offset: Offset from which the partition's history is complete; a step is judged only when the
            record before it lies at or above.
        is_complete: The file is complete from offset 0, so a first record must be the first ever.

    Returns:
        The new state, what the record means, and the transaction that it ended, if it ended one.
    """
    last = state.last
    never = _never_written(record)
    if never is not None:
        fact = Step(
            "first_retained" if last is None else "init_retry",
            0,
            last.state if last else None,
            last.producer_epoch if last else None,
            "impossible_state_on_disk",
            never,
        )
        return state, fact, None
    if last is None or last.state is None:
        if last is not None and _is_alive(state, record):
            state = IdState(state.before)
            return step(state, record, frontier_offset=frontier_offset, is_complete=is_complete)
        return _first(state, record, frontier_offset, is_complete)
    if last.offset < frontier_offset and _is_severed(last, record):
        return _first(NEW, record, frontier_offset, False)
    version = _version(record, last, (state.transaction, state.earlier))
    problem = rule_broken(last, record, version)
    if problem is not None:
        if is_repeat(last, record, problem[0]):
            return _repeated(state, record, version)
        if state.before is not None and is_failed_attempt(state.before, last, record, version):
            previous = state.earlier if state.earlier is not None else None
            retried = IdState(state.before, None, _without_last(state, previous), None)
            after, fact, done = step(
                retried, record, frontier_offset=frontier_offset, is_complete=is_complete
            )
            return after, fact, done
        if state.before is None and not is_complete and waited(last, record):
            # What came before is gone, and the record may follow from it: the one between was a failed attempt.
            return _first(NEW, record, frontier_offset, False)
        if last.offset < frontier_offset:
            problem = None
    elif is_plain_repeat(last, record):
        return _repeated(state, record, version)
    cause = _cause(last, record, version, state.transaction)
    fact = Step(cause, version, last.state, last.producer_epoch, *(problem or (None, None)))
    transaction, done = _advance(state, record, cause, version)
    return IdState(record, last, transaction, done or state.earlier), fact, done


def _never_written(record: Record) -> str | None:
    """Why no coordinator writes such a record (Kafka: `TransactionLog.valueToBytes`); None where one may."""
    if record.state is not None and record.state not in LEGAL_PREVIOUS:
        return f"{state_name(record.state)} is never written to the log"
    if record.state == EMPTY and record.partitions:
        return "Empty is never written with partitions"
    return None


def _is_severed(last: Record, record: Record) -> bool:
    """What lay between the two is gone, and the later one is of another transaction.

    A file that was copied before the cleaner merged its neighbours into it, and the neighbours after: nothing of
    them is in the copy. A transaction keeps its start until it is complete (Kafka:
    `TransactionMetadata.txnStartTimestamp`), and its Prepare* is newer than what it began with.
    """
    if last.state not in (ONGOING, *PREPARE) or record.state not in (ONGOING, *PREPARE, *COMPLETE):
        return False
    if record.state in COMPLETE and last.state == ONGOING:
        return True
    return None not in (last.start_ms, record.start_ms) and last.start_ms != record.start_ms


def _first(
    state: IdState, record: Record, frontier_offset: int, is_complete: bool
) -> tuple[IdState, Step, None]:
    version = (
        0 if record.value_version in (None, 0) else max(1, record.client_transaction_version or 0)
    )
    previous = state.last.state if state.last else None
    must_be_empty = is_complete if state.last is None else state.last.offset >= frontier_offset
    violation = explanation = None
    if must_be_empty and record.state not in (EMPTY, None):
        violation = "illegal_transition"
        explanation = (
            f"{state_name(record.state)} is the first record of the id; it has to be Empty"
        )
    if record.state is None:
        cause = "expiry"
    else:
        cause = "init" if record.state == EMPTY and must_be_empty else "first_retained"
    transaction = None
    if record.state in (ONGOING, *PREPARE):
        transaction = opened(record, version, cause)
    fact = Step(cause, version, previous, None, violation, explanation)
    before = state.before if record.state is None else None
    return IdState(record, before, transaction, None), fact, None


def _is_alive(state: IdState, record: Record) -> bool:
    """The tombstone before the record was an attempt: no id gets a producer id that it had before it expired.

    When the append of a tombstone fails, the coordinator keeps the id and tries an hour later
    (Kafka: `TransactionStateManager.removeExpiredTransactionalIds`).
    """
    before, last = state.before, state.last
    if before is None or last is None or record.producer_id != before.producer_id:
        return False
    return record.state is not None and is_failed_attempt(
        before, last, record, _version(record, before)
    )


def _version(record: Record, last: Record, known: tuple[Transaction | None, ...] = ()) -> int:
    """transaction.version of a step; `known` are the id's open transaction and the last one that ended.

    A producer that runs on while transaction.version is taken back to 0 ends its transactions as under version 2 until
    it connects anew (Kafka: `KafkaApis.handleEndTxnRequest` takes the client's version, `TransactionLog.valueToBytes`
    the cluster's): value version 0, epoch bumped.
    """
    if record.value_version is None:
        return 0
    if record.value_version == 0:
        bumped = record.state in PREPARE and record.producer_epoch == last.producer_epoch + 1
        was_2 = any(one is not None and one.transaction_version == 2 for one in known)
        return 2 if bumped and was_2 else 0
    if record.client_transaction_version == 2:
        return 2
    bumped = record.state == PREPARE_COMMIT and record.producer_epoch == last.producer_epoch + 1
    return 2 if bumped else 1


def _repeated(
    state: IdState, record: Record, version: int
) -> tuple[IdState, Step, Transaction | None]:
    last = state.last
    assert last is not None
    fact = Step("repeated_append", version, last.state, last.producer_epoch, None, None)
    transaction = state.transaction
    if transaction is not None and record.state in PREPARE:
        transaction = prepared(transaction, record, transaction.cause or "client_abort", version)
    return IdState(record, state.before, transaction, state.earlier), fact, None


def _without_last(state: IdState, earlier: Transaction | None) -> Transaction | None:
    """The transaction as it was before a failed attempt."""
    last, transaction = state.last, state.transaction
    assert last is not None
    assert state.before is not None
    if last.state in COMPLETE and earlier is not None:
        return not_completed(earlier, state.before)
    if transaction is None or transaction.first_step_offset > state.before.offset:
        return None
    if last.state in PREPARE:
        return not_prepared(transaction)
    return transaction


def _cause(last: Record, record: Record, version: int, transaction: Transaction | None) -> str:
    state = record.state
    if state is None:
        return "expiry"
    if state == EMPTY:
        if record.producer_id != last.producer_id:
            return "epoch_exhausted" if last.producer_epoch >= MAX_EPOCH - 1 else "init_again"
        return "init_retry" if record.producer_epoch == last.producer_epoch else "init_again"
    if state == ONGOING:
        return "add_partitions"
    if state in COMPLETE:
        return "complete"
    if state == PREPARE_COMMIT:
        return "client_commit"
    if last.state != ONGOING:
        return "empty_abort"
    start = (
        record.start_ms if record.start_ms is not None else (transaction and transaction.ongoing_ms)
    )
    elapsed = (
        record.append_ms - start if record.append_ms is not None and start is not None else None
    )
    is_bumped = record.producer_epoch > last.producer_epoch
    if is_bumped and elapsed is not None and elapsed >= record.txn_timeout_ms:
        return "timeout"
    if is_bumped and (version < 2 or record.producer_epoch == last.producer_epoch + 2):
        return "fence"
    return "client_abort"


def _advance(
    state: IdState, record: Record, cause: str, version: int
) -> tuple[Transaction | None, Transaction | None]:
    """The transaction after the record, and the one that it ended."""
    open_one = state.transaction
    if record.state == ONGOING:
        if open_one is None or open_one.state != ONGOING:
            return opened(record, version, cause), open_one
        known = {name for name, _ in open_one.added}
        more = tuple((name, record.append_ms) for name in listed(record) if name not in known)
        version = max(version, open_one.transaction_version)
        return open_one._replace(added=open_one.added + more, transaction_version=version), None
    if record.state in PREPARE:
        base = open_one if open_one is not None else opened(record, version, cause)
        return prepared(base, record, cause, version), None
    if record.state in COMPLETE and open_one is not None:
        return None, completed(open_one, record)
    return None, open_one
