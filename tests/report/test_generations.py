"""Generations of a group stand beside its commits: a commit by an old one can be seen."""

from __future__ import annotations

from typing import Any

from pipeline.report.timeline import Timelines

NOW = 1_795_000_000_000


class Tables:
    """What a timeline asks of `Facts`: a group that rebalanced between two commits."""

    def steps(self, *_: Any) -> list[Any]:
        return []

    batches = markers = steps

    def commits(self, groups: Any) -> list[dict[str, Any]]:
        assert groups == {"g"}
        return [
            {"group_id": "g", "topic": "t", "partition": 0, "record_offset": at, "append_ms": NOW + at,
             "committed_offset": value, "outcome": "materialised", "is_transactional": True, "producer_id": 7}
            for at, value in ((4, 30), (8, 12))
        ]  # fmt: skip

    def generations(self, _: Any) -> list[dict[str, Any]]:
        return [
            {"group_id": "g", "base_offset": at, "generation_or_epoch": number, "member_count": 2,
             "max_timestamp_ms": NOW + at, "record_type": 2}
            for at, number in ((2, 5), (6, 6))
        ]  # fmt: skip


def test_a_commit_is_told_with_the_generation_in_force() -> None:
    finding = {
        "producer_id": None, "transactional_id": None, "group_id": "g", "topic": "t", "partition": 0,
        "first_offset": 8, "first_timestamp_ms": NOW + 8, "last_timestamp_ms": NOW + 8,
    }  # fmt: skip
    events = Timelines(Tables(), [finding]).of(finding)  # type: ignore[arg-type]  # the questions are what counts
    assert [(one.words, one.is_accused) for one in events] == [
        ("g: generation 5, 2 members, record 2", False),
        ("g commits t-0 at 30 (materialised), record 4, in generation 5", False),
        ("g: generation 6, 2 members, record 6", False),
        ("g commits t-0 at 12 (materialised), record 8, in generation 6", True),
    ]
