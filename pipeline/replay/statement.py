"""What a rule says about one place: the words and figures of a finding, made where its facts are."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A batch, marker or record that proves it; the offset says which."""

    topic: str
    partition: int
    offset: int
    what: str


class Statement(NamedTuple):
    """A row of `gold.finding` without what is the same for a whole detector.

    Attributes:
        copy: Copy of the cluster.
        label: Class of the finding.
        severity: critical, major, minor or info.
        certainty: proven, proven_if_complete, consistent_with or suspicion.
        title: One line.
        explanation: Sentences with figures.
        topic: Topic, where there is one; so are partition, ids, offsets and times (ms) behind it.
        places: What proves it.
    """

    copy: int
    label: str
    severity: str
    certainty: str
    title: str
    explanation: str
    topic: str | None = None
    partition: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    transactional_id: str | None = None
    group_id: str | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    places: tuple[Place, ...] = ()


DDL = (
    "copy int, label string, severity string, certainty string, title string, explanation string, "
    "topic string, partition int, producer_id bigint, producer_epoch int, transactional_id string, "
    "group_id string, first_offset bigint, last_offset bigint, first_timestamp_ms bigint, "
    "last_timestamp_ms bigint, "
    "places array<struct<topic:string,partition:int,offset:bigint,what:string>>"
)
"""The fields of `Statement` as columns."""


def span(milliseconds: int) -> str:
    """A time span as people say it."""
    for unit, size in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if milliseconds >= 2 * size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds} ms"
