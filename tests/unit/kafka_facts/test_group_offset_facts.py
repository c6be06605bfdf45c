"""Facts of Kafka's own `OffsetMetadataManagerTest` and `GroupMetadataTest`: which offsets count, and which wait.

What is asked of a coordinator is not in a log: these are the records that it writes then, or that it does not write.
"""

from __future__ import annotations

import pytest

from tests.builders import ABORT
from tests.unit.kafka_facts.offset_story import (
    Step,
    Story,
    at,
    decided,
    gone,
    has,
    marks,
    tell,
    waits,
    writes,
)

NEW, GROUP = "OffsetMetadataManagerTest", "GroupMetadataTest"
FIVE: list[Step] = [
    has({}), writes(at({"foo-0": 100})), has({"foo-0": 100}), writes(at({"foo-1": 110})),
    has({"foo-0": 100, "foo-1": 110}), writes(at({"bar-0": 200})),
    has({"foo-0": 100, "foo-1": 110, "bar-0": 200}), writes(at({"foo-1": 111})),
    has({"foo-0": 100, "foo-1": 111, "bar-0": 200}), writes(at({"bar-1": 210})),
    has({"foo-0": 100, "foo-1": 111, "bar-0": 200, "bar-1": 210}),
]  # fmt: skip
"""A fetch sees what was committed up to an offset of the log."""
UNSTABLE: list[Step] = [
    writes(at({"foo-0": 100})), writes(at({"foo-1": 110})), writes(at({"bar-0": 200})),
    writes(at({"foo-1": 111}), by=10), writes(at({"bar-0": 201}), by=10), writes(at({"bar-1": 211}), by=10),
    waits({10: {"foo-1", "bar-0", "bar-1"}}), has({"foo-0": 100, "foo-1": 110, "bar-0": 200}), marks(10),
    waits({}), has({"foo-0": 100, "foo-1": 111, "bar-0": 201, "bar-1": 211}),
]  # fmt: skip
"""A fetch that requires stable offsets is refused what waits, another gets what counted before."""
THREE = writes(at({"bar-0-0": 100, "bar-0-1": 100, "bar-1-0": 100}))

REPLAYED = [
    Story(NEW, "testReplay", [
        writes(at({"bar-0": 100})), has({"bar-0": 100}), writes(at({"bar-0": 200})), has({"bar-0": 200}),
        writes(at({"bar-1": 200})), has({"bar-0": 200, "bar-1": 200}),
        writes(at({"bar-1": 300}, expire_ms=12345)), has({"bar-0": 200, "bar-1": 300}),
    ]),
    Story(NEW, "testTransactionalReplay", [
        writes(at({"bar-0": 100}), by=5), waits({5: {"bar-0"}}), writes(at({"bar-1": 101}), by=5),
        writes(at({"bar:zar-0": 100}), by=5), writes(at({"bar:zar-1": 101}), by=5),
        waits({5: {"bar-0", "bar-1", "bar:zar-0", "bar:zar-1"}}), writes(at({"bar-2": 102}), by=6),
        writes(at({"bar-3": 102}), by=6), has({}),
        waits({5: {"bar-0", "bar-1", "bar:zar-0", "bar:zar-1"}, 6: {"bar-2", "bar-3"}}),
    ]),
    Story(NEW, "testReplayWithTombstoneAndPendingTransactionalOffsets", [
        writes(at({"bar-0": 100})), has({"bar-0": 100}), writes(at({"bar-0": 100}), by=10),
        writes(at({"bar-1": 100}), by=10), waits({10: {"bar-0", "bar-1"}}), writes(gone("bar-0")),
        writes(gone("bar-1")), has({}), waits({}),
    ]),
    Story(NEW, "testReplayTransactionEndMarkerWithCommit", [
        writes(at({"bar-0": 99})), writes(at({"bar-0": 100}), by=5), writes(at({"bar-1": 200}), by=6),
        waits({5: {"bar-0"}, 6: {"bar-1"}}), marks(1), has({"bar-0": 99}), marks(5), has({"bar-0": 100}),
        waits({6: {"bar-1"}}), marks(6, ABORT), has({"bar-0": 100}), waits({}),
    ]),
    Story(NEW, "testReplayTransactionEndMarkerKeepsTheMostRecentCommittedOffset", [
        writes(at({"bar-0": 100}), by=5), writes(at({"bar-0": 101})), has({"bar-0": 101}), marks(5), waits({}),
        has({"bar-0": 101}),
    ]),
    Story(NEW, "testOffsetCommitsNumberMetricWithTransactionalOffsets", [
        writes(at({"bar-0": 100}), by=4), writes(at({"bar-0": 101}), by=5), writes(at({"bar-1": 200}), by=6),
        marks(4), marks(5), marks(6), has({"bar-0": 101, "bar-1": 200}),
        decided("materialised", 2, is_new=True),
    ]),
    Story(NEW, "testFetchOffsetsAtDifferentCommittedOffset", FIVE),
    Story(NEW, "testFetchAllOffsetsAtDifferentCommittedOffset", FIVE),
    Story(NEW, "testFetchOffsetsWithPendingTransactionalOffsets", UNSTABLE),
    Story(NEW, "testFetchAllOffsetsWithPendingTransactionalOffsets", UNSTABLE),
]  # fmt: skip

