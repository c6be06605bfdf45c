"""Which Kafka versions can have written what a log holds: lower bounds, proven by formats.

A value is written by the broker that leads its partition, and one leader epoch has one leader: what a value proves of
that broker holds for all that this leader epoch wrote there, before and behind it, and for no other, because clusters
are upgraded and downgraded a broker at a time. Only what needs a feature of the whole cluster (transaction.version)
bounds every broker, from that record on. An old format proves nothing.

Source: `TransactionLogValue` (KIP-890, KIP-1022; its PreviousProducerId: KAFKA-20310), `OffsetCommitValue` (KIP-320;
its TopicId: KAFKA-19141), `GroupCoordinatorRecordHelpers.offsetCommitValueVersion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from pipeline.replay.statement import Place, Statement
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

Version = tuple[int, ...]
Leader = tuple[int, str, int, int]
"""Copy, topic, partition, leader epoch."""
Key = TypeVar("Key")
ALL_NEW: Version = (4, 0)
"""What a value of version 1 in `__transaction_state` proves of every broker."""
NAMES_PREVIOUS_ID = -2
"""In the place of a value's version: a value of `__transaction_state` that holds PreviousProducerId."""


class Format(NamedTuple):
    """What a format proves.

    Attributes:
        leader: First version of which a broker writes it.
        every: First version of which all brokers have to be before one does; None where each decides for itself.
        text: What it is.
    """

    leader: Version
    every: Version | None
    text: str


FORMATS: Mapping[tuple[str, int], Format] = {
    (TXN_TOPIC, 1): Format(ALL_NEW, ALL_NEW, "a value of version 1"),
    (TXN_TOPIC, NAMES_PREVIOUS_ID): Format((4, 3), ALL_NEW, "a value with PreviousProducerId"),
    (OFFSETS_TOPIC, 2): Format((2, 1), None, "a value of version 2"),
    (OFFSETS_TOPIC, 3): Format((2, 1), None, "a value of version 3"),
    (OFFSETS_TOPIC, 4): Format((4, 1), None, "a value of version 4"),
}
"""Topic and version of a value -> what it proves."""
FIXES: Mapping[tuple[str, str], tuple[str, Version]] = {
    ("coordinator_state", "double_epoch_bump"): ("KAFKA-19367", (4, 0, 1)),
    ("offset_race", "window"): ("KAFKA-17507", (3, 9, 1)),
    ("offset_race", "bypass"): ("KAFKA-17507", (3, 9, 1)),
    ("offset_race", "early_completion"): ("KAFKA-17877", (4, 0)),
}
"""Class that names one defect -> the defect and the release that has the fix, as all later ones do."""


class Evidence(NamedTuple):
    """The first record of a format that one leader of one partition wrote."""

    copy: int
    topic: str
    partition: int
    leader_epoch: int
    value_version: int
    offset: int
    timestamp_ms: int | None


class Bound(NamedTuple):
    """A version that brokers have at least, and what proves it."""

    version: Version
    evidence: Evidence


def is_fixed(code: str, label: str, bound: Version | None) -> bool:
    """Whether a lower bound excludes the one defect that a class names."""
    fix = FIXES.get((code, label))
    return fix is not None and bound is not None and bound >= fix[1]


def parsed(version: str | None) -> Version | None:
    """A version that the user gave, for instance 3.9.1."""
    return None if version is None else tuple(int(part) for part in version.split("."))


def of_all(found: Iterable[Evidence]) -> dict[int, Bound]:
    """Copy -> the greatest lower bound of all its brokers, which holds from its evidence on."""
    best: dict[int, Bound] = {}
    for one in found:
        proven = FORMATS.get((one.topic, one.value_version))
        if proven is not None and proven.every is not None:
            _keep(best, one.copy, Bound(proven.every, one))
    return best


def of_leaders(found: Iterable[Evidence]) -> dict[Leader, Bound]:
    """The greatest lower bound of each leader of an internal topic's partition, where anything proves one."""
    best: dict[Leader, Bound] = {}
    for one in found:
        proven = FORMATS.get((one.topic, one.value_version))
        if proven is not None:
            leader = (one.copy, one.topic, one.partition, one.leader_epoch)
            _keep(best, leader, Bound(proven.leader, one))
    return best


def _keep(best: dict[Key, Bound], key: Key, bound: Bound) -> None:
    """Keeps the greater one; of equals the one that was proven first."""
    best[key] = max(bound, best.get(key, bound), key=_strength)


def _strength(bound: Bound) -> tuple[Version, int]:
    return bound.version, -(bound.evidence.timestamp_ms or 2**62)


def greatest(leaders: Mapping[Leader, Bound]) -> dict[int, Bound]:
    """Copy -> the greatest of its leaders' bounds."""
    best: dict[int, Bound] = {}
    for (copy, *_), bound in leaders.items():
        _keep(best, copy, bound)
    return best


def text(version: Version) -> str:
    """A version as people write it."""
    return ".".join(str(part) for part in version)


def all_brokers(bound: Bound) -> Statement:
    """The lower bound of a copy's brokers as a statement."""
    return _stated(
        bound,
        f"brokers are of Kafka {text(bound.version)} or later",
        f"which a broker writes only where all of the cluster are of Kafka {text(bound.version)} or later",
    )


def one_broker(bound: Bound) -> Statement:
    """The lower bound of the one broker that led a partition as a statement."""
    one = bound.evidence
    return _stated(
        bound,
        f"a broker is of Kafka {text(bound.version)} or later",
        f"which Kafka {text(bound.version)} and later write. It was written in leader epoch {one.leader_epoch}: this "
        "is proven of the broker that led then, not of the others, which an upgrade may not have reached",
    )


def _stated(bound: Bound, title: str, proof: str) -> Statement:
    one = bound.evidence
    what = FORMATS[one.topic, one.value_version].text
    return Statement(
        one.copy, "broker_version", "info", "proven", title,
        f"{one.topic}-{one.partition} holds {what} at offset {one.offset}, {proof}.",
        topic=one.topic, partition=one.partition, first_offset=one.offset,
        first_timestamp_ms=one.timestamp_ms,
        places=(Place(one.topic, one.partition, one.offset, "first value of that format"),),
    )  # fmt: skip


def transaction_versions(copy: int, counts: Mapping[int, int]) -> Statement:
    """Which transaction.version the copy's transactions have, with how many of each.

    Version 0 and 1 are told apart only by the format of the value; version 2 by its tag or by the raised epoch.
    """
    said = ", ".join(f"{counts[one]} of version {one}" for one in sorted(counts))
    newest = max(counts)
    return Statement(
        copy, "transaction_version", "info", "proven", f"transactions run under transaction.version {newest}"
        + ("" if len(counts) == 1 else " and below"),
        f"Transactions: {said}. Below version 2 a late write can join the producer's next transaction (KIP-890); "
        "clients older than 4.0 and librdkafka keep the older behaviour on newer brokers.",
    )  # fmt: skip


def group_coordinator(copy: int, one: Evidence) -> Statement:
    """The group coordinator's generation, where its records show the new one."""
    return Statement(
        copy, "group_coordinator", "info", "proven", "the new group coordinator wrote offsets",
        f"Offset commits of version {one.value_version}, such as at offset {one.offset} of {one.topic}-"
        f"{one.partition} in leader epoch {one.leader_epoch}, are written only by the group coordinator of KIP-848, "
        "which has no race of KAFKA-17507.",
        topic=one.topic, partition=one.partition, first_offset=one.offset,
        places=(Place(one.topic, one.partition, one.offset, "first commit of that version"),),
    )  # fmt: skip
