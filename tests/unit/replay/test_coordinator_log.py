"""An id's records as transactions and as ownership of producer ids."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.replay.coordinator_log import Owner, replay_id
from pipeline.replay.transaction import Transaction
from tests.unit.replay.histories import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    START_MS,
    TIMEOUT_MS,
    TOMBSTONE,
    Row,
    records,
    replayed,
    row,
    violations,
)

INIT, BEGIN = row(EMPTY), row(ONGOING)
COMMIT = [row(PREPARE_COMMIT), row(COMPLETE_COMMIT)]


def fields(transaction: Transaction, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(transaction, name) for name in names)


def test_a_transaction_from_its_first_record_to_its_last() -> None:
    grown = row(ONGOING, partitions="a+b", wait_ms=40)
    prepare = row(PREPARE_COMMIT, partitions="a+b")
    (one,) = replayed([INIT, BEGIN, grown, prepare, row(COMPLETE_COMMIT)]).transactions
    assert fields(one, "first_step_offset", "prepare_offset", "complete_offset") == (1, 3, 4)
    at = [START_MS + wait for wait in (20, 60, 70, 80)]
    assert fields(one, "ongoing_ms", "prepare_ms", "complete_ms") == (at[0], at[2], at[3])
    assert one.added == (("a\x000", at[0]), ("b\x000", at[1]))
    assert fields(one, "outcome", "cause", "state") == (1, "client_commit", COMPLETE_COMMIT)
    assert one.has_start


HALVES: dict[str, tuple[list[Row], tuple[Any, ...]]] = {
    # state, outcome, has_start, cause
    "still running": ([INIT, BEGIN], (ONGOING, None, True, None)),
    "prepared": ([INIT, BEGIN, row(PREPARE_ABORT)], (PREPARE_ABORT, 0, True, "client_abort")),
    "its start was cut": ([BEGIN, *COMMIT], (COMPLETE_COMMIT, 1, False, "client_commit")),
    "all but its end was cut": (COMMIT, (COMPLETE_COMMIT, 1, False, None)),
    "initialised since, without an end": (
        [INIT, BEGIN, row(EMPTY, 1)],
        (ONGOING, None, True, None),
    ),
}


@pytest.mark.parametrize("name", HALVES)
def test_what_is_left_of_a_transaction(name: str) -> None:
    rows, wanted = HALVES[name]
    (one,) = replayed(rows, is_complete=False).transactions
    assert fields(one, "state", "outcome", "has_start", "cause") == wanted


def test_the_last_record_alone_is_no_transaction() -> None:
    assert replayed([row(COMPLETE_COMMIT)], is_complete=False).transactions == []


@pytest.mark.parametrize(("version", "epoch"), [(0, 0), (1, 0), (2, 1)])
def test_markers_carry_the_epoch_of_the_decision(version: int, epoch: int) -> None:
    rows = [
        INIT,
        BEGIN,
        row(PREPARE_COMMIT, epoch),
        row(COMPLETE_COMMIT, epoch),
        row(ONGOING, epoch),
    ]
    first, second = replayed(rows, version).transactions
    assert fields(first, "producer_epoch", "prepare_epoch", "transaction_version") == (
        0,
        epoch,
        version,
    )
    assert fields(second, "producer_epoch", "prepare_epoch") == (epoch, None)


def test_an_older_client_on_a_version_2_cluster() -> None:
    """The feature level is one of each transaction: librdkafka keeps its epoch."""
    rows = [INIT, row(ONGOING, client_transaction_version=None),
            row(PREPARE_COMMIT, 0, client_transaction_version=None),
            row(COMPLETE_COMMIT, 0, client_transaction_version=None)]  # fmt: skip
    history = replayed(rows, 2)
    assert violations(history) == []
    assert history.transactions[0].transaction_version == 1


def test_a_commit_with_a_bump_is_version_2_whatever_the_tag() -> None:
    rows = [INIT, BEGIN, row(PREPARE_COMMIT, 1, client_transaction_version=None)]
    assert replayed(rows, 2).transactions[0].transaction_version == 2


@pytest.mark.parametrize(("wait_ms", "cause"), [(100, "fence"), (40_000, "client_abort")])
def test_a_version_2_abort_before_a_new_instance_was_its_fence(wait_ms: int, cause: str) -> None:
    rows = [
        INIT,
        BEGIN,
        row(PREPARE_ABORT, 1),
        row(COMPLETE_ABORT, 1),
        row(EMPTY, 2, wait_ms=wait_ms),
    ]
    assert replayed(rows, 2).transactions[0].cause == cause


def test_one_transaction_however_often_its_end_was_written() -> None:
    history = replayed([INIT, BEGIN, *COMMIT, row(COMPLETE_COMMIT, wait_ms=2_000), row(ONGOING)])
    first, second = history.transactions
    assert violations(history) == []
    assert fields(first, "outcome", "complete_offset") == (1, 3)
    assert second.first_step_offset == 5


def owners(rows: list[Row], version: int = 0) -> dict[int, Owner]:
    return {one.producer_id: one for one in replayed(rows, version).owners}


def test_an_id_holds_its_producer_id() -> None:
    (one,) = owners([INIT, row(ONGOING, partitions="a+b")]).values()
    assert one.is_current
    assert (one.state, one.producer_epoch, one.txn_timeout_ms) == (ONGOING, 0, TIMEOUT_MS)
    assert one.partitions == ("a\x000", "b\x000")
    assert one.append_ms == START_MS + 20


def test_an_id_keeps_what_it_held() -> None:
    found = owners([row(EMPTY, 32766), row(EMPTY, 0, producer_id=2), row(EMPTY, 1, producer_id=2)])
    assert [found[pid].is_current for pid in (1, 2)] == [False, True]
    assert found[2].producer_epoch == 1


def test_an_id_that_expired_holds_nothing() -> None:
    (one,) = owners([INIT, row(TOMBSTONE)]).values()
    assert (one.is_current, one.state, one.producer_epoch) == (False, None, None)


@pytest.mark.parametrize("rows", [[row(DEAD)], [row(TOMBSTONE)]], ids=["dead", "tombstone"])
def test_records_that_make_nobody_an_owner(rows: list[Row]) -> None:
    history = replayed(rows, is_complete=False)
    assert (history.owners, history.transactions) == ([], [])
    assert len(history.steps) == 1


def test_a_producer_id_of_an_impossible_record_is_nobodys() -> None:
    assert list(owners([INIT, row(DEAD, producer_id=9)])) == [1]


# "id" hashes to partition 5 of 10 (105 * 31 + 100 = 3355).
@pytest.mark.parametrize(
    ("count", "wanted"), [(None, None), (10, None), (7, "wrong_partition"), (1, "wrong_partition")]
)
def test_an_id_belongs_where_its_hash_says(count: int | None, wanted: str | None) -> None:
    history = replay_id(
        "id", records([INIT, BEGIN]), coordinator_partition=5, partition_count=count,
        frontier_offset=0, is_complete=True,
    )  # fmt: skip
    assert [step.violation for step in history.steps] == [wanted, None]


OLD = row(ONGOING, 214, start_ms=START_MS)
SEVERED = {
    "Complete*, its Prepare* is gone": [OLD, row(COMPLETE_ABORT, 254, start_ms=START_MS + 15_605)],
    "Prepare* of a later transaction": [OLD, row(PREPARE_COMMIT, 214, start_ms=START_MS + 15_605)],
    "a later transaction's first partitions": [OLD, row(ONGOING, 214, start_ms=START_MS + 9)],
    "Complete* behind an older Prepare*": [
        row(PREPARE_ABORT, 4, start_ms=START_MS), row(COMPLETE_ABORT, 4, start_ms=START_MS + 9),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rows", SEVERED.values(), ids=SEVERED)
def test_what_a_copy_lost_beside_the_cleaner_joins_no_two_transactions(rows: list[Row]) -> None:
    """Of a soak: one segment was copied before the cleaner merged the next ones into it, and those were gone."""
    cut = replayed(rows, frontier=1, is_complete=False)
    assert cut.steps[0].cause == "first_retained"
    assert all(one.first_step_offset == 1 for one in cut.transactions)
    assert violations(cut) == []
    whole = replayed(rows, frontier=0, is_complete=False)
    assert whole.transactions[0].first_step_offset == 0


def test_a_transaction_across_the_frontier_that_keeps_its_start_is_one() -> None:
    rows = [row(ONGOING, 0, start_ms=START_MS), row(PREPARE_COMMIT, 0, start_ms=START_MS)]
    (one,) = replayed(rows, frontier=1, is_complete=False).transactions
    assert (one.first_step_offset, one.outcome) == (0, 1)


def test_the_first_record_that_is_left_may_be_a_failed_attempt() -> None:
    """Of a soak: a crash took the append of 439 back, and compaction what came before it."""
    rows = [row(ONGOING, 25), row(EMPTY, 26, wait_ms=6_113)]
    cut = replayed(rows, is_complete=False)
    assert (violations(cut), cut.transactions) == ([], [])
    at_once = [row(ONGOING, 25), row(EMPTY, 26)]
    assert violations(replayed(at_once, is_complete=False)) == [(1, "illegal_transition")]
    known = [row(EMPTY, 24), row(ONGOING, 24), row(COMPLETE_COMMIT, 24, wait_ms=6_113)]
    assert violations(replayed(known, is_complete=False)) == [(2, "illegal_transition")]
