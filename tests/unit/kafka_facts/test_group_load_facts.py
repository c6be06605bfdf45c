"""Facts of Kafka's own `GroupMetadataManagerTest` (the classic coordinator): what is read from `__consumer_offsets`.

Of a group the audit keeps generation, protocol type and number of members; members and leaders by name it does not.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest

from pipeline.wire import group_offsets
from pipeline.wire.errors import WireError
from pipeline.wire.group_offsets import GroupRecord, OffsetCommit, UnknownGroupRecord
from tests import builders
from tests.builders import ABORT, NOW_MS, Rec
from tests.unit.kafka_facts.offset_story import (
    GROUP,
    NO_GROUP,
    Story,
    at,
    decided,
    expires,
    gone,
    group,
    group_gone,
    group_value,
    groups,
    has,
    marks,
    tell,
    waits,
    writes,
)

OF = "GroupMetadataManagerTest"
PRODUCER, OTHER = 1000, 1001
THREE = {"foo-0": 23, "foo-1": 455, "bar-0": 8992}
MORE = {"foo-2": 231, "foo-3": 4551, "bar-1": 89921}
LATER = {"foo-3": 2312, "foo-4": 45512, "bar-2": 899212}
STABLE = {GROUP: (935, "consumer", 1)}
UNKNOWN = [Rec(struct.pack(">h", 32767) + builders.string(GROUP), b"\0\0")]
KEY = builders.offset_key(GROUP, "bar", 0)

LOADED = [
    Story(OF, "testLoadOffsetsWithoutGroup", [writes(at(THREE)), has(THREE), groups(NO_GROUP)]),
    Story(OF, "testLoadEmptyGroupWithOffsets",
          [writes(at(THREE), group(15)), has(THREE), groups({GROUP: (15, "consumer", 0)})]),
    Story(OF, "testLoadOffsetsWithTombstones",
          [writes(at(THREE), gone("foo-1")), has({"foo-0": 23, "bar-0": 8992})]),
    Story(OF, "testLoadOffsetsAndGroup",
          [writes(at(THREE), group(935, members=1)), has(THREE), groups(STABLE), expires(-1)]),
    Story(OF, "testLoadGroupWithTombstone",
          [writes(group(15, members=1), group_gone()), groups(NO_GROUP), has({})]),
    Story(OF, "testLoadGroupWithLargeGroupMetadataRecord", [
        writes(at(THREE), group(15, members=1, assignment=bytes(5 * 1024 * 1024 + 16))), has(THREE),
        groups({GROUP: (15, "consumer", 1)}),
    ]),
    Story(OF, "testOffsetWriteAfterGroupRemoved",
          [writes(group(293, members=1), group_gone(), at(THREE)), has(THREE), groups(NO_GROUP)]),
    Story(OF, "testLoadGroupAndOffsetsFromDifferentSegments", [
        writes(at({"foo-0": 23, "foo-1": 455, "xxx-0": 42}), group(293, members=1)),
        writes(at({"foo-0": 33, "bar-0": 8992, "xxx-0": 10}), group(293, members=1)),
        has({"foo-0": 33, "foo-1": 455, "bar-0": 8992, "xxx-0": 10}), groups({GROUP: (293, "consumer", 1)}),
    ]),
    Story(OF, "testLoadOffsetFromOldCommit", [
        writes(at(THREE, expire_ms=NOW_MS + 100), group(935, members=1, version=1)), has(THREE), groups(STABLE),
        expires(NOW_MS + 100),
    ]),
    Story(OF, "testLoadOffsetWithExplicitRetention", [
        writes(at(THREE, expire_ms=NOW_MS + 100), group(935, members=1)), has(THREE), groups(STABLE),
        expires(NOW_MS + 100),
    ]),
    Story(OF, "testLoadGroupsAndOffsetsWillIgnoreUnknownMessage",
          [writes(at(THREE), UNKNOWN, group(935, members=1)), has(THREE), groups(STABLE), expires(-1)]),
    Story(OF, "testLoadOffsetsWithEmptyControlBatch", [
        marks(PRODUCER, None), writes(at(THREE), group(15)), has(THREE), groups({GROUP: (15, "consumer", 0)}),
    ]),
]  # fmt: skip

IN_TRANSACTIONS = [
    Story(OF, "testLoadTransactionalOffsetsWithoutGroup", [
        writes(at(THREE), by=PRODUCER), marks(PRODUCER), has(THREE), waits({}), groups(NO_GROUP),
    ]),
    Story(OF, "testDoNotLoadAbortedTransactionalOffsetCommits", [
        writes(at(THREE), by=PRODUCER), marks(PRODUCER, ABORT), has({}), waits({}), groups(NO_GROUP),
    ]),
    Story(OF, "testGroupLoadedWithPendingCommits",
          [writes(at(THREE), by=PRODUCER), has({}), waits({PRODUCER: set(THREE)})]),
    Story(OF, "testLoadWithCommittedAndAbortedTransactionalOffsetCommits", [
        writes(at(MORE), by=PRODUCER), marks(PRODUCER, ABORT), writes(at(THREE), by=PRODUCER), marks(PRODUCER),
        has(THREE), waits({}),
    ]),
    Story(OF, "testLoadWithCommittedAndAbortedAndPendingTransactionalOffsetCommits", [
        writes(at(THREE), by=PRODUCER), marks(PRODUCER), writes(at(MORE), by=PRODUCER), marks(PRODUCER, ABORT),
        writes(at(LATER), by=PRODUCER), has(THREE), waits({PRODUCER: set(LATER)}), marks(PRODUCER), waits({}),
        has(THREE | LATER),
    ]),
    Story(OF, "testLoadTransactionalOffsetCommitsFromMultipleProducers", [
        writes(at(THREE), by=PRODUCER), marks(PRODUCER), writes(at(MORE), by=OTHER), marks(OTHER),
        has(THREE | MORE), waits({}),
    ]),
    Story(OF, "testGroupLoadWithConsumerAndTransactionalOffsetCommitsConsumerWins", [
        writes(at({"foo-0": 23}), by=PRODUCER), writes(at({"foo-0": 24})), marks(PRODUCER), has({"foo-0": 24}),
        waits({}),
    ]),
    Story(OF, "testGroupLoadWithConsumerAndTransactionalOffsetCommitsTransactionWins", [
        writes(at({"foo-0": 24})), writes(at({"foo-0": 23}), by=PRODUCER), marks(PRODUCER), has({"foo-0": 23}),
        waits({}),
    ]),
    Story(OF, "testTransactionalCommitOffsetCommitted", [
        writes(at({"foo-0": 37}), by=232), has({}), waits({232: {"foo-0"}}), marks(232), has({"foo-0": 37}),
        waits({}),
    ]),
    Story(OF, "testTransactionalCommitOffsetAborted", [
        writes(at({"foo-0": 37}), by=232), has({}), waits({232: {"foo-0"}}), marks(232, ABORT), has({}), waits({}),
    ]),
    # Its append failed, so nothing of it is in the log.
    Story(OF, "testTransactionalCommitOffsetAppendFailure",
          [has({}), waits({}), marks(232, ABORT), has({}), waits({})]),
    # The second offset was refused for its metadata.
    Story(OF, "testTransactionalCommitOffsetWithOffsetMetadataTooLargePartialFailure", [
        writes(at({"foo-0": 37}), by=232), has({}), waits({232: {"foo-0"}}), marks(232), has({"foo-0": 37}),
    ]),
]  # fmt: skip

STORED: list[Story] = [
    Story(OF, "testCommitOffset", [has({}), writes(at({"foo-0": 37})), has({"foo-0": 37})]),
    Story(OF, "testExpireOffset", [
        writes(at({"foo-0": 37}, expire_ms=NOW_MS + 1) + at({"foo-1": 37}, expire_ms=NOW_MS + 3)),
        has({"foo-0": 37, "foo-1": 37}), writes(gone("foo-0")), has({"foo-1": 37}),
    ]),
    Story(OF, "testExpireGroupWithOffsetsOnly", [
        writes(at({"foo-0": 37}, expire_ms=NOW_MS + 1) + at({"foo-1": 37}, expire_ms=NOW_MS + 3)),
        writes(gone("foo-0", "foo-1")), decided("deleted", 2), has({}), groups(NO_GROUP),
    ]),
    Story(OF, "testGroupMetadataRemoval", [writes(group(5)), writes(group_gone()), groups(NO_GROUP), has({})]),
    Story(OF, "testStoreEmptyGroup", [writes(group(27)), groups({GROUP: (27, "consumer", 0)})]),
    Story(OF, "testStoreEmptySimpleGroup", [writes(group(0, "")), groups({GROUP: (0, "", 0)})]),
]  # fmt: skip
STORIES = [*LOADED, *IN_TRANSACTIONS, *STORED]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_group(story: Story) -> None:
    tell(story)


class Value(NamedTuple):
    """A record's key and value, and what is read of them."""

    name: str
    key: bytes
    value: bytes
    wanted: OffsetCommit | GroupRecord | UnknownGroupRecord


