"""What order tells where clocks do not: steps, repeats, and markers older than the coordinator's file."""

from __future__ import annotations

from tests.unit.replay.marked import ABORT, aligned, marker, promise


def test_a_marker_that_no_clock_explains_may_be_the_next_one_in_order() -> None:
    """Both clocks were set, one right after the other: in between one marker is an hour off."""
    starts = (0, 9_000, 21_000, 33_500, 41_000, 52_700, 64_100, 77_000)
    owed = [promise(at, at + 20) for at in starts]
    marks = [marker(at + 10 + 3_600_000 * (at == 41_000)) for at in starts]
    assert aligned(marks, owed).promise.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    other = [*marks[:4], marks[4] | {"type": ABORT}, *marks[5:]]
    assert aligned(other, owed).promise.tolist() == [0, 1, 2, 3, -1, 5, 6, 7]


def test_a_misfit_at_the_end_may_be_a_step_of_a_clock() -> None:
    """The last transaction but one lacks a marker, and nothing behind bears out the clock."""
    owed = [promise(at, at + 20) for at in (0, 400, 1_130, 2_310, 9_000, 10_500)]
    marks = [marker(at) for at in (10, 410, 1_140, 2_320, 8_500, 10_510)]
    assert aligned(marks, owed).promise.tolist() == [0, 1, 2, 3, 4, 5]
    stray = [*marks[:4], marker(2_810), marker(9_010), marker(10_510)]
    assert aligned(stray, owed).promise.tolist() == [0, 1, 2, 3, -1, 4, 5]


def test_a_commit_that_came_twice_behind_a_step_of_a_clock_is_one_transactions() -> None:
    """A generated life (seed 567): the second one took the transaction, so that the first one was nobody's."""
    owed = [promise(476, 491, ABORT)]
    ended = ((800, 813), (1_487, 1_499), (1_917, 1_930), (2_343, 2_358), (3_072, 3_102))
    owed += [promise(begin, end) for begin, end in ended]
    marks = [marker(660, ABORT), *(marker(ms) for ms in (991, 1_669, 2_099, 2_534, 3_415, 3_435))]
    assert aligned(marks, owed).promise.tolist() == [0, 1, 2, 3, 4, 5, 5]
    stray = [*marks[:5], marker(2_900), *marks[5:]]
    assert aligned(stray, owed).promise.tolist()[5] == -1


def test_a_marker_is_not_of_a_transaction_that_a_later_coordinator_epoch_prepared() -> None:
    """A generated life (seed 749): the leader's clock was stepped by 123 ms just before the coordinator moved."""
    times = ((1_743, 1_830), (2_500, 2_520), (2_701, 2_715), (3_078, 3_090))
    owed = [promise(begin, end) for begin, end in times]
    later = promise(3_813, 4_105, prepare_leader_epoch=2, complete_leader_epoch=2)
    marks = [
        *(marker(ms) for ms in (1_818, 2_495, 2_695, 3_194)),
        marker(4_216, coordinator_epoch=2),
    ]
    found = aligned(marks, [*owed, later])
    assert found.promise.tolist() == [0, 1, 2, -1, 4]
    assert found.is_ambiguous.tolist() == [False, False, False, True, False]


def test_a_repeat_may_be_the_next_transactions_only_marker() -> None:
    owed = [promise(at, at + 20) for at in (0, 400, 1_130, 2_310, 3_000)]
    marks = [marker(at) for at in (10, 410, 1_140, 2_315, 2_325)]
    found = aligned(marks, owed)
    assert found.promise.tolist() == [0, 1, 2, 3, -1]
    assert found.is_ambiguous.tolist() == [False] * 4 + [True]
    assert aligned(marks, owed[:4]).promise.tolist() == [0, 1, 2, 3, 3]


def test_markers_that_may_be_older_than_the_coordinators_file_follow_no_order() -> None:
    """Of a soak: compaction had taken the transactions of the first two, and order gave them the next three's place."""
    owed = [promise(290, 402), promise(1_421, 1_480), promise(1_623, 1_656), promise(1_768, 1_805)]
    marks = [marker(ms) for ms in (-242, 0, 318, 1_456, 1_632, 1_775)]
    cut = aligned(marks, owed, evidence=False, early=[True, True, True, False, False, False])
    assert cut.promise.tolist() == [-1] * 6
    assert cut.is_ambiguous.tolist() == [True] * 6
    whole = aligned(marks[:3], owed[:3], evidence=False)
    assert whole.promise.tolist() == [0, 1, 2]


def test_a_marker_that_may_be_older_is_doubted_only_beside_another() -> None:
    owed = [promise(290, 402), promise(9_000, 9_020)]
    marks = [marker(318), marker(9_010)]
    assert aligned(marks, owed, evidence=False, early=[True, False]).promise.tolist() == [0, 1]
    named = [promise(290, 402, version=2, epoch=2, prepare_epoch=3)]
    again = [marker(318, epoch=3), marker(320, epoch=3)]
    assert aligned(again, named, evidence=False, early=True).promise.tolist() == [0, 0]


def test_a_marker_of_the_other_outcome_may_be_another_transactions() -> None:
    """By time it is a commit's, but an aborted one within the skew has no marker at all."""
    owed = [promise(at, at + 20) for at in (0, 400, 1_130, 2_310)]
    marks = [marker(at) for at in (10, 410, 1_140)] + [marker(2_315, ABORT)]
    assert aligned(marks, owed).promise.tolist() == [0, 1, 2, 3]
    found = aligned(marks, [*owed, promise(2_600, 2_620, ABORT)])
    assert found.promise.tolist() == [0, 1, 2, -1]
    assert found.is_ambiguous.tolist() == [False] * 3 + [True]
