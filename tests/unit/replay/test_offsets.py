"""Materialisation of committed offsets as tables: what counts, what waits, what is overtaken."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.replay.offsets import CommitRecord, Committed, MarkerRecord, OffsetsReplay

NOW = 1_795_000_000_000
ABORT, COMMIT, UNREADABLE = 0, 1, None
Event = tuple[str, int, int | None]


def commit(record_offset: int, value: int | None, **fields: Any) -> CommitRecord:
    """A commit of group g for t-0; with `producer` inside its transaction."""
    producer = fields.pop("producer", None)
    plain: dict[str, Any] = {
        "record_offset": record_offset, "group_id": "g", "topic": "t", "partition": 0,
        "committed_offset": value, "commit_timestamp_ms": NOW + record_offset,
        "append_ms": NOW + record_offset, "leader_epoch": 0, "is_transactional": producer is not None,
        "producer_id": -1 if producer is None else producer, "producer_epoch": 0,
    }  # fmt: skip
    return CommitRecord(**(plain | fields))


def replay(*events: Event, state: OffsetsReplay | None = None) -> list[Committed]:
    """Runs events at offsets 0, 1, ...; each is (what, producer, value).

    What is plain or txn (a commit; None is a tombstone) or mark (a marker of that type).
    """
    state = state or OffsetsReplay()
    found = []
    for offset, (what, producer, value) in enumerate(events):
        if what == "mark":
            found += state.marker(MarkerRecord(offset, producer, value, NOW + offset, 0))
        else:
            found += state.commit(
                commit(offset, value, producer=producer if what == "txn" else None)
            )
    return found + state.end()


TABLE: dict[str, tuple[list[Event], dict[int, tuple[str, int | None, int | None]]]] = {
    # record offset -> outcome, offset of the marker that decided it, offset of the record replaced
    "a plain commit counts at once": ([("plain", 0, 5)], {0: ("materialised", None, None)}),
    "a later plain one replaces it": (
        [("plain", 0, 5), ("plain", 0, 6)],
        {0: ("materialised", None, None), 1: ("materialised", None, 0)},
    ),
    "also when it is lower": (
        [("plain", 0, 5), ("plain", 0, 2)],
        {0: ("materialised", None, None), 1: ("materialised", None, 0)},
    ),
    "a tombstone removes it": (
        [("plain", 0, 5), ("plain", 0, None)],
        {0: ("materialised", None, None), 1: ("deleted", None, 0)},
    ),
    "behind a tombstone nothing is replaced": (
        [("plain", 0, 5), ("plain", 0, None), ("plain", 0, 1)],
        {0: ("materialised", None, None), 1: ("deleted", None, 0), 2: ("materialised", None, None)},
    ),
    "a transactional one waits": ([("txn", 7, 5)], {0: ("pending", None, None)}),
    "what is pending would replace": (
        [("plain", 0, 4), ("txn", 7, 5)],
        {0: ("materialised", None, None), 1: ("pending", None, 0)},
    ),
    "commit": ([("txn", 7, 5), ("mark", 7, COMMIT)], {0: ("materialised", 1, None)}),
    "abort": ([("txn", 7, 5), ("mark", 7, ABORT)], {0: ("aborted", 1, None)}),
    "a marker that nobody can read": (
        [("txn", 7, 5), ("mark", 7, UNREADABLE)], {0: ("undecided", 1, None)},
    ),
    "the marker of another producer": (
        [("txn", 7, 5), ("mark", 8, COMMIT)], {0: ("pending", None, None)},
    ),
    "a marker without anything pending": ([("mark", 7, COMMIT)], {}),
    "the second marker decides nothing": (
        [("txn", 7, 5), ("mark", 7, COMMIT), ("mark", 7, ABORT)], {0: ("materialised", 1, None)},
    ),
    "a later one of the same producer": (
        [("txn", 7, 5), ("txn", 7, 6), ("mark", 7, COMMIT)],
        {0: ("superseded", None, None), 1: ("materialised", 2, None)},
    ),
    "a plain commit overtakes a pending one": (
        [("txn", 7, 5), ("plain", 0, 9), ("mark", 7, COMMIT)],
        {0: ("superseded", 2, 1), 1: ("materialised", None, None)},
    ),
    "an older plain one does not": (
        [("plain", 0, 9), ("txn", 7, 5), ("mark", 7, COMMIT)],
        {0: ("materialised", None, None), 1: ("materialised", 2, 0)},
    ),
    "the most recent record wins, not the last marker": (
        [("txn", 7, 5), ("txn", 8, 6), ("mark", 8, COMMIT), ("mark", 7, COMMIT)],
        {0: ("superseded", 3, 1), 1: ("materialised", 2, None)},
    ),
    "an aborted one overtakes nobody": (
        [("txn", 7, 5), ("txn", 8, 6), ("mark", 8, ABORT), ("mark", 7, COMMIT)],
        {0: ("materialised", 3, None), 1: ("aborted", 2, None)},
    ),
    "both commit in turn": (
        [("txn", 7, 5), ("mark", 7, COMMIT), ("txn", 7, 6), ("mark", 7, COMMIT)],
        {0: ("materialised", 1, None), 2: ("materialised", 3, 0)},
    ),
    "a tombstone removes what is pending as well": (
        [("txn", 7, 5), ("txn", 8, 6), ("plain", 0, None), ("mark", 7, COMMIT)],
        {0: ("deleted", None, None), 1: ("deleted", None, None), 2: ("deleted", None, None)},
    ),
    "behind it the transaction goes on": (
        [("txn", 7, 5), ("plain", 0, None), ("txn", 7, 6), ("mark", 7, COMMIT)],
        {0: ("deleted", None, None), 1: ("deleted", None, None), 2: ("materialised", 3, None)},
    ),
    "a tombstone waits for no marker": (
        [("plain", 0, 5), ("txn", 7, None), ("mark", 7, ABORT), ("plain", 0, 6)],
        {0: ("materialised", None, None), 1: ("deleted", None, 0), 3: ("materialised", None, None)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_what_becomes_of_a_commit(name: str) -> None:
    events, wanted = TABLE[name]
    found = {
        one.record.record_offset: (
            one.outcome, one.marker_offset, one.previous and one.previous.record_offset
        )
        for one in replay(*events)
    }  # fmt: skip
    assert found == wanted
    assert len(replay(*events)) == len(wanted)


def test_keys_are_apart() -> None:
    state = OffsetsReplay()
    keys: list[dict[str, Any]] = [
        {}, {"group_id": "h"}, {"topic": "u"}, {"partition": 1}
    ]  # fmt: skip
    for at, key in enumerate(keys):
        assert state.commit(commit(at, at, **key))[0].previous is None
    for at, key in enumerate(keys):
        assert state.commit(commit(10 + at, at, **key))[0].previous == commit(at, at, **key)


def test_the_producer_epoch_is_ignored() -> None:
    state = OffsetsReplay()
    state.commit(commit(0, 5, producer=7, producer_epoch=3))
    decided = state.marker(MarkerRecord(1, 7, COMMIT, NOW, 0))
    assert [one.outcome for one in decided] == ["materialised"]


def race(
    gap_ms: int | None, *, stamp_ms: int = 0, epoch: int = 0, marker_ms: int | None = NOW
) -> tuple[int | None, bool]:
    """Race of a commit `gap_ms` behind its producer's marker."""
    state = OffsetsReplay()
    state.marker(MarkerRecord(0, 7, COMMIT, marker_ms, 0))
    append = None if gap_ms is None else NOW + gap_ms
    state.commit(
        commit(1, 5, producer=7, append_ms=append, commit_timestamp_ms=NOW + stamp_ms,
               leader_epoch=epoch)
    )  # fmt: skip
    (found,) = state.end()
    return found.race_ms, found.is_before_marker


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({"gap_ms": 6}, (6, False)),
        ({"gap_ms": 6, "stamp_ms": -1}, (6, True)),
        ({"gap_ms": 90_000}, (90_000, False)),
        ({"gap_ms": -400, "stamp_ms": -402}, (-400, False)),
        ({"gap_ms": 6, "epoch": 1}, (None, False)),
        ({"gap_ms": 6, "epoch": 1, "stamp_ms": -1}, (None, False)),
        ({"gap_ms": None}, (None, False)),
        ({"gap_ms": 6, "marker_ms": None}, (None, False)),
    ],
)
def test_how_close_a_commit_came_to_the_marker_before_it(
    facts: dict[str, Any], wanted: tuple[int | None, bool]
) -> None:
    assert race(**facts) == wanted


