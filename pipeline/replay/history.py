"""A whole replica replayed: runs, irregular steps with what they repeat, and every producer's state at the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pipeline.replay.broker_entry import WRAP, CompletedTxn
from pipeline.replay.producer import Producer, Run, Step, step
from pipeline.wire.batch import NO_PRODUCER_ID, Batch


class SequenceEvent(NamedTuple):
    """A step that is not the plain next one, with what it repeats.

    Attributes:
        producer_id: the producer.
        step: the step; `step.event` is not None.
        batch: its batch.
        kind: `step.event`, where `back` is told apart: `exact` when an earlier batch has the same unwrapped first and
            last sequence, `overlap` when one only intersects, `reset` when none does. Earlier batches are data of
            the same producer, epoch and life (`Lives`) at or above the start of complete history, empty ones included.
        other_offset: base offset of the first such batch, for `exact`, `overlap` and `epoch_regressed`; else None.
        is_exact: one of them has the same sequences.
    """

    producer_id: int
    step: Step
    batch: Batch
    kind: str
    other_offset: int | None
    is_exact: bool


class Lives:
    """Lives of the producers' epochs: a step back to sequence 0 with other bytes begins one, and repeats nothing.

    Up to 2.4 a broker that DeleteRecords or retention had left without a batch of a producer forgets it and answers
    UNKNOWN_PRODUCER_ID; the client then begins at 0 again in the same epoch (KAFKA-5793, KAFKA-7190: repartition
    topics of Streams), and the deleted batches may still stand in the file. A repeated batch has the same checksum:
    it covers everything but the offset and the leader epoch.
    """

    def __init__(self) -> None:
        self._sent: dict[tuple[int, int], list[Step]] = {}
        self._zeros: dict[tuple[int, int], tuple[int | None, int | None, int]] = {}
        self._is_later: set[tuple[int, int]] = set()

    def sent(self, batch: Batch, fact: Step) -> list[Step]:
        """Batches before this one that it could repeat."""
        key = (batch.producer_id, batch.producer_epoch)
        if batch.is_control or batch.base_sequence != 0:
            return self._sent.setdefault(key, [])
        zero = (fact.first_sequence, fact.last_sequence, batch.crc)
        if fact.event == "back" and self._zeros.get(key) != zero:
            self._sent[key] = []
            self._is_later.add(key)
        self._zeros[key] = zero
        return self._sent.setdefault(key, [])

    def goes_on(self, batch: Batch, fact: Step) -> bool:
        """In a later life: the plain next step, below what an earlier life had reached."""
        previous = fact.previous
        return (
            (batch.producer_id, batch.producer_epoch) in self._is_later
            and previous is not None
            and previous.producer_epoch == batch.producer_epoch
            and previous.last_sequence is not None
            and batch.base_sequence == (previous.last_sequence + 1) % WRAP
        )


class History(NamedTuple):
    """A whole replica.

    Attributes:
        runs: by producer id and run number; open ones and such without a marker included.
        events: in offset order.
        producers: state at the end, by producer id.
        completed: transactions with data that a marker ended, in marker order, as the broker sees them.
    """

    runs: list[Run]
    events: list[SequenceEvent]
    producers: dict[int, Producer]
    completed: list[CompletedTxn]


def replay(
    batches: Iterable[Batch], *, is_offsets: bool = False, history_start_offset: int = 0
) -> History:
    """Replays all batches of a replica.

    Args:
        batches: In offset order, each offset once; those without a producer id are passed over.
        is_offsets: The partition belongs to `__consumer_offsets`.
        history_start_offset: Below it history was cut: it makes no events.
    """
    producers: dict[int, Producer] = {}
    runs: list[Run] = []
    completed: list[CompletedTxn] = []
    events: list[SequenceEvent] = []
    lives = Lives()
    for batch in batches:
        if batch.producer_id <= NO_PRODUCER_ID:
            continue
        before = producers.get(batch.producer_id) or Producer(batch.producer_id)
        after, fact, run = step(
            before, batch, is_offsets=is_offsets, history_start_offset=history_start_offset
        )
        producers[batch.producer_id] = after
        if run is not None:
            runs.append(run)
        if fact.completed is not None:
            completed.append(fact.completed)
        earlier = lives.sent(batch, fact)
        if fact.event is not None:
            event = _sequence_event(batch, fact, () if is_offsets else earlier)
            if event.kind != "reset" or not lives.goes_on(batch, fact):
                events.append(event)
        if not batch.is_control and batch.base_offset >= history_start_offset:
            earlier.append(fact)
    runs += [producer.run for producer in producers.values() if producer.run is not None]
    return History(
        sorted(runs, key=lambda r: (r.producer_id, r.run_number)), events, producers, completed
    )


def _sequence_event(batch: Batch, fact: Step, earlier: Iterable[Step]) -> SequenceEvent:
    assert fact.event is not None
    if fact.event not in ("back", "epoch_regressed"):
        return SequenceEvent(batch.producer_id, fact, batch, fact.event, None, False)
    repeated = [other for other in earlier if _intersects(other, fact)]
    is_exact = any(
        (other.first_sequence, other.last_sequence) == (fact.first_sequence, fact.last_sequence)
        for other in repeated
    )
    kind = fact.event
    if kind == "back":
        kind = ("exact" if is_exact else "overlap") if repeated else "reset"
    other_offset = repeated[0].offset if repeated else None
    return SequenceEvent(batch.producer_id, fact, batch, kind, other_offset, is_exact)


def _intersects(one: Step, other: Step) -> bool:
    ends = (one.first_sequence, one.last_sequence, other.first_sequence, other.last_sequence)
    if ends[0] is None or ends[1] is None or ends[2] is None or ends[3] is None:
        return False
    return ends[0] <= ends[3] and ends[1] >= ends[2]