def offset(
    version: int, value: int = 537, epoch: int = -1, time_ms: int = NOW_MS, expire_ms: int = -1
) -> OffsetCommit:
    return OffsetCommit(GROUP, "bar", 0, version, value, epoch, 8, time_ms, expire_ms, None)


def written(version: int, value: int = 537, **fields: int) -> bytes:
    return builders.offset_value(value, version=version, metadata="metadata", **fields)


def with_tags(value: bytes, tags: dict[int, bytes]) -> bytes:
    return value[:-1] + builders.tags(tags)


FUTURE = {1: builders.string("foo"), 2: struct.pack(">i", 4000)}
"""Tags that nobody knows; tag 0 of an offset commit is its topic id by now."""
STATE = builders.group_key("group")
VALUES = [
    *(
        Value("testSerdeOffsetCommitValue", KEY, written(version, leader_epoch=15), offset(version, epoch=epoch))
        for version, epoch in ((1, -1), (2, -1), (3, 15))
    ),
    Value("testSerdeOffsetCommitValueWithExpireTimestamp", KEY, written(1, expire_ms=NOW_MS + 1000),
          offset(1, expire_ms=NOW_MS + 1000)),
    *(
        Value("testSerdeOffsetCommitValueWithNoneExpireTimestamp", KEY, written(version), offset(version))
        for version in (1, 2, 3)
    ),
    Value("testDeserializeHighestSupportedOffsetCommitValueVersion", KEY,
          written(4, 1000, commit_ms=1500, leader_epoch=1), offset(4, 1000, 1, 1500)),
    Value("testDeserializeFutureOffsetCommitValue", KEY,
          with_tags(written(4, 1000, commit_ms=2000, leader_epoch=100), FUTURE), offset(4, 1000, 100, 2000)),
    Value("testDeserializeHighestSupportedGroupMetadataValueVersion", STATE,
          group_value(935, "consumer", 1, version=4), GroupRecord(2, "group", None, 4, 935, 1, "consumer", False)),
    Value("testDeserializeFutureGroupMetadataValue", STATE,
          group_value(10, "consumer", 1, version=4, tags={0: builders.string("foo"), 1: struct.pack(">i", 4000)}),
          GroupRecord(2, "group", None, 4, 10, 1, "consumer", False)),
    *(
        Value("testReadFromOldGroupMetadata", STATE, group_value(1, "protocolType", 1, version=version),
              GroupRecord(2, "group", None, version, 1, 1, "protocolType", False))
        for version in (0, 1, 2)
    ),
    Value("testReadMessageKeyCanReadUnknownMessage", UNKNOWN[0].key or b"", b"", UnknownGroupRecord(32767, 7, 0)),
]  # fmt: skip


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case.name)
def test_what_is_read(case: Value) -> None:
    assert group_offsets.decode(case.key, case.value) == case.wanted


def test_a_version_that_nobody_knows() -> None:
    """`GroupMetadataManagerTest.testShouldThrowExceptionForUnsupportedGroupMetadataVersion`."""
    value = struct.pack(">h", -32768) + group_value(1, "protocolType", 1, version=3)[2:]
    with pytest.raises(WireError, match="group metadata of version -32768"):
        group_offsets.decode(STATE, value)
