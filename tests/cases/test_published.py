"""Published incidents as event tables: the history in, the verdict out.

Each case is named after the issue or the publication that described it. Where a verdict of the time rested on the
CreateTime of user data or on an absence, the rules of this audit decide what can be said.
"""

from __future__ import annotations

from pipeline.replay import gap_cause, pinning, visibility
from pipeline.replay.gap_cause import Event, LogState
from pipeline.replay.history import replay
from pipeline.replay.pinning import OpenRun, Pinned, Waiting
from pipeline.replay.sidecar_check import LogPlace
from pipeline.replay.transaction_state import COMPLETE_ABORT, ONGOING, PREPARE_ABORT
from pipeline.replay.visibility import Ended, Listed
from pipeline.wire.batch import Batch
from pipeline.wire.segment import iterate
from tests import builders
from tests.unit.replay.histories import EMPTY, row
from tests.unit.replay.histories import replayed as steps_of

ABORT, COMMIT = builders.ABORT, builders.COMMIT


def _data(
    offset: int, producer: int, epoch: int, sequence: int, count: int = 1, **more: int
) -> bytes:
    return builders.batch(offset, count, producer_id=producer, producer_epoch=epoch,
                          base_sequence=sequence, transactional=True, **more)  # fmt: skip


def _marker(offset: int, outcome: int, producer: int, epoch: int) -> bytes:
    return builders.marker(offset, outcome, producer_id=producer, producer_epoch=epoch)


def _batches(*parts: bytes) -> list[Batch]:
    found = list(iterate(b"".join(parts)))
    assert all(isinstance(one, Batch) for one in found)
    return [one for one in found if isinstance(one, Batch)]


def _open(*parts: bytes) -> list[tuple[int, int | None]]:
    """(producer, first offset) of what is open at the end."""
    return [
        (run.producer_id, run.first_offset) for run in replay(_batches(*parts)).runs if run.is_open
    ]


def _place(end: int) -> LogPlace:
    return LogPlace(0, "t", 0, 1, 0, 0, end, True, end, False)


def test_a_late_batch_behind_its_abort_marker_opens_a_transaction() -> None:
    """Klog's production dump of 2021, KIP-890."""
    abort, late = _marker(2250125, ABORT, 894436, 4), _data(2250126, 894436, 4, 660)
    assert _open(_data(2250124, 894436, 4, 659), abort, late) == [(894436, 2250126)]
    swapped = (_data(2250125, 894436, 4, 660), _marker(2250126, ABORT, 894436, 4))
    assert _open(_data(2250124, 894436, 4, 659), *swapped) == []


def test_a_hanging_offset_commit_freezes_compaction() -> None:
    """strimzi-debugging, `__consumer_offsets-27`, June 2022."""
    run = OpenRun(
        0, "__consumer_offsets", 27, 1, 171100, 1, None, 913095344, None, None, "orphan_producer"
    )
    said = pinning.statement(run, 0, Pinned(933607637, None, 913095344), Waiting(2105, None))
    assert (said.severity, said.certainty, said.first_offset) == ("critical", "proven", 913095344)
    assert "Compaction stands: the cleaner came to offset 913095344" in said.explanation
    legal = pinning.statement(
        run._replace(judgement="open"), 0, Pinned(933607637, None, None), Waiting(1, None)
    )
    assert legal.severity == "info"
    assert "Compaction" not in legal.explanation


def test_aborted_data_that_one_client_saw_is_right_in_the_log() -> None:
    """Librdkafka 3020: two interleaved producers, one aborted after a restart."""
    parts = (
        _data(0, 4005, 16, 0, 6), _data(6, 4009, 10, 0), _marker(7, COMMIT, 4005, 16),
        _data(8, 4009, 10, 1, 3), _marker(11, ABORT, 4009, 11), _data(12, 4005, 18, 0, 6),
        _data(18, 4005, 18, 6, 6), _data(24, 4009, 13, 0), _marker(25, COMMIT, 4005, 18),
        _data(26, 4009, 13, 1, 3),
    )  # fmt: skip
    history = replay(_batches(*parts))
    assert [event.kind for event in history.events] == []
    assert _open(*parts) == [(4009, 24)]
    aborted = [
        (one.producer_id, one.first_offset, one.last_offset)
        for one in history.completed
        if one.is_aborted
    ]
    assert aborted == [(4009, 6, 11)]


