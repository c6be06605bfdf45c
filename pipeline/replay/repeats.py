"""Records of one content in one partition: which of them were probably written twice.

Sequence numbers tell a retry only within one producer epoch. A client that raises its epoch, restarts or has no
sequence numbers at all writes again what it does not know to be written (librdkafka #4953, KIP-360).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipeline.replay.statement import Place, Statement
from pipeline.text import counted, plural
from pipeline.wire.batch import NO_PRODUCER_ID

RESENT, REPEATED = "resent", "repeated"
TIMES_KEPT = 10_000
"""Different CreateTimes of one content that are remembered in one partition."""


class Written(NamedTuple):
    """One record.

    Attributes:
        batch_offset: base offset of its batch.
        offset: its own.
        producer_id: -1 none.
        producer_epoch: -1 none.
        is_transactional: 1 where it was written in a transaction, else 0.
        create_ms: CreateTime; None where the broker wrote its own time over it.
    """

    batch_offset: int
    offset: int
    producer_id: int
    producer_epoch: int
    is_transactional: int
    create_ms: int | None

    @property
    def session(self) -> tuple[int, int]:
        """Within it the broker itself refuses what it has; transactions of one id may raise the epoch (KIP-890)."""
        return self.producer_id, -1 if self.is_transactional else self.producer_epoch


class Repeat(NamedTuple):
    """A record whose content stands earlier in its partition."""

    label: str
    earlier: Written
    later: Written


def repeats(written: Iterable[Written]) -> Iterator[Repeat]:
    """What was probably written twice, of records of one content in one partition, in order of their offsets.

    `resent`: CreateTime is equal and the producer's session another; without producer id, the batch. `repeated`:
    the content stands there exactly twice, by two sessions at two times. A content that comes back more often is a
    constant and says nothing.
    """
    at_time: dict[int, Written] = {}
    first: Written | None = None
    last: Written | None = None
    count = 0
    is_told = False
    for one in written:
        count += 1
        first, last = first or one, one
        if one.create_ms is None:
            continue
        earlier = at_time.get(one.create_ms)
        if earlier is None:
            if len(at_time) < TIMES_KEPT:
                at_time[one.create_ms] = one
        elif _is_other(earlier, one):
            is_told = True
            yield Repeat(RESENT, earlier, one)
    if first is None or last is None or count != 2 or is_told:
        return
    if first.session != last.session and NO_PRODUCER_ID not in (
        first.producer_id,
        last.producer_id,
    ):
        yield Repeat(REPEATED, first, last)


def _is_other(earlier: Written, later: Written) -> bool:
    if earlier.session != later.session:
        return True
    return later.producer_id == NO_PRODUCER_ID and earlier.batch_offset != later.batch_offset


def statements(
    copy: int, topic: str, partition: int, found: Iterable[Repeat]
) -> Iterator[Statement]:
    """One for each class and batch that holds such records."""
    batches: dict[tuple[str, int], list[Repeat]] = {}
    for one in found:
        batches.setdefault((one.label, one.later.batch_offset), []).append(one)
    for (label, batch_offset), same in sorted(batches.items()):
        yield _statement(copy, topic, partition, label, batch_offset, same)


def _statement(
    copy: int, topic: str, partition: int, label: str, batch_offset: int, same: list[Repeat]
) -> Statement:
    same = sorted(same, key=lambda one: one.later.offset)
    later, earlier = same[0].later, same[0].earlier
    times = [one.later.create_ms for one in same if one.later.create_ms is not None]
    has_ids = NO_PRODUCER_ID not in (later.producer_id, earlier.producer_id)
    when = "with equal CreateTime" if label == RESENT else "at another time"
    if None in (later.create_ms, earlier.create_ms):
        when = "at times that are not known"
    many = counted(len(same), "record")
    stand = plural(len(same), "stands", "stand")
    return Statement(
        copy, label, "major" if has_ids else "minor",
        "consistent_with" if label == RESENT else "suspicion",
        f"{many} of the batch at offset {batch_offset} of {topic}-{partition} {stand} there before",
        f"{_who(later)} wrote {many} whose key, value and headers were written before, "
        f"{when}: first offset {later.offset}, which repeats offset {earlier.offset} by {_who(earlier).lower()}. "
        "The broker tells a retry by its sequence number, and that begins anew with another session. All of them "
        "can be read: none belongs to an aborted transaction.",
        topic=topic, partition=partition, producer_id=later.producer_id if later.producer_id >= 0 else None,
        producer_epoch=later.producer_epoch if later.producer_id >= 0 else None,
        first_offset=batch_offset, last_offset=same[-1].later.offset,
        first_timestamp_ms=min(times, default=None), last_timestamp_ms=max(times, default=None),
        places=(
            Place(topic, partition, earlier.batch_offset, "batch with the first of the earlier records"),
            Place(topic, partition, batch_offset, "batch that repeats them"),
        ),
    )  # fmt: skip


def _who(one: Written) -> str:
    if one.producer_id == NO_PRODUCER_ID:
        return "A producer without id"
    return f"Producer {one.producer_id} epoch {one.producer_epoch}"