DELETED = [
    Story(NEW, "testGenericGroupOffsetDelete",
          [writes(at({"bar-0": 100})), has({"bar-0": 100}), writes(gone("bar-0")), has({})]),
    Story(NEW, "testConsumerGroupOffsetDelete",
          [writes(at({"bar-0": 100})), has({"bar-0": 100}), writes(gone("bar-0")), has({})]),
    Story(NEW, "testGenericGroupOffsetDeleteWithPendingTransactionalOffsets", [
        writes(at({"bar-0": 100}), by=10), waits({10: {"bar-0"}}), writes(gone("bar-0")), has({}), waits({}),
    ]),
    Story(NEW, "testConsumerGroupOffsetDeleteWithPendingTransactionalOffsets", [
        writes(at({"bar-0": 100}), by=10), waits({10: {"bar-0"}}), writes(gone("bar-0")), has({}), waits({}),
    ]),
    Story(NEW, "testDeleteGroupAllOffsets", [
        THREE, writes(gone("bar-1-0", "bar-0-0", "bar-0-1")), decided("deleted", 3), has({}),
    ]),
    Story(NEW, "testDeleteGroupAllOffsetsWithPendingTransactionalOffsets", [
        THREE, writes(at({"bar-1-0": 101, "bar-2-0": 100}), by=10),
        writes(gone("bar-1-0", "bar-0-0", "bar-0-1", "bar-2-0")), has({}), waits({}),
    ]),
    Story(NEW, "testCleanupExpiredOffsets", [
        writes(at({"first-0": 100, "second-0": 100, "second-1": 100})), writes(gone("second-0")),
        has({"first-0": 100, "second-1": 100}), writes(gone("second-1")), has({"first-0": 100}),
        writes(at({"first-1": 100, "second-0": 101})), writes(gone("first-0", "first-1", "second-0")), has({}),
    ]),
    Story(NEW, "testCleanupExpiredOffsetsWithPendingTransactionalOffsets", [
        writes(at({"foo-0": 100})), writes(at({"foo-0": 101}), by=10), has({"foo-0": 100}),
        waits({10: {"foo-0"}}), decided("deleted", 0),
    ]),
    Story(NEW, "testOnPartitionsDeleted", [
        writes(at({"grp-0:foo-1": 100, "grp-0:foo-2": 200, "grp-0:foo-3": 300})),
        writes(at({"grp-1:bar-1": 100, "grp-1:bar-2": 200, "grp-1:bar-3": 300})),
        writes(at({"grp-2:foo-1": 100, "grp-2:foo-2": 200, "grp-2:foo-3": 300}), by=100),
        writes(gone("grp-0:foo-1", "grp-0:foo-2", "grp-0:foo-3", "grp-1:bar-1", "grp-2:foo-1", "grp-2:foo-2",
                    "grp-2:foo-3")),
        has({"grp-1:bar-2": 200, "grp-1:bar-3": 300}), waits({}),
    ]),
]  # fmt: skip

PENDING = [
    Story(GROUP, "testOffsetCommit", [has({}), writes(at({"foo-0": 37})), has({"foo-0": 37})]),
    Story(GROUP, "testOffsetCommitWithAnotherPending", [
        has({}), writes(at({"foo-0": 37})), has({"foo-0": 37}), writes(at({"foo-0": 57})), has({"foo-0": 57}),
    ]),
    Story(GROUP, "testConsumerBeatsTransactionalOffsetCommit", [
        writes(at({"foo-0": 37}), by=13232), writes(at({"foo-0": 57})), waits({13232: {"foo-0"}}),
        has({"foo-0": 57}), marks(13232), waits({}), has({"foo-0": 57}),
    ]),
    Story(GROUP, "testTransactionBeatsConsumerOffsetCommit", [
        writes(at({"foo-0": 57})), writes(at({"foo-0": 37}), by=13232), waits({13232: {"foo-0"}}),
        has({"foo-0": 57}), marks(13232), waits({}), has({"foo-0": 37}),
    ]),
    Story(GROUP, "testTransactionalCommitIsAbortedAndConsumerCommitWins", [
        writes(at({"foo-0": 57})), writes(at({"foo-0": 37}), by=13232), waits({13232: {"foo-0"}}),
        has({"foo-0": 57}), marks(13232, ABORT), waits({}), has({"foo-0": 57}),
    ]),
    # Its append failed, so nothing of it is in the log.
    Story(GROUP, "testFailedTxnOffsetCommitLeavesNoPendingState", [waits({}), marks(13232), waits({}), has({})]),
    Story(GROUP, "testHasPendingTxnOffsets", [writes(at({"foo-0": 37}), by=5), waits({5: {"foo-0"}})]),
]  # fmt: skip
STORIES = [*REPLAYED, *DELETED, *PENDING]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: f"{story.of}.{story.name}")
def test_offsets(story: Story) -> None:
    tell(story)