def test_a_replacement_under_another_id_fences_nobody() -> None:
    """A zombie that stays open because the new worker took another transactional.id."""
    assert _open(_data(0, 0, 0, 0), _data(1, 1, 0, 0), _marker(2, COMMIT, 1, 0)) == [(0, 0)]
    assert (
        _open(
            _data(0, 0, 17, 0),
            _marker(1, ABORT, 0, 18),
            _data(2, 0, 19, 0),
            _marker(3, COMMIT, 0, 19),
        )
        == []
    )


def _first(sequence: int, *, is_complete: bool) -> gap_cause.Statement | None:
    event = Event(0, "t", 0, 1, 7, 0, 4, "first", 0, sequence, None, None, None, 0, None)
    return gap_cause.statement(event, LogState(is_complete, False))


def test_the_first_request_of_a_new_partition_may_be_lost() -> None:
    """KAFKA-15591: sequences begin at 17 although nothing was deleted; info, for a topic made anew looks the same."""
    said = _first(17, is_complete=True)
    assert said is not None
    assert (said.label, said.severity, said.certainty) == ("lost", "info", "consistent_with")
    assert _first(17, is_complete=False) is None


def test_a_timeout_has_to_raise_the_epoch() -> None:
    """KAFKA-6119: the fixed coordinator writes PrepareAbort with the next epoch."""
    fixed = [
        row(EMPTY),
        row(ONGOING),
        row(PREPARE_ABORT, 1, wait_ms=70_000),
        row(COMPLETE_ABORT, 1),
    ]
    assert [(one.cause, one.violation) for one in steps_of(fixed).steps][-2:] == [
        ("timeout", None), ("complete", None),
    ]  # fmt: skip


def test_data_and_marker_in_different_segments() -> None:
    """KAFKA-8351: with both segments committed, with the first alone open at the end of the copy."""
    data, marker = _data(0, 1, 0, 0), _marker(1, COMMIT, 1, 0)
    assert _open(data, marker) == []
    assert _open(data) == [(1, 0)]


def test_abort_information_of_a_partial_clean() -> None:
    """KAFKA-13727: an entry whose data are still there may not be lost."""
    place = _place(20)
    aborted = [Ended(1, 8, 10, ABORT), Ended(2, 11, 16, ABORT)]
    listed = [Listed(1, 8, 10), Listed(2, 11, 16)]
    assert visibility.judge(place, aborted, listed, {}, has_index=True) == []
    said = visibility.judge(place, aborted, listed[1:], {}, has_index=True)
    assert [(one.label, one.first_offset) for one in said] == [("aborted_exposed", 8)]
    cleaned = place._replace(history_start_offset=17)
    assert visibility.judge(cleaned, aborted, [], {}, has_index=True) == []


def test_an_aborted_transaction_that_ends_as_committed() -> None:
    """KAFKA-13727, bad variant: the ABORT marker is gone and a later COMMIT ends its data."""
    others = {1: [Ended(1, 8, 15, COMMIT)]}
    said = visibility.judge(_place(20), [], [Listed(1, 8, 10)], others, has_index=True)
    assert [one.label for one in said] == ["committed_hidden"]


def test_a_control_batch_without_records_is_neither_commit_nor_abort() -> None:
    """KAFKA-7467: what the cleaner leaves of a marker."""
    empty = builders.batch(1, 0, producer_id=1, producer_epoch=0, transactional=True, control=True,
                           last_offset_delta=0)  # fmt: skip
    history = replay(_batches(_data(0, 1, 0, 0), empty))
    assert [run.marker_type for run in history.runs] == [None]
    assert history.completed == []
