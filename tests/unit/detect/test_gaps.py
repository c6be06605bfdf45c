"""A missing segment beside what looks like one and is none."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.spark.gaps import segment_gaps
from pipeline.spark.inventory import LogDir, Plan
from pipeline.spark.replica_facts import ReplicaFacts

PLACE = ReplicaFacts(
    replica_id=1, copy=0, topic="orders", partition=0, topic_id=None, broker_id=1, log_dir="/logs",
    is_replayed=True, is_one_instant=True, history_start_offset=0, log_start_offset=None,
    cleaner_offset=None, high_watermark=None, log_end_offset=40, max_leader_epoch=0,
    first_broker_ms=None, read_until_ms=None, frontier_ms=None, is_complete=False, is_damaged=False,
)  # fmt: skip
STOPPED = LogDir("/logs", is_clean_shutdown=True)


def segment(number: int, base: int, first: int | None, last: int, **fields: Any) -> dict[str, Any]:
    return {
        "segment_id": number, "replica_id": 1, "base_offset": base, "first_offset": first,
        "last_offset": last, "is_superseded": False, "max_leader_epoch": 0,
        "hole_end_offset": None, "shortened_end_offset": None, **fields,
    }  # fmt: skip


FRONT, BEHIND = segment(1, 0, 0, 9), segment(3, 20, 20, 39)
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any], list[tuple[int, int, bool]]]] = {
    "lost": ([FRONT, BEHIND], {}, [(9, 20, False)]),
    "none lost": ([FRONT, segment(2, 10, 10, 19), BEHIND], {}, []),
    "the first ones removed by retention": ([BEHIND], {}, []),
    "copied from a running broker": ([FRONT, BEHIND], {"log_dir": LogDir("/logs")}, [(9, 20, True)]),
    "below the log start": ([FRONT, BEHIND], {"log_start_offset": 20}, []),
    "partly below the log start": ([FRONT, BEHIND], {"log_start_offset": 15}, [(9, 20, False)]),
    "the cleaner was there": (
        [FRONT, BEHIND],
        {"log_dir": LogDir("/logs", is_clean_shutdown=True, cleaner_offsets={("orders", 5): 3})}, [],
    ),
    "the cleaner was elsewhere": (
        [FRONT, BEHIND],
        {"log_dir": LogDir("/logs", is_clean_shutdown=True, cleaner_offsets={("other", 0): 3})},
        [(9, 20, False)],
    ),
    "a hole inside a segment": ([segment(1, 0, 0, 9, hole_end_offset=5), BEHIND], {}, []),
    "a shortened batch": ([FRONT, segment(3, 20, 20, 39, shortened_end_offset=30)], {}, []),
    "an internal topic": ([FRONT, BEHIND], {"topic": "__consumer_offsets"}, []),
    "damage at its edge": ([FRONT, BEHIND], {"unreadable": [{"segment_id": 1}]}, []),
    "named by the end of the one in front, first batch gone": ([FRONT, segment(3, 10, 20, 39)], {}, []),
    "message sets of old": ([segment(1, 0, 0, 9, max_leader_epoch=None), BEHIND], {}, []),
    "a superseded segment bridges nothing": (
        [FRONT, segment(2, 5, 5, 9, is_superseded=True), BEHIND], {}, [(9, 20, False)],
    ),
    "an empty segment": ([FRONT, segment(2, 10, None, -1), BEHIND], {}, [(9, 20, False)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gaps(name: str) -> None:
    segments, given, wanted = CASES[name]
    facts = dict(given)
    log_dir, unreadable = facts.pop("log_dir", STOPPED), facts.pop("unreadable", [])
    plan = Plan((), "cluster", (log_dir,), (), (), (), ())
    found = segment_gaps(plan, [PLACE._replace(**facts)], segments, unreadable)
    assert [
        (one.last_offset, one.segment["base_offset"], one.is_running_copy) for one in found
    ] == wanted
