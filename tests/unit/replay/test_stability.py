"""Last stable offset, who held it, and aborted ranges; facts of `ProducerStateManagerTest` among them."""

from __future__ import annotations

import pytest

from pipeline.replay import history
from pipeline.replay.producer import Run
from pipeline.replay.stability import Pin, aborted, last_stable_offset, pins
from pipeline.wire.batch import Batch
from pipeline.wire.txn_index import AbortedTxn
from tests.unit.replay.rows import ABORT, data, marker


def runs(*batches: Batch) -> list[Run]:
    return history.replay(batches).runs


def test_first_unstable_offset() -> None:
    """`testFirstUnstableOffset`: a decided transaction holds on until its marker is replicated."""
    one, two = data(99, 0, producer_id=1), data(105, 0, producer_id=2)
    commit, abort = marker(109, producer_id=1), marker(112, ABORT, producer_id=2)
    assert last_stable_offset(runs(one), 100, 100) == 99
    assert last_stable_offset(runs(one, two), 106, 106) == 99
    assert last_stable_offset(runs(one, two, commit), 100, 110) == 99
    assert last_stable_offset(runs(one, two, commit), 109, 110) == 99
    assert last_stable_offset(runs(one, two, commit), 110, 110) == 105
    assert last_stable_offset(runs(one, two, commit, abort), 112, 113) == 105
    assert last_stable_offset(runs(one, two, commit, abort), 113, 113) == 113


@pytest.mark.parametrize(
    ("high_watermark", "log_end", "wanted"),
    [(None, 9, 9), (4, 9, 4), (20, 9, 9), (0, 9, 0)],
)
def test_nothing_open(high_watermark: int | None, log_end: int, wanted: int) -> None:
    plain = runs(data(0, 0, transactional=False), marker(8))
    assert last_stable_offset(plain, high_watermark, log_end) == wanted
    assert pins(plain) == []


def test_an_open_transaction_beyond_the_high_watermark_holds_nothing() -> None:
    assert last_stable_offset(runs(data(5, 0)), 3, 6) == 3


def test_last_stable_offset_of_completed_transactions() -> None:
    """`testLastStableOffsetCompletedTxn`: three begin, the first, the third and the second end."""
    batches = (
        data(42, 0, producer_id=1),
        data(67, 0, producer_id=2),
        data(99, 0, producer_id=3),
        marker(114, ABORT, producer_id=1),
        marker(134, ABORT, producer_id=3),
        marker(212, ABORT, producer_id=2),
    )
    assert aborted(runs(*batches)) == [
        AbortedTxn(0, 1, 42, 114, 67),
        AbortedTxn(0, 3, 99, 134, 67),
        AbortedTxn(0, 2, 67, 212, 213),
    ]
    assert pins(runs(*batches)) == [
        Pin(1, 0, 42, 42, 114),
        Pin(2, 0, 67, 114, 212),
    ]


def test_what_hangs_counts_for_all_later_aborts() -> None:
    batches = (
        data(0, 0, producer_id=1),
        data(1, 0, producer_id=2),
        marker(2, ABORT, producer_id=2),
        data(3, 1, producer_id=2),
        marker(4, ABORT, producer_id=2),
        data(5, 2, producer_id=2),
        marker(6, producer_id=2),
    )
    assert [one.last_stable_offset for one in aborted(runs(*batches))] == [0, 0]
    assert pins(runs(*batches)) == [Pin(1, 0, 0, 0, None)]
    assert last_stable_offset(runs(*batches), None, 7) == 0


def test_empty_and_plain_runs_are_not_aborted() -> None:
    """`testSkipEmptyTransactions`, KAFKA-10702."""
    batches = (
        marker(0, ABORT),
        data(1, 0, transactional=False),
        marker(2, ABORT),
        data(3, 1, kept=0),
        marker(4, ABORT),
        data(5, 2),
        marker(6, None),
    )
    assert aborted(runs(*batches)) == []
    assert last_stable_offset(runs(*batches), None, 7) == 7


def test_a_transaction_that_begins_behind_the_marker_is_not_the_next() -> None:
    batches = (data(0, 0), marker(1, ABORT), data(2, 0, producer_id=2))
    assert aborted(runs(*batches)) == [AbortedTxn(0, 1, 0, 1, 2)]


def test_one_inside_another_never_pins() -> None:
    batches = (
        data(0, 0, producer_id=1),
        data(1, 0, producer_id=2),
        marker(2, producer_id=2),
        marker(3, producer_id=1),
        data(4, 1, producer_id=2),
    )
    assert pins(runs(*batches)) == [Pin(1, 0, 0, 0, 3), Pin(2, 1, 4, 4, None)]
