"""One producer's history in one partition, batch by batch.

`Producer.broker` is what a broker holds (`broker_entry`). The rest is the audit's history: runs between markers, the
highest epoch so far, sequences unwrapped to 64 bits. It is the reference that the window functions of the Spark
pipeline equal row by row, so every field is a running count, sum or maximum over the producer's earlier batches.

Broker and history differ in two places, on purpose. A batch that the cleaner emptied opens a transaction for the
broker, but no run. A control batch whose record the cleaner removed ends nothing for the broker; it ends a run, with a
marker of unknown type, because the cleaner removes a marker only once the data before it are gone.

Source: `ProducerStateManager`, `ProducerAppendInfo`, `Cleaner.checkBatchRetention`; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.replay.broker_entry import WRAP, BrokerEntry, CompletedTxn, append
from pipeline.wire.batch import LOG_APPEND_TIME, MAX_SEQUENCE, NO_SEQUENCE, Batch


class PreviousData(NamedTuple):
    """The producer's data batch before this one, whatever its epoch; last_sequence as on disk, None without one."""

    last_sequence: int | None
    producer_epoch: int
    last_offset: int
    partition_leader_epoch: int


class Reached(NamedTuple):
    """Greatest (epoch, unwrapped last sequence) among the producer's data so far; compared as a pair, None lowest."""

    producer_epoch: int
    last_sequence: int | None


class Step(NamedTuple):
    """What one batch of a producer was, seen from all its earlier batches in the replica.

    Attributes:
        offset: base offset of the batch.
        run_number: control batches of this producer before it.
        max_epoch_before: highest producer epoch in its earlier data and control batches; None for the first.
        coordinator_epoch_before: highest coordinator epoch in its earlier markers; None without one.
        previous: its data batch before; None for the first, filled for control batches too.
        reached: see `Reached`, over earlier data batches; None without one.
        first_sequence: base sequence plus 2^31 for every wrap before it, less for a step back over one; None for
            control batches.
        last_sequence: likewise, a wrap inside the batch included; None for control batches and without a sequence.
        event: why it is not the plain next step, else None. `epoch_regressed`: data with an epoch below
            `max_epoch_before`; `first`: first data seen, not at sequence 0; `back`: same epoch as `reached`, at or
            below its sequence; `gap`: same epoch, beyond the next sequence; `bump_not_zero`: higher epoch, not at
            sequence 0. Always None below the start of complete history; `gap` and `bump_not_zero` also None when
            `previous` ends below it, because a hole may hold what seems to be missing. In `__consumer_offsets`, whose
            base sequence is always 0, only `epoch_regressed`.
        refused: error with which a leader would have refused it from its client, or from the coordinator if it is a
            marker or an offset commit, given `broker`; None where it would have been appended. A transaction's
            verification (KIP-890) is not modelled: it depends on the coordinator.
        completed: transaction that it ended.
    """

    offset: int
    run_number: int
    max_epoch_before: int | None
    coordinator_epoch_before: int | None
    previous: PreviousData | None
    reached: Reached | None
    first_sequence: int | None
    last_sequence: int | None
    event: str | None
    refused: str | None
    completed: CompletedTxn | None