def test_only_the_first_batch_behind_a_marker_is_in_the_race() -> None:
    state = OffsetsReplay()
    state.marker(MarkerRecord(0, 7, COMMIT, NOW, 0))
    for at, append in ((1, NOW + 4), (2, NOW + 4), (3, NOW + 9)):
        state.commit(commit(at, 5, partition=at, producer=7, append_ms=append))
    assert [one.race_ms for one in state.end()] == [4, 4, None]
    state.marker(MarkerRecord(4, 7, COMMIT, NOW + 20, 0))
    state.commit(commit(5, 5, producer=7, append_ms=NOW + 22))
    assert [one.race_ms for one in state.end()] == [2]


def test_plain_commits_and_first_transactions_race_with_nobody() -> None:
    state = OffsetsReplay()
    state.commit(commit(0, 5, producer=7))
    assert [one.race_ms for one in state.end()] == [None]
    state.marker(MarkerRecord(1, 8, COMMIT, NOW, 0))
    assert state.commit(commit(2, 5))[0].race_ms is None


def test_a_commit_with_no_producers_marker_before_it() -> None:
    state = OffsetsReplay()
    state.marker(MarkerRecord(0, 8, COMMIT, NOW, 0))
    state.commit(commit(1, 5, producer=7))
    assert [(one.outcome, one.race_ms) for one in state.end()] == [("pending", None)]
