"""Which marker belongs to which transaction: votes on the clock, containment, epochs, resends."""

from __future__ import annotations

import random

import pytest

from pipeline.replay.alignment import NONE
from tests.unit.replay.marked import (
    ABORT,
    BUSY_MS,
    COMMIT,
    RARE_MS,
    aligned,
    marker,
    promise,
)

ALONE = {
    "inside": (marker(50), promise(0, 100), 0),
    "early by less than the skew": (marker(-999), promise(0, 100), 0),
    "late by less than the skew": (marker(1_099), promise(0, 100), 0),
    "early by more than the skew, yet the only one": (marker(-1_001), promise(0, 100), 0),
    "late by more than the skew, yet the only one": (marker(1_102), promise(0, 100), 0),
    "that late, and of the other outcome": (marker(1_102, ABORT), promise(0, 100), -1),
    "not complete yet": (marker(999_000), promise(0, None), 0),
    "not prepared yet": (marker(50), promise(None, None), -1),
    "the other outcome": (marker(50, ABORT), promise(0, 100, COMMIT), 0),
    "of another producer": (marker(50, producer_id=2), promise(0, 100), -1),
    "without a time": (marker(None), promise(0, 100), -1),
    "version 2 names it, at any time": (
        marker(90_000, epoch=3), promise(0, 100, version=2, epoch=2, prepare_epoch=3), 0,
    ),
    "version 2, the data's own epoch, outside": (
        marker(90_000, epoch=2), promise(0, 100, version=2, epoch=2, prepare_epoch=3), -1,
    ),
    "version 2 and not prepared": (
        marker(50, epoch=3), promise(None, None, version=2, epoch=2, prepare_epoch=NONE), -1,
    ),
    "an epoch that no transaction has": (marker(50, epoch=7), promise(0, 100), 0),
    "that epoch, and the other outcome": (marker(50, ABORT, epoch=7), promise(0, 100), -1),
    "that epoch, and outside": (marker(150, epoch=7), promise(0, 100), -1),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_one_marker_and_one_transaction(name: str) -> None:
    mark, owed, wanted = ALONE[name]
    found = aligned([mark], [owed])
    assert found.promise.tolist() == [wanted]
    assert found.is_ambiguous.tolist() == [False]
    assert found.first_marker.tolist() == [0 if wanted == 0 else -1]
    assert found.marker_count.tolist() == [int(wanted == 0)]


def test_a_marker_whose_own_transaction_may_be_gone_is_nobodys_of_the_other_outcome() -> None:
    other = ([marker(-500, ABORT)], [promise(0, 100, COMMIT)])
    assert aligned(*other, evidence=False).promise.tolist() == [-1]
    assert aligned(*other).promise.tolist() == [0]
    named = promise(0, 100, COMMIT, version=2, epoch=2, prepare_epoch=3)
    found = aligned([marker(50, ABORT, epoch=3)], [named], evidence=False)
    assert found.promise.tolist() == [0]


def test_markers_whose_own_transactions_are_gone_do_not_vote() -> None:
    """Three tell that the clocks differ by 221 ms; three others, of a time that was cut, would say 17."""
    promises = [promise(381, 748), promise(972, 980), promise(1_169, 1_180)]
    cut = [marker(509), marker(529), marker(610)]
    own = [marker(620), marker(1_194), marker(1_400)]
    assert aligned(cut + own, promises).promise.tolist()[3:] == [-1, 2, -1]
    found = aligned(cut + own, promises, evidence=[False] * 3 + [True] * 3)
    assert found.promise.tolist()[3:] == [0, 1, 2]


def test_nothing_to_align() -> None:
    assert aligned([], [promise(0, 9)]).marker_count.tolist() == [0]
    assert aligned([marker(0)], []).promise.tolist() == [-1]
    assert not len(aligned([], []).promise)


def test_a_wrong_epoch_is_told_only_where_a_missing_transaction_would_mean_something() -> None:
    found = aligned([marker(50, epoch=7)], [promise(0, 100)], evidence=False)
    assert found.promise.tolist() == [-1]


def test_a_wrong_epoch_never_takes_a_transaction_that_has_its_marker() -> None:
    found = aligned([marker(50), marker(60, epoch=7)], [promise(0, 100)])
    assert found.promise.tolist() == [0, -1]


def test_a_wrong_epoch_between_two_transactions_is_left_alone() -> None:
    owed = [promise(0, 100), promise(40, 120, prepare_epoch=1, epoch=1)]
    assert aligned([marker(50, epoch=7)], owed).promise.tolist() == [-1]


def test_two_transactions_that_fit_leave_a_marker_ambiguous() -> None:
    found = aligned([marker(150)], [promise(0, 100), promise(200, 300)])
    assert found.promise.tolist() == [-1]
    assert found.is_ambiguous.tolist() == [True]
    assert found.marker_count.tolist() == [0, 0]


def test_markers_vote_for_one_clock() -> None:
    """Three of them know the clock to 10 ms where one alone could be any of two."""
    owed = [promise(0, 20), promise(130, 150), promise(310, 330), promise(405, 425)]
    late = [marker(710 + at) for at in (0, 130, 310, 405)]
    found = aligned(late, owed)
    assert found.promise.tolist() == [0, 1, 2, 3]
    assert aligned(late[:1], owed).is_ambiguous.tolist() == [True]


def test_two_markers_estimate_no_clock() -> None:
    owed = [promise(0, 20), promise(130, 150)]
    assert aligned([marker(710), marker(840)], owed).is_ambiguous.all()


def test_clocks_that_fit_as_well_settle_nothing() -> None:
    """Transactions like the teeth of a comb fit at several offsets."""
    owed = [promise(at, at + 20) for at in range(0, 1_000, 100)]
    found = aligned([marker(at + 10) for at in range(300, 600, 100)], owed)
    assert (found.promise == -1).all()
    assert found.is_ambiguous.all()


def test_outcomes_tell_equal_intervals_apart() -> None:
    kinds = [COMMIT, ABORT, ABORT, COMMIT, ABORT, COMMIT, COMMIT, COMMIT]
    owed = [promise(100 * at, 100 * at + 20, kind) for at, kind in enumerate(kinds)]
    found = aligned([marker(100 * at + 10, kind) for at, kind in enumerate(kinds)], owed)
    assert found.promise.tolist() == list(range(8))


def test_once_the_clock_is_known_the_outcome_does_not_choose() -> None:
    owed = [promise(0, 20), promise(130, 150), promise(310, 330), promise(405, 425)]
    marks = [marker(10), marker(140, ABORT), marker(320), marker(415)]
    assert aligned(marks, owed).promise.tolist() == [0, 1, 2, 3]


def test_all_producers_of_a_pair_share_the_clock() -> None:
    owed = [
        promise(at, at + 20, producer_id=pid) for pid, at in ((1, 0), (2, 130), (3, 310), (4, 0))
    ]
    owed.append(promise(200, 220, producer_id=4))
    marks = [
        marker(610 + at, producer_id=pid) for pid, at in ((1, 0), (2, 130), (3, 310), (4, 200))
    ]
    assert aligned(marks, owed).promise.tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize("field", ["leader_epoch", "coordinator_partition", "coordinator_epoch"])
def test_another_broker_has_another_clock(field: str) -> None:
    starts = [0, 130, 310, 405]
    owed = [promise(at, at + 20) for at in starts]
    owed += [promise(at + 5_000, at + 5_020) for at in starts]
    if field == "coordinator_epoch":
        owed[4:] = [
            one | {"prepare_leader_epoch": 1, "complete_leader_epoch": 1} for one in owed[4:]
        ]
    marks = [marker(at + 710) for at in starts]
    marks += [marker(at + 5_000 - 690, **{field: 1}) for at in starts]
    assert aligned(marks, owed).promise.tolist() == list(range(8))


def test_a_resend_after_failover_belongs_to_the_same_transaction() -> None:
    owed = [promise(0, 5_000, complete_leader_epoch=1)]
    marks = [marker(10), marker(4_990, coordinator_epoch=1)]
    found = aligned(marks, owed)
    assert found.promise.tolist() == [0, 0]
    assert (found.first_marker.tolist(), found.marker_count.tolist()) == ([0], [2])


def test_the_new_coordinator_may_stamp_another_clock() -> None:
    """Prepare* was stamped by the old one: only that side is given the skew."""
    starts = [0, 400, 1_130, 2_310]
    owed = [promise(at, at + 20, prepare_leader_epoch=1, complete_leader_epoch=1) for at in starts]
    owed += [promise(9_000, 9_100, complete_leader_epoch=1)]
    marks = [marker(at + 10, coordinator_epoch=1) for at in starts]
    early = marker(8_500, coordinator_epoch=1)
    assert aligned([*marks, early], owed).promise.tolist() == [0, 1, 2, 3, 4]
    same = [*owed[:4], owed[4] | {"prepare_leader_epoch": 1}]
    behind = (12_000, 12_700, 14_100)
    more = [promise(at, at + 20, prepare_leader_epoch=1, complete_leader_epoch=1) for at in behind]
    later = [marker(at + 10, coordinator_epoch=1) for at in behind]
    found = aligned([*marks, early | {"type": ABORT}, *later], [*same, *more])
    assert found.promise.tolist() == [0, 1, 2, 3, -1, 5, 6, 7]


def test_regular_transactions_do_not_hide_clocks_that_are_far_apart() -> None:
    """Each marker fits the transaction before its own, but for outcomes; three seconds explain all of them."""
    kinds = [ABORT if at in (7, 15) else COMMIT for at in range(24)]
    owed = [promise(3_000 * at, 3_000 * at + 20, kind) for at, kind in enumerate(kinds)]
    marks = [marker(3_000 * at + 3_010, kind) for at, kind in enumerate(kinds)]
    found = aligned(marks, owed)
    assert found.is_untimed.all()
    torn = [marker(3_000 * at + 10, COMMIT if at == 7 else kind) for at, kind in enumerate(kinds)]
    found = aligned(torn, owed)
    assert not found.is_untimed.any()
    assert found.promise.tolist() == list(range(24))


def test_version_2_repeats_only_the_last_epoch() -> None:
    """At 32767 the epoch names no single transaction: the interval has to."""
    owed = [promise(at, at + 20, version=2, epoch=32766, prepare_epoch=32767) for at in (0, 5_000)]
    found = aligned([marker(10, epoch=32767), marker(5_010, epoch=32767)], owed)
    assert found.promise.tolist() == [0, 1]


def test_version_0_goes_on_with_the_epoch_of_the_last_version_2() -> None:
    """The feature was taken back: the interval has to tell, and one marker alone cannot."""
    later = [promise(at, at + 20, epoch=1, prepare_epoch=1) for at in (30, 60)]
    owed = [promise(0, 20, version=2, prepare_epoch=1), *later]
    assert aligned([marker(at, epoch=1) for at in (10, 40, 70)], owed).promise.tolist() == [0, 1, 2]
    assert aligned([marker(10, epoch=1)], owed).is_ambiguous.tolist() == [True]


def lives(
    seed: int, gap_ms: int, count: int = 60
) -> tuple[list[dict[str, int]], list[dict[str, int]], list[int]]:
    """Markers and promises of a few producers, one clock offset; and the promise of each marker."""
    rng = random.Random(seed)
    offset = rng.randint(-900, 900)
    owed, marks = [], []
    for pid in range(1, 5):
        now = rng.randint(0, 2 * gap_ms)
        for _ in range(count):
            prepare = now
            complete = prepare + rng.randint(3, 3 + gap_ms // 4)
            kind = COMMIT if rng.random() < 0.8 else ABORT
            owed.append(promise(prepare, complete, kind, producer_id=pid))
            at = rng.randint(prepare, complete) + offset
            marks.append((at, marker(at, kind, producer_id=pid), len(owed) - 1))
            now = complete + rng.randint(1, gap_ms)
    marks.sort(key=lambda one: one[0])
    order = list(range(len(owed)))
    rng.shuffle(order)
    where = {old: new for new, old in enumerate(order)}
    return [one[1] for one in marks], [owed[old] for old in order], [where[one[2]] for one in marks]


@pytest.mark.parametrize("gap_ms", [RARE_MS, BUSY_MS, 60, 20, 6])
@pytest.mark.parametrize("seed", range(4))
def test_generated_markers_find_their_own_or_none(seed: int, gap_ms: int) -> None:
    marks, owed, wanted = lives(seed, gap_ms)
    found = aligned(marks, owed)
    wrong = (found.promise >= 0) & (found.promise != wanted)
    assert not wrong.any()
    assert (found.promise >= 0).mean() > (0.97 if gap_ms >= 60 else 0.8)


def test_a_producer_of_a_hundred_transactions_a_second() -> None:
    for seed in range(4):
        marks, owed, wanted = lives(seed, 12, count=400)
        found = aligned(marks, owed).promise
        assert not ((found >= 0) & (found != wanted)).any()
        assert (found >= 0).mean() > 0.8


@pytest.mark.parametrize(
    ("again", "ends_nothing", "wanted"),
    [
        (marker(300), True, 4),
        (marker(300), False, -1),
        (marker(2_000), True, -1),
        (marker(300, ABORT), True, -1),
        (marker(300, epoch=1), True, -1),
        (marker(300, producer_id=2), True, -1),
    ],
    ids=["retry", "ends data", "too late", "other outcome", "other epoch", "other producer"],
)
def test_a_marker_behind_its_like_is_a_retry(
    again: dict[str, int], ends_nothing: bool, wanted: int
) -> None:
    starts = (-20_000, -15_300, -9_100, -4_700, 0, 5_200, 11_800, 17_100)
    owed = [promise(at, at + 20) for at in starts]
    marks = [marker(at + 10) for at in starts]
    found = aligned(
        [*marks[:5], again, *marks[5:]],
        owed,
        ends_nothing=[*[False] * 5, ends_nothing, *[False] * 3],
    )
    assert found.promise.tolist() == [0, 1, 2, 3, 4, wanted, 5, 6, 7]
