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

from schemas.codes import STATE_NAMES

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, FENCE = range(
    8
)
COMPLETE = (COMPLETE_COMMIT, COMPLETE_ABORT)
PREPARE = (PREPARE_COMMIT, PREPARE_ABORT)
MAX_EPOCH = 32767
FAILED_APPEND_MS = 1000
"""A failed append is known only after the followers were waited for; two steps closer than this were both taken."""
FENCE_FOLLOW_UP_MS = 30_000
"""An `Empty` this soon after CompleteAbort is the retried InitProducerId that fenced (version 2)."""

LEGAL_PREVIOUS = {
    EMPTY: (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    ONGOING: (ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    PREPARE_COMMIT: (ONGOING,),
    PREPARE_ABORT: (ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    COMPLETE_COMMIT: (PREPARE_COMMIT,),
    COMPLETE_ABORT: (PREPARE_ABORT,),
}
"""State -> states that may stand before it in the log (Kafka: `TransactionState.validPreviousStates`)."""

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


class Record(NamedTuple):
    """One `__transaction_state` record, as the replay needs it. Times in ms; null is None."""

    offset: int
    append_ms: int | None
    leader_epoch: int | None
    value_version: int | None
    state: int | None
    producer_id: int
    producer_epoch: int
    txn_timeout_ms: int
    partitions: str
    start_ms: int | None
    next_producer_id: int | None
    client_transaction_version: int | None


class Step(NamedTuple):
    """What one record means: cause, feature level, and the rule that it offends (None when legal)."""

    cause: str
    transaction_version: int
    previous_state: int | None
    previous_producer_epoch: int | None
    violation: str | None
    explanation: str | None


class Transaction(NamedTuple):
    """One transaction so far; `schemas.silver.TRANSACTION` says what each field means."""

    first_step_offset: int
    producer_id: int
    producer_epoch: int
    prepare_epoch: int | None
    state: int
    outcome: int | None
    cause: str | None
    transaction_version: int
    txn_timeout_ms: int
    start_ms: int | None
    ongoing_ms: int | None
    ongoing_leader_epoch: int | None
    prepare_offset: int | None
    prepare_ms: int | None
    prepare_leader_epoch: int | None
    complete_offset: int | None
    complete_ms: int | None
    complete_leader_epoch: int | None
    has_start: bool
    added: tuple[tuple[str, int | None], ...]


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
    if record.state is not None and record.state not in LEGAL_PREVIOUS:
        fact = Step(
            "first_retained" if last is None else "init_retry",
            0,
            last.state if last else None,
            last.producer_epoch if last else None,
            "impossible_state_on_disk",
            f"{_name(record.state)} is never written to the log",
        )
        return state, fact, None
    if last is None or last.state is None:
        return _first(state, record, frontier_offset, is_complete)
    version = _version(record, last)
    problem = _problem(last, record, version)
    if problem is not None:
        if _is_repeat(last, record, problem[0]):
            return _repeated(state, record, version)
        if state.before is not None and _is_failed_attempt(state.before, last, record, version):
            previous = state.earlier if state.earlier is not None else None
            retried = IdState(state.before, None, _without_last(state, previous), None)
            after, fact, done = step(
                retried, record, frontier_offset=frontier_offset, is_complete=is_complete
            )
            return after, fact, done
        if last.offset < frontier_offset:
            problem = None
    elif _is_plain_repeat(last, record):
        return _repeated(state, record, version)
    cause = _cause(last, record, version, state.transaction)
    fact = Step(cause, version, last.state, last.producer_epoch, *(problem or (None, None)))
    transaction, done = _advance(state, record, cause, version)
    return IdState(record, last, transaction, done or state.earlier), fact, done


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
        explanation = f"{_name(record.state)} is the first record of the id; it has to be Empty"
    if record.state is None:
        cause = "expiry"
    else:
        cause = "init" if record.state == EMPTY and must_be_empty else "first_retained"
    transaction = None
    if record.state in (ONGOING, *PREPARE):
        transaction = _open(record, version, cause)
    fact = Step(cause, version, previous, None, violation, explanation)
    return IdState(record, None, transaction, None), fact, None


def _version(record: Record, last: Record) -> int:
    if record.value_version is None:
        return 0
    if record.value_version == 0:
        return 0
    if record.client_transaction_version == 2:
        return 2
    bumped = record.state == PREPARE_COMMIT and record.producer_epoch == last.producer_epoch + 1
    return 2 if bumped else 1


def _problem(last: Record, record: Record, version: int) -> tuple[str, str] | None:
    """Class and explanation of the rule that `last` -> `record` offends, or None."""
    state = record.state
    if state is None:
        if last.state in (ONGOING, *PREPARE):
            return "illegal_transition", f"tombstone while {_name(last.state)}"
        return None
    if last.state not in LEGAL_PREVIOUS[state]:
        return "illegal_transition", f"{_name(last.state)} -> {_name(state)}"
    if state == PREPARE_ABORT and last.state != ONGOING and version < 2:
        return (
            "illegal_transition",
            f"{_name(last.state)} -> PrepareAbort needs transaction.version 2",
        )
    problem = _epoch_problem(last, record, version)
    if problem is not None:
        return problem
    if state in PREPARE and last.state == ONGOING and record.partitions != last.partitions:
        return "partition_set_shrank", "Prepare* has to list what Ongoing listed"
    is_more = state == ONGOING and last.state == ONGOING and record.partitions != last.partitions
    if is_more and not _parts(last) <= _parts(record):
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
        f"producer {last.producer_id} epoch {last.producer_epoch} {_name(last.state)} -> "
        f"producer {record.producer_id} epoch {record.producer_epoch} {_name(record.state)}"
    )


def _is_repeat(last: Record, record: Record, rule: str) -> bool:
    """The same step again, or a Prepare* replaced by another before Complete*: a failed append."""
    if rule == "partition_set_shrank" and not _waited(last, record):
        return False
    same_id = record.producer_id == last.producer_id
    near = record.producer_epoch - last.producer_epoch in (0, 1)
    if record.state in PREPARE and last.state in PREPARE:
        return same_id and near
    return record.state == last.state and same_id and near


def _is_plain_repeat(last: Record, record: Record) -> bool:
    """A legal step that changes nothing: written again after a failed append."""
    return (
        record.state == last.state == ONGOING
        and record.partitions == last.partitions
        and record.producer_epoch == last.producer_epoch
    )


def _is_failed_attempt(before: Record, last: Record, record: Record, version: int) -> bool:
    """`last` was never adopted: the record follows from the state before it, after the wait for the followers."""
    if before.state is None or not _waited(last, record):
        return False
    return _problem(before, record, version) is None


def _waited(last: Record, record: Record) -> bool:
    """Long enough between the two for the first one's append to have failed."""
    if last.append_ms is None or record.append_ms is None:
        return False
    return record.append_ms - last.append_ms >= FAILED_APPEND_MS


def _repeated(
    state: IdState, record: Record, version: int
) -> tuple[IdState, Step, Transaction | None]:
    last = state.last
    assert last is not None
    fact = Step("repeated_append", version, last.state, last.producer_epoch, None, None)
    transaction = state.transaction
    if transaction is not None and record.state in PREPARE:
        transaction = _prepared(transaction, record, transaction.cause or "client_abort", version)
    return IdState(record, state.before, transaction, state.earlier), fact, None


def _without_last(state: IdState, earlier: Transaction | None) -> Transaction | None:
    """The transaction as it was before a failed attempt."""
    last, transaction = state.last, state.transaction
    assert last is not None
    assert state.before is not None
    if last.state in COMPLETE and earlier is not None:
        return earlier._replace(
            state=state.before.state or 0,
            complete_offset=None,
            complete_ms=None,
            complete_leader_epoch=None,
        )
    if transaction is None or transaction.first_step_offset == last.offset:
        return None
    if last.state in PREPARE:
        return transaction._replace(
            state=ONGOING,
            outcome=None,
            cause=None,
            prepare_epoch=None,
            prepare_offset=None,
            prepare_ms=None,
            prepare_leader_epoch=None,
        )
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
            return _open(record, version, cause), open_one
        known = {name for name, _ in open_one.added}
        more = tuple((name, record.append_ms) for name in _split(record) if name not in known)
        version = max(version, open_one.transaction_version)
        return open_one._replace(added=open_one.added + more, transaction_version=version), None
    if record.state in PREPARE:
        base = open_one if open_one is not None else _open(record, version, cause)
        return _prepared(base, record, cause, version), None
    if record.state in COMPLETE and open_one is not None:
        done = open_one._replace(
            state=record.state,
            complete_offset=record.offset,
            complete_ms=record.append_ms,
            complete_leader_epoch=record.leader_epoch,
        )
        return None, done
    return None, open_one


def _open(record: Record, version: int, cause: str) -> Transaction:
    is_ongoing = record.state == ONGOING
    added_ms = record.append_ms if is_ongoing else None
    transaction = Transaction(
        record.offset,
        record.producer_id,
        record.producer_epoch,
        None,
        record.state or 0,
        None,
        None,
        version,
        record.txn_timeout_ms,
        record.start_ms,
        added_ms,
        record.leader_epoch,
        None,
        None,
        None,
        None,
        None,
        None,
        is_ongoing and cause != "first_retained",
        tuple((name, added_ms) for name in _split(record)),
    )
    return transaction if is_ongoing else _prepared(transaction, record, cause, version)


def _prepared(transaction: Transaction, record: Record, cause: str, version: int) -> Transaction:
    assert record.state in PREPARE
    outcome = 1 if record.state == PREPARE_COMMIT else 0
    is_again = transaction.outcome == outcome
    added = transaction.added
    if len(added) != len(_split(record)):
        # What the decision does not list was an attempt whose append failed.
        listed = _parts(record)
        added = tuple(one for one in added if one[0] in listed)
    return transaction._replace(
        state=PREPARE_COMMIT if outcome else PREPARE_ABORT,
        outcome=outcome,
        prepare_epoch=record.producer_epoch,
        cause=transaction.cause if is_again else (None if cause == "first_retained" else cause),
        prepare_offset=record.offset,
        prepare_ms=transaction.prepare_ms if is_again else record.append_ms,
        prepare_leader_epoch=record.leader_epoch,
        transaction_version=max(version, transaction.transaction_version),
        added=added,
    )


def _split(record: Record) -> list[str]:
    return record.partitions.split("\x01") if record.partitions else []


def _parts(record: Record) -> set[str]:
    return set(_split(record))


def _name(state: int | None) -> str:
    return "tombstone" if state is None else STATE_NAMES.get(state, f"state {state}")
