"""Commits behind their marker, and what the replay of offsets never does: each record is decided once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.replay.offsets import CommitRecord, Committed, MarkerRecord, OffsetsReplay
from tests.unit.replay.rows import NOW_MS, commit, end

Event = CommitRecord | MarkerRecord
PRODUCER = 1000


def txn(offset: int, value: int) -> CommitRecord:
    return commit(offset, value, producer_id=PRODUCER)


def play(events: list[Event]) -> tuple[OffsetsReplay, list[Committed]]:
    state, decided = OffsetsReplay(), []
    for event in events:
        is_commit = isinstance(event, CommitRecord)
        decided += state.commit(event) if is_commit else state.marker(event)
    return state, decided


def races(events: list[Event]) -> list[tuple[int | None, bool]]:
    state, decided = play(events)
    return [(one.race_ms, one.is_before_marker) for one in decided + state.end()]


def test_a_marker_sent_again_is_no_bypass() -> None:
    """A coordinator that takes over sends markers again, while the next transaction is under way."""
    first = end(1, producer_id=PRODUCER, time_ms=NOW_MS)
    again = end(2, producer_id=PRODUCER, time_ms=NOW_MS + 50)
    behind_first = commit(
        3, 8, producer_id=PRODUCER, requested_ms=NOW_MS + 10, append_ms=NOW_MS + 60
    )
    before_first = behind_first._replace(commit_timestamp_ms=NOW_MS - 1)
    assert races([txn(0, 7), first, again, behind_first])[-1] == (10, False)
    assert races([txn(0, 7), first, again, before_first])[-1] == (10, True)


def test_each_transaction_has_a_first_marker_of_its_own() -> None:
    events = [
        txn(0, 7),
        end(1, producer_id=PRODUCER, time_ms=NOW_MS),
        commit(2, 8, producer_id=PRODUCER, requested_ms=NOW_MS + 1, append_ms=NOW_MS + 2),
        end(3, producer_id=PRODUCER, time_ms=NOW_MS + 9),
        commit(4, 9, producer_id=PRODUCER, requested_ms=NOW_MS + 8, append_ms=NOW_MS + 12),
    ]
    assert races(events) == [(None, False), (2, False), (3, True)]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["plain", "transactional", "marker"]),
        st.sampled_from([0, 1]),
        st.sampled_from([5, 6]),
        st.none() | st.integers(0, 3),
    ),
    max_size=30,
)


@given(EVENTS)
def test_each_record_is_decided_once_and_the_last_decision_holds(
    drawn: list[tuple[str, int, int, int | None]],
) -> None:
    events: list[Event] = []
    for offset, (what, partition, producer_id, value) in enumerate(drawn):
        if what == "marker":
            events.append(end(offset, value, producer_id=producer_id))
        else:
            owner = producer_id if what == "transactional" else None
            events.append(commit(offset, value, partition=partition, producer_id=owner))
    state, decided = play(events)
    decided += state.end()
    records = [event for event in events if isinstance(event, CommitRecord)]
    assert sorted(one.record for one in decided) == records
    held: dict[int, CommitRecord] = {}
    for one in decided:
        if one.outcome == "materialised":
            held[one.record.partition] = one.record
        elif one.outcome == "deleted" and one.record.committed_offset is None:
            held.pop(one.record.partition, None)
    assert held == {key[2]: record for key, record in state.materialised.items()}
