"""Keys of records as the dump tool prints them, empty names among them."""

from __future__ import annotations

import pytest

from pipeline.wire.dump_text_keyed import group_entry
from pipeline.wire.errors import WireError
from pipeline.wire.group_offsets import OffsetCommit


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (" key: offset_commit::group=g,partition=my-topic-1 payload: offset=5", ("g", "my-topic", 1, 5)),
        (" key: offset_commit::group=,partition=t-1 payload: offset=5", ("", "t", 1, 5)),
        (" key: offset::g:t:1 payload: offset=5", ("g", "t", 1, 5)),
        (" key: offset:::t:1 payload: offset=5", ("", "t", 1, 5)),
    ],
)  # fmt: skip
def test_a_commit(line: str, expected: tuple[str, str, int, int]) -> None:
    entry = group_entry(line)
    assert isinstance(entry, OffsetCommit)
    found = (entry.group_id, entry.topic, entry.partition, entry.offset)
    assert found == expected


@pytest.mark.parametrize("key", ["offset_commit::group=g,partition=-0", "offset::g::0"])
def test_a_commit_without_a_topic_is_no_record(key: str) -> None:
    with pytest.raises(WireError, match="without a topic"):
        group_entry(f" key: {key} payload: offset=1")