class Run(NamedTuple):
    """Data of one producer between two of its control batches, and the control batch that ended them.

    Data means batches with records where nothing else is said; the cleaner's empty batches count only where stated.
    A control batch without data before it is a run of its own. None: no such data, or no control batch yet.

    Attributes:
        producer_id: the producer.
        run_number: its control batches before this run.
        is_transactional: any of its data are transactional.
        is_open: transactional, and no control batch behind it.
        first_offset: first offset of its transactional data, else of its data.
        last_offset: last offset of its data.
        batch_count: data batches.
        record_count: records in them.
        size_bytes: bytes of data batches.
        min_epoch: lowest producer epoch of its data.
        max_epoch: highest producer epoch of its data.
        max_epoch_before: highest producer epoch in all earlier batches, control and empty batches included.
        first_sequence: lowest base sequence on disk of its data, empty batches included.
        first_append_ms: earliest largest time among data batches under LogAppendTime.
        irregular_count: steps with an `event`.
        marker_offset: offset of the control batch.
        marker_type: 0 ABORT, 1 COMMIT, others as read; None when its record is gone.
        marker_epoch: producer epoch of the control batch.
        marker_coordinator_epoch: coordinator epoch in the marker; None when unreadable.
        marker_leader_epoch: leader epoch of the partition in the control batch.
        marker_ms: largest time of the control batch: the partition leader's clock.
        coordinator_epoch_before: highest coordinator epoch in the producer's earlier markers.
    """

    producer_id: int
    run_number: int
    is_transactional: bool = False
    is_open: bool = False
    first_offset: int | None = None
    last_offset: int | None = None
    batch_count: int = 0
    record_count: int = 0
    size_bytes: int = 0
    min_epoch: int | None = None
    max_epoch: int | None = None
    max_epoch_before: int | None = None
    first_sequence: int | None = None
    first_append_ms: int | None = None
    irregular_count: int = 0
    marker_offset: int | None = None
    marker_type: int | None = None
    marker_epoch: int | None = None
    marker_coordinator_epoch: int | None = None
    marker_leader_epoch: int | None = None
    marker_ms: int | None = None
    coordinator_epoch_before: int | None = None


class Producer(NamedTuple):
    """Everything kept of one producer id in one replica; the fields behind `broker` are the history so far."""

    producer_id: int
    broker: BrokerEntry = BrokerEntry()
    run_number: int = 0
    max_epoch: int | None = None
    max_coordinator_epoch: int | None = None
    previous: PreviousData | None = None
    reached: Reached | None = None
    wraps: int = 0
    has_wrapped: bool = False
    run: Run | None = None


def step(
    state: Producer, batch: Batch, *, is_offsets: bool = False, history_start_offset: int = 0
) -> tuple[Producer, Step, Run | None]:
    """Appends one batch of a producer.

    Args:
        state: The producer before it; left as it is.
        batch: Next batch with this producer id, in offset order.
        is_offsets: The partition belongs to `__consumer_offsets`.
        history_start_offset: Below it history was cut.

    Returns:
        The producer after it, what the batch was, and the run that it ended.
    """
    broker, completed, refused = append(state.broker, batch, is_offsets=is_offsets)
    first, last, wraps = _unwrapped(state, batch)
    event = None
    if batch.base_offset >= history_start_offset and not batch.is_control:
        event = _event(state, batch, first, is_offsets)
        is_hidden = state.previous is not None and state.previous.last_offset < history_start_offset
        if is_hidden and event in ("gap", "bump_not_zero"):
            event = None
    fact = Step(
        batch.base_offset, state.run_number, state.max_epoch, state.max_coordinator_epoch, state.previous,
        state.reached, first, last, event, refused, completed,
    )  # fmt: skip
    before = state.run or Run(state.producer_id, state.run_number, max_epoch_before=state.max_epoch)
    max_epoch = (
        batch.producer_epoch
        if state.max_epoch is None
        else max(batch.producer_epoch, state.max_epoch)
    )
    if batch.is_control:
        epochs = (batch.coordinator_epoch, state.max_coordinator_epoch)
        after = state._replace(
            broker=broker,
            run_number=state.run_number + 1,
            max_epoch=max_epoch,
            max_coordinator_epoch=max((e for e in epochs if e is not None), default=None),
            run=None,
        )
        return after, fact, _closed(before, batch, state.max_coordinator_epoch)
    previous = PreviousData(
        None
        if batch.base_sequence == NO_SEQUENCE
        else (batch.base_sequence + _length(batch)) % WRAP,
        batch.producer_epoch,
        batch.last_offset,
        batch.partition_leader_epoch,
    )
    here = Reached(batch.producer_epoch, last)
    reached = here if state.reached is None else max(state.reached, here, key=_rank)
    run = _with_data(before, batch, event)
    after = Producer(
        state.producer_id,
        broker,
        state.run_number,
        max_epoch,
        state.max_coordinator_epoch,
        previous,
        reached,
        wraps,
        state.has_wrapped or wraps > state.wraps,
        run,
    )
    return after, fact, None


