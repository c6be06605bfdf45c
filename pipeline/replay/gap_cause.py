"""Why sequence numbers of a producer are missing or start anew, as far as the log shows it.

Source: `ProducerAppendInfo.checkSequence`, `ProducerStateManager` (expiry, truncation); KIP-98, KIP-360, KIP-854.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.replay.statement import Place, Statement

CAUSES = {
    "epoch bump": "a new producer epoch that does not begin at 0",
    "producer expiry": "a snapshot in between no longer knows the producer: the broker had forgotten it, and then "
    "takes any number",
    "leader change": "the partition's leader changed in between: what was not replicated may be lost",
    "first batch": "the first batch of the producer in a log that is complete from offset 0: requests before it "
    "were refused, or the topic was made anew (KAFKA-15591)",
    "unexplained": "the log does not show it; a broker takes such a number only when it has lost the producer's state",
}
"""Probable cause -> the same in words."""
_SUSPICIOUS = ("leader change", "producer expiry", "unexplained")


class Event(NamedTuple):
    """A step that is not the plain next one; fields as in `silver.sequence_event`."""

    copy: int
    topic: str
    partition: int
    replica_id: int
    producer_id: int
    offset: int
    last_offset: int
    kind: str
    producer_epoch: int
    first_sequence: int
    previous_sequence: int | None
    previous_offset: int | None
    previous_leader_epoch: int | None
    leader_epoch: int | None
    timestamp_ms: int | None


class LogState(NamedTuple):
    """What the log shows around an event.

    Attributes:
        is_complete: Nothing is missing from offset 0 on.
        is_forgotten: A producer snapshot between the two batches does not name the producer.
    """

    is_complete: bool
    is_forgotten: bool


KINDS = ("gap", "reset", "bump_not_zero", "first")
"""Kinds of `silver.sequence_event` that are told here; the others are duplicates and zombies."""


def cause(event: Event, log: LogState) -> str:
    """The most probable cause: a key of `CAUSES`. What was cut by retention or the cleaner is no event at all."""
    if event.kind == "first":
        return "first batch"
    if event.kind == "bump_not_zero":
        return "epoch bump"
    if log.is_forgotten:
        return "producer expiry"
    if event.leader_epoch != event.previous_leader_epoch:
        return "leader change"
    return "unexplained"


def statement(event: Event, log: LogState) -> Statement | None:
    """What is said of one event; None for a first batch in a log whose beginning is gone."""
    if event.kind == "first" and not log.is_complete:
        return None
    why = cause(event, log)
    is_lost = event.kind in ("gap", "first")
    is_loud = event.kind == "gap" and why in _SUSPICIOUS
    name = f"{event.topic}-{event.partition}"
    first = 0 if event.previous_sequence is None else event.previous_sequence + 1
    title = f"sequences of producer {event.producer_id} start anew in {name}: {why}"
    if event.kind == "gap":
        title = f"sequences {first}..{event.first_sequence - 1} are missing in {name}: {why}"
    elif event.kind == "first":
        title = f"the first batch of producer {event.producer_id} in {name} begins at sequence {event.first_sequence}"
    what = "its first batch" if event.kind == "first" else "first batch behind it"
    places = [Place(event.topic, event.partition, event.offset, what)]
    earlier = "No batch of this producer comes before"
    if event.previous_offset is not None:
        earlier = (
            f"Sequence {event.previous_sequence} at offset {event.previous_offset} comes before"
        )
        places.insert(
            0, Place(event.topic, event.partition, event.previous_offset, "last batch before it")
        )
    return Statement(
        event.copy, "lost" if is_lost else "reset", "major" if is_loud else "info",
        "consistent_with" if event.kind == "first" else "proven", title,
        f"Producer {event.producer_id} epoch {event.producer_epoch}: sequence {event.first_sequence} is at offset "
        f"{event.offset}. {earlier}. Probable cause: {CAUSES[why]}. Whether records "
        "were lost only the client's side can tell.",
        topic=event.topic, partition=event.partition, producer_id=event.producer_id,
        producer_epoch=event.producer_epoch, first_offset=event.offset, last_offset=event.last_offset,
        first_timestamp_ms=event.timestamp_ms, last_timestamp_ms=event.timestamp_ms, places=tuple(places),
    )  # fmt: skip
