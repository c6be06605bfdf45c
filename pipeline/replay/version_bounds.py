"""Which Kafka versions can have written what a log holds: lower bounds, proven by formats.

A value of a newer version is written only by brokers that know it, for most of them only once every broker does
(metadata.version, transaction.version). A bound therefore holds for the copy from that record on; it says nothing of
what came before, and an old format proves nothing.

Source: `TransactionLogValue` (KIP-890, KIP-1022), `OffsetCommitValue` (KIP-320, KIP-848), `CoordinatorRecordType`,
`PartitionMetadataFile` (KIP-516), `MetaProperties` (KIP-858), `CleanShutdownFileHandler` (KIP-966).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pipeline.replay.statement import Place, Statement

Version = tuple[int, ...]
TXN_VALUES: Mapping[int, Version] = {1: (4, 0)}
"""Version of a `__transaction_state` value -> first Kafka that writes it."""
OFFSET_VALUES: Mapping[int, Version] = {2: (2, 1), 3: (2, 1), 4: (4, 1)}
"""Version of an offset commit -> first Kafka that writes it."""
FIXES: Mapping[tuple[str, str], tuple[str, Version]] = {
    ("coordinator_state", "double_epoch_bump"): ("KAFKA-19367", (4, 1)),
    ("offset_race", "window"): ("KAFKA-17507", (3, 9, 1)),
}
"""Class that names one defect -> the defect and the first release of which every broker has the fix."""


class Evidence(NamedTuple):
    """The first record of a format in one partition."""

    copy: int
    topic: str
    partition: int
    value_version: int
    offset: int
    timestamp_ms: int | None


class Bound(NamedTuple):
    """From a record on, brokers of the copy are at least of this version."""

    copy: int
    version: Version
    evidence: Evidence


def is_fixed(code: str, label: str, bound: Version | None) -> bool:
    """Whether a lower bound excludes the one defect that a class names."""
    fix = FIXES.get((code, label))
    return fix is not None and bound is not None and bound >= fix[1]


def strongest(bounds: list[Bound]) -> Bound | None:
    """The greatest version; of equals the one that was proven first."""
    return max(
        bounds, key=lambda one: (one.version, -(one.evidence.timestamp_ms or 2**62)), default=None
    )


def bounds(found: list[Evidence], values: Mapping[int, Version]) -> list[Bound]:
    """A bound for each format that proves one."""
    return [
        Bound(one.copy, values[one.value_version], one)
        for one in found
        if one.value_version in values
    ]


def text(version: Version) -> str:
    """A version as people write it."""
    return ".".join(str(part) for part in version)


def broker_version(bound: Bound) -> Statement:
    """The lower bound as a statement."""
    one = bound.evidence
    return Statement(
        bound.copy, "broker_version", "info", "proven", f"brokers are of Kafka {text(bound.version)} or later",
        f"{one.topic}-{one.partition} holds a value of version {one.value_version} from offset {one.offset} on: only "
        f"Kafka {text(bound.version)} and later write it.",
        topic=one.topic, partition=one.partition, first_offset=one.offset,
        first_timestamp_ms=one.timestamp_ms,
        places=(Place(one.topic, one.partition, one.offset, "first value of that version"),),
    )  # fmt: skip


def transaction_versions(copy: int, counts: Mapping[int, int]) -> Statement:
    """Which transaction.version the copy's transactions have, with how many of each.

    Version 0 and 1 are told apart only by the format of the value; version 2 by its tag or by the raised epoch.
    """
    said = ", ".join(f"{counts[one]} of version {one}" for one in sorted(counts))
    newest = max(counts)
    return Statement(
        copy, "transaction_version", "info", "proven", f"transactions of transaction.version {newest}"
        + ("" if len(counts) == 1 else " and below"),
        f"Transactions: {said}. Below version 2 a late write can join the producer's next transaction (KIP-890); "
        "clients older than 4.0 and librdkafka keep the older behaviour on newer brokers.",
    )  # fmt: skip


def group_coordinator(copy: int, one: Evidence) -> Statement:
    """The group coordinator's generation, where its records show the new one."""
    return Statement(
        copy, "group_coordinator", "info", "proven", "the new group coordinator wrote offsets",
        f"Offset commits of version {one.value_version} from offset {one.offset} of {one.topic}-{one.partition} on are "
        "written only by the group coordinator of KIP-848, which has no race of KAFKA-17507.",
        topic=one.topic, partition=one.partition, first_offset=one.offset,
        places=(Place(one.topic, one.partition, one.offset, "first commit of that version"),),
    )  # fmt: skip