def _rank(reached: Reached) -> tuple[int, bool, int]:
    return reached.producer_epoch, reached.last_sequence is not None, reached.last_sequence or 0


def _length(batch: Batch) -> int:
    return batch.last_offset - batch.base_offset


def _unwrapped(state: Producer, batch: Batch) -> tuple[int | None, int | None, int]:
    """First and last sequence in 64 bits, and the wraps up to the end of the batch.

    From the producer's previous data batch of the same epoch on, the nearer way counts: forward over 2147483647 (to 0
    only from 2147483647 itself, for 0 is also where a producer starts anew), or back over it when a batch is repeated
    and the producer has wrapped before.
    """
    if batch.is_control:
        return None, None, state.wraps
    wraps, previous = state.wraps, state.previous
    if previous is not None and previous.producer_epoch == batch.producer_epoch:
        between = _wrap_between(previous.last_sequence, batch.base_sequence)
        wraps += between if between > 0 or state.has_wrapped else 0
    first = batch.base_sequence + wraps * WRAP
    if batch.base_sequence == NO_SEQUENCE:
        return first, None, wraps
    last = (batch.base_sequence + _length(batch)) % WRAP
    wraps += last < batch.base_sequence
    return first, last + wraps * WRAP, wraps


def _wrap_between(last: int | None, base: int) -> int:
    """1 for a step forward over the wrap, -1 for one back over it, else 0."""
    if last is None or base < 0:
        return 0
    if base == 0:
        return int(last == MAX_SEQUENCE)
    return int(last - base > WRAP // 2) - int(base - last > WRAP // 2)


def _event(state: Producer, batch: Batch, first: int | None, is_offsets: bool) -> str | None:
    if state.max_epoch is not None and batch.producer_epoch < state.max_epoch:
        return "epoch_regressed"
    if is_offsets or batch.base_sequence < 0 or first is None:
        return None
    if state.reached is None:
        return "first" if batch.base_sequence > 0 else None
    epoch, reached = state.reached
    if batch.producer_epoch > epoch:
        return "bump_not_zero" if batch.base_sequence > 0 else None
    if batch.producer_epoch < epoch or reached is None or first == reached + 1:
        return None
    return "back" if first <= reached else "gap"


def _with_data(run: Run, batch: Batch, event: str | None) -> Run:
    """The run with one more data batch."""
    lowest = (
        batch.base_sequence
        if run.first_sequence is None
        else min(run.first_sequence, batch.base_sequence)
    )
    run = run._replace(
        first_sequence=lowest,
        irregular_count=run.irregular_count + (event is not None),
    )
    if batch.records_count <= 0:
        return run
    opens = batch.is_transactional and not run.is_transactional
    epoch, append_ms = batch.producer_epoch, run.first_append_ms
    if batch.timestamp_type == LOG_APPEND_TIME:
        append_ms = (
            batch.max_timestamp_ms if append_ms is None else min(append_ms, batch.max_timestamp_ms)
        )
    return run._replace(
        is_transactional=run.is_transactional or batch.is_transactional,
        is_open=run.is_transactional or batch.is_transactional,
        first_offset=batch.base_offset if opens or run.first_offset is None else run.first_offset,
        last_offset=batch.last_offset,
        batch_count=run.batch_count + 1,
        record_count=run.record_count + batch.records_count,
        size_bytes=run.size_bytes + batch.size_bytes,
        min_epoch=epoch if run.min_epoch is None else min(run.min_epoch, epoch),
        max_epoch=epoch if run.max_epoch is None else max(run.max_epoch, epoch),
        first_append_ms=append_ms,
    )


def _closed(run: Run, batch: Batch, coordinator_epoch_before: int | None) -> Run:
    return run._replace(
        is_open=False,
        marker_offset=batch.base_offset,
        marker_type=batch.control_type,
        marker_epoch=batch.producer_epoch,
        marker_coordinator_epoch=batch.coordinator_epoch,
        marker_leader_epoch=batch.partition_leader_epoch,
        marker_ms=batch.max_timestamp_ms,
        coordinator_epoch_before=coordinator_epoch_before,
    )
