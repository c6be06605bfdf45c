"""Runs, sequence events and unwrapped sequences: each irregular history beside its innocent twin."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.replay import history, stability
from pipeline.replay.producer import WRAP, Producer, Run, step
from pipeline.wire.batch import MAX_SEQUENCE, Batch
from tests.unit.replay.rows import ABORT, COMMIT, NOW_MS, data, marker


def kinds(*batches: Batch, start: int = 0, is_offsets: bool = False) -> list[tuple[str, int]]:
    found = history.replay(batches, history_start_offset=start, is_offsets=is_offsets).events
    return [(event.kind, event.step.offset) for event in found]


def other(offset: int, sequence: int) -> Batch:
    """Other bytes: what a producer that begins at 0 anew in its epoch writes."""
    return data(offset, sequence)._replace(crc=1)


EVENTS = {
    "the plain next one": ([data(0, 0), data(1, 1, records=3), data(4, 4)], []),
    "a gap": ([data(0, 0), data(1, 2)], [("gap", 1)]),
    "a transaction goes on counting": ([data(0, 0), marker(1), data(2, 1)], []),
    "a new epoch from 0": ([data(0, 0), marker(1, epoch=1), data(2, 0, epoch=1)], []),
    "a new epoch from 4": (
        [data(0, 0), marker(1, epoch=1), data(2, 4, epoch=1)],
        [("bump_not_zero", 2)],
    ),
    "the same again": ([data(0, 0), data(1, 1), data(2, 0)], [("exact", 2)]),
    "the same again in a higher epoch": ([data(0, 0), data(1, 0, epoch=1)], []),
    "a part again": ([data(0, 0, records=4), data(4, 2)], [("overlap", 4)]),
    "the same range in other batches": (
        [data(0, 0), data(1, 1), data(2, 2), data(3, 1, records=2)],
        [("overlap", 3)],
    ),
    "from 0 anew in the same epoch (KAFKA-7190)": (
        [data(0, 0), data(1, 1), data(2, 2), other(3, 0), other(4, 1), other(5, 2), other(6, 3)],
        [("reset", 3)],
    ),
    "the same again after a start from 0": (
        [data(0, 0), data(1, 1), data(2, 2), other(3, 0), other(4, 1), other(5, 1), other(6, 2)],
        [("reset", 3), ("exact", 5)],
    ),
    "from 0 anew behind what was deleted": (
        [data(0, 1), data(1, 2), other(2, 0), other(3, 1), other(4, 2)],
        [("first", 0), ("reset", 2)],
    ),
    "from 0 anew twice, and the second once more": (
        [data(0, 0), data(1, 1), other(2, 0), data(3, 0), data(4, 0)],
        [("reset", 2), ("reset", 3), ("exact", 4)],
    ),
    "back to where nothing was": (
        [data(0, 5), data(1, 6), data(2, 0)],
        [("first", 0), ("reset", 2)],
    ),
    "from 0 as the first": ([data(0, 0)], []),
    "after a reset the greatest sequence still counts": (
        [data(0, 5), data(1, 1), data(2, 2)],
        [("first", 0), ("reset", 1), ("reset", 2)],
    ),
    "an epoch below data": ([data(0, 0, epoch=2), data(1, 0, epoch=1)], [("epoch_regressed", 1)]),
    "an epoch below a marker alone": (
        [marker(0, ABORT, epoch=2), data(1, 0, epoch=1)],
        [("epoch_regressed", 1)],
    ),
    "a marker below data is no event": ([data(0, 0, epoch=2), marker(1, epoch=1)], []),
    "another producer": ([data(0, 0), data(1, 0, producer_id=2)], []),
    "no sequence": ([data(0, -1), data(1, -1)], []),
    "no producer": ([data(0, 7, producer_id=-1)], []),
    "an emptied batch keeps its sequence": ([data(0, 0, records=5, kept=0), data(5, 5)], []),
    "the same as an emptied batch": (
        [data(0, 0, kept=0), data(1, 1), data(2, 0)],
        [("exact", 2)],
    ),
    "0 behind the greatest sequence": ([data(0, MAX_SEQUENCE), data(1, 0)], [("first", 0)]),
    "a wrap inside a batch": (
        [data(0, MAX_SEQUENCE - 1, records=4), data(4, 2), data(5, 4)],
        [("first", 0), ("gap", 5)],
    ),
    "0 once more behind the wrap": (
        [data(0, MAX_SEQUENCE), data(1, 0), data(2, 0)],
        [("first", 0), ("exact", 2)],
    ),
    "a batch that wraps, once more": (
        [data(0, MAX_SEQUENCE - 1, records=4), data(4, MAX_SEQUENCE - 1, records=4), data(8, 2)],
        [("first", 0), ("exact", 4)],
    ),
    "one from before the wrap once more, behind it": (
        [
            data(0, MAX_SEQUENCE - 1),
            data(1, MAX_SEQUENCE),
            data(2, 0),
            data(3, MAX_SEQUENCE),
            data(4, 1),
        ],
        [("first", 0), ("exact", 3)],
    ),
    "a part of what wraps, once more": (
        [data(0, MAX_SEQUENCE - 1, records=4), data(4, MAX_SEQUENCE), data(5, 2)],
        [("first", 0), ("overlap", 4)],
    ),
    "a loss across the wrap": (
        [data(0, MAX_SEQUENCE - 1), data(1, 3)],
        [("first", 0), ("gap", 1)],
    ),
    "from 0 again, not from the greatest sequence": (
        [data(0, MAX_SEQUENCE - 1), data(1, 0)],
        [("first", 0), ("reset", 1)],
    ),
    "a higher epoch wraps nothing": (
        [data(0, MAX_SEQUENCE - 1, records=4), data(4, MAX_SEQUENCE, epoch=1)],
        [("first", 0), ("bump_not_zero", 4)],
    ),
    "0 long before the wrap is another 0": (
        [data(0, 0), data(1, MAX_SEQUENCE), data(2, 0)],
        [("gap", 1)],
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_events(name: str) -> None:
    batches, wanted = EVENTS[name]
    assert kinds(*batches) == wanted


def test_history_that_was_cut_gives_no_event_and_no_accomplice() -> None:
    batches = (data(0, 0), data(1, 5), data(2, 6), data(3, 0))
    assert kinds(*batches) == [("gap", 1), ("exact", 3)]
    assert kinds(*batches, start=2) == [("reset", 3)]
    assert kinds(*batches, start=4) == []


def test_a_hole_may_hold_what_seems_to_be_missing() -> None:
    gap = (data(0, 0), data(9, 5), data(10, 8))
    assert kinds(*gap) == [("gap", 9), ("gap", 10)]
    assert kinds(*gap, start=9) == [("gap", 10)]
    bump = (data(0, 0), data(9, 5, epoch=1), data(10, 8, epoch=2))
    assert kinds(*bump, start=9) == [("bump_not_zero", 10)]


def test_sequences_mean_nothing_in_the_offsets_topic() -> None:
    batches = (data(0, 0, epoch=1), data(1, 0, epoch=1), data(2, 0))
    assert kinds(*batches, is_offsets=True) == [("epoch_regressed", 2)]


def test_sequences_unwrap() -> None:
    batches = [data(0, MAX_SEQUENCE - 1, records=3), data(3, 1), marker(4), data(5, 2)]
    state, found = Producer(1), []
    for batch in batches:
        state, fact, _ = step(state, batch)
        found.append((fact.first_sequence, fact.last_sequence))
    assert found == [
        (WRAP - 2, WRAP),
        (WRAP + 1, WRAP + 1),
        (None, None),
        (WRAP + 2, WRAP + 2),
    ]


def test_a_step_sees_only_what_came_before() -> None:
    state = Producer(1)
    state, fact, _ = step(state, data(0, 0, epoch=3, leader_epoch=8))
    assert (fact.max_epoch_before, fact.previous, fact.reached) == (None, None, None)
    before = state
    state, fact, run = step(state, marker(1, epoch=4, coordinator_epoch=9))
    assert before.run_number == fact.run_number == 0
    assert (fact.max_epoch_before, fact.coordinator_epoch_before) == (3, None)
    assert fact.previous == (0, 3, 0, 8)
    assert run is not None
    state, fact, _ = step(state, data(2, 0, epoch=4))
    assert (fact.run_number, fact.max_epoch_before, fact.coordinator_epoch_before) == (1, 4, 9)


def runs(*batches: Batch) -> list[Run]:
    return history.replay(batches).runs


def test_a_run_from_data_to_marker() -> None:
    found = runs(
        data(10, 0, records=2, epoch=1),
        data(12, 2, records=3, kept=1, epoch=1),
        marker(15, ABORT, epoch=2, coordinator_epoch=6, time_ms=NOW_MS + 9, leader_epoch=4),
    )
    assert found == [
        Run(
            producer_id=1, run_number=0, is_transactional=True, is_open=False, first_offset=10,
            last_offset=14, batch_count=2, record_count=3, size_bytes=140, min_epoch=1, max_epoch=1,
            max_epoch_before=None, first_sequence=0, first_append_ms=None, irregular_count=0,
            marker_offset=15, marker_type=ABORT, marker_epoch=2, marker_coordinator_epoch=6,
            marker_leader_epoch=4, marker_ms=NOW_MS + 9, coordinator_epoch_before=None,
        )
    ]  # fmt: skip


def test_a_marker_without_data_is_a_run() -> None:
    """Legal: a partition was added and nothing produced, or a marker was sent again."""
    first, second = runs(marker(0, coordinator_epoch=3), marker(1, epoch=1))
    assert (first.first_offset, first.batch_count, first.marker_offset) == (None, 0, 0)
    assert (second.max_epoch_before, second.coordinator_epoch_before) == (0, 3)
    assert not first.is_transactional
    assert not second.is_open


def test_an_emptied_batch_opens_no_run() -> None:
    (run,) = runs(data(0, 7, kept=0))
    assert (run.is_open, run.first_offset, run.record_count, run.first_sequence) == (
        False,
        None,
        0,
        7,
    )


def test_an_emptied_marker_ends_a_run_with_an_unknown_outcome() -> None:
    first, second = runs(data(0, 0), marker(1, None), data(2, 1))
    assert (first.is_open, first.marker_offset, first.marker_type) == (False, 1, None)
    assert (second.is_open, second.run_number) == (True, 1)
    state = history.replay([data(0, 0), marker(1, None)]).producers[1]
    assert state.broker.current_txn_first_offset == 0


def test_plain_data_are_never_open() -> None:
    (run,) = runs(data(0, 0, transactional=False), data(1, 1, transactional=False))
    assert (run.is_transactional, run.is_open, run.last_offset) == (False, False, 1)


def test_a_run_begins_with_its_transactional_data() -> None:
    (run,) = runs(data(0, 0, transactional=False), data(1, 1), data(2, 2, epoch=1))
    assert (run.first_offset, run.is_open, run.min_epoch, run.max_epoch) == (1, True, 0, 1)


def test_only_a_brokers_clock_dates_a_run() -> None:
    (run,) = runs(
        data(0, 0, time_ms=5),
        data(1, 1, time_ms=NOW_MS, log_append_time=True),
        data(2, 2, time_ms=NOW_MS - 1, log_append_time=True),
    )
    assert run.first_append_ms == NOW_MS - 1


INT16 = st.integers(-(2**15), 2**15 - 1)
SEQUENCES = st.sampled_from([-1, 0, 1, 2, 3, MAX_SEQUENCE - 1, MAX_SEQUENCE]) | st.integers(
    -(2**31), 2**31 - 1
)


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    """Anything that the decoder lets through, at ascending offsets."""
    found: list[Batch] = []
    offset = draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 25))):
        producer_id = draw(st.sampled_from([-1, 0, 1, 2**63 - 1]))
        epoch = draw(st.integers(-1, 3) | INT16)
        if draw(st.booleans()):
            outcome = draw(st.sampled_from([ABORT, COMMIT, None, 2, 99]))
            one = marker(
                offset,
                outcome,
                producer_id=producer_id,
                epoch=epoch,
                coordinator_epoch=draw(st.sampled_from([0, 1, -1, 2**31 - 1]))
                if outcome in (ABORT, COMMIT)
                else None,
            )
        else:
            records = draw(st.integers(1, 4))
            sequence = draw(SEQUENCES)
            one = data(
                offset, max(sequence, -1), producer_id=producer_id, epoch=epoch, records=records,
                transactional=draw(st.booleans()), kept=draw(st.integers(0, records)),
                log_append_time=draw(st.booleans()),
            )._replace(base_sequence=sequence)  # fmt: skip
        found.append(one)
        offset = one.last_offset + 1 + draw(st.integers(0, 2))
    return found


@settings(max_examples=300, deadline=None)
@given(batches(), st.booleans(), st.integers(0, 40))
def test_nothing_decodable_stops_the_replay(
    found: list[Batch], is_offsets: bool, start: int
) -> None:
    whole = history.replay(found, is_offsets=is_offsets, history_start_offset=start)
    end = found[-1].last_offset + 1 if found else 0
    stable = stability.last_stable_offset(whole.runs, None, end)
    assert stable <= end
    holders = [pin for pin in stability.pins(whole.runs) if pin.pinned_to_offset is None]
    assert [pin.last_stable_offset for pin in holders] == ([stable] if stable < end else [])
    stability.aborted(whole.runs)
    of_producers = [one for one in found if one.producer_id >= 0]
    assert sum(run.record_count for run in whole.runs) == sum(
        one.records_count for one in of_producers if not one.is_control
    )
    assert sum(run.marker_offset is not None for run in whole.runs) == sum(
        one.is_control for one in of_producers
    )
    assert sum(run.irregular_count for run in whole.runs) == len(whole.events)
    assert all(event.step.offset >= start for event in whole.events)
