"""What made the coordinator write each record, failed appends included."""

from __future__ import annotations

import pytest

from pipeline.replay.coordinator import CAUSES
from tests.unit.replay.histories import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TIMEOUT_MS,
    TOMBSTONE,
    Row,
    causes,
    replayed,
    row,
    violations,
)

INIT, BEGIN = row(EMPTY), row(ONGOING)
COMMIT = [row(PREPARE_COMMIT), row(COMPLETE_COMMIT)]
ABORT = [row(PREPARE_ABORT), row(COMPLETE_ABORT)]
HIGH = 32766
NEW_ID = {"producer_id": 2}


LIVES = {
    "commit": (0, [INIT, BEGIN, *COMMIT], ["init", "add_partitions", "client_commit", "complete"]),
    "abort": (0, [INIT, BEGIN, *ABORT], ["init", "add_partitions", "client_abort", "complete"]),
    "partitions are added one by one": (
        0, [INIT, BEGIN, row(ONGOING, 0, partitions="a+b"), row(PREPARE_ABORT, 0, partitions="a+b")],
        ["init", "add_partitions", "add_partitions", "client_abort"],
    ),
    "an instance comes back": (
        0, [INIT, BEGIN, *COMMIT, row(EMPTY, 1), row(EMPTY, 1)],
        ["init", "add_partitions", "client_commit", "complete", "init_again", "init_retry"],
    ),
    "fence": (
        0, [INIT, BEGIN, row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1), row(EMPTY, 2)],
        ["init", "add_partitions", "fence", "complete", "init_again"],
    ),
    "timeout": (
        0, [INIT, BEGIN, row(PREPARE_ABORT, 1, wait_ms=TIMEOUT_MS + 3), row(COMPLETE_ABORT, 1)],
        ["init", "add_partitions", "timeout", "complete"],
    ),
    "version 1 as version 0": (
        1, [INIT, BEGIN, *COMMIT, BEGIN, row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1)],
        ["init", "add_partitions", "client_commit", "complete", "add_partitions", "fence",
         "complete"],
    ),
    "version 2": (
        2, [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 1), row(ONGOING, 1)],
        ["init", "add_partitions", "client_commit", "complete", "add_partitions"],
    ),
    "timeout under version 2": (
        2, [INIT, BEGIN, row(PREPARE_ABORT, 1, wait_ms=TIMEOUT_MS), row(COMPLETE_ABORT, 1)],
        ["init", "add_partitions", "timeout", "complete"],
    ),
    "abort of a transaction that wrote nothing": (
        2, [INIT, row(PREPARE_ABORT, 1, partitions=""), row(COMPLETE_ABORT, 1),
            row(PREPARE_ABORT, 2, partitions=""), row(COMPLETE_ABORT, 2)],
        ["init", "empty_abort", "complete", "empty_abort", "complete"],
    ),
    "expiry and a new life": (
        0, [INIT, row(TOMBSTONE), row(EMPTY, 0, **NEW_ID)], ["init", "expiry", "init"],
    ),
    "epochs are used up": (
        0, [INIT, row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID)],
        ["init", "init_again", "epoch_exhausted"],
    ),
    "fence with the last epoch": (
        0, [INIT, row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_ABORT, HIGH + 1),
            row(COMPLETE_ABORT, HIGH + 1), row(EMPTY, 0, **NEW_ID)],
        ["init", "init_again", "add_partitions", "fence", "complete", "epoch_exhausted"],
    ),
    "version 2 rotates the producer id with Complete*": (
        2, [INIT, row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_COMMIT, HIGH + 1),
            row(COMPLETE_COMMIT, 0, **NEW_ID), row(ONGOING, 0, **NEW_ID)],
        ["init", "init_again", "add_partitions", "client_commit", "complete", "add_partitions"],
    ),
    "timeout is changed by InitProducerId": (
        0, [INIT, row(EMPTY, 1, txn_timeout_ms=5), row(ONGOING, 1, txn_timeout_ms=5)],
        ["init", "init_again", "add_partitions"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIVES)
def test_what_made_the_coordinator_write(name: str) -> None:
    version, rows, wanted = LIVES[name]
    history = replayed(rows, version)
    assert violations(history) == []
    assert causes(history) == wanted
    assert set(wanted) <= set(CAUSES)


LATE = {"wait_ms": 2_000}
FAILED = {
    "Prepare* written twice": [INIT, BEGIN, row(PREPARE_COMMIT), *COMMIT],
    "Complete* written twice": [INIT, BEGIN, *COMMIT, row(COMPLETE_COMMIT)],
    "PrepareCommit replaced by PrepareAbort": [
        INIT, BEGIN, row(PREPARE_COMMIT), row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1)
    ],
    "PrepareAbort twice, the second with epoch + 1": [
        INIT, BEGIN, row(PREPARE_ABORT), row(PREPARE_ABORT, 1), row(COMPLETE_ABORT, 1)
    ],
    "Ongoing written twice": [INIT, BEGIN, BEGIN, *COMMIT],
}  # fmt: skip
TAKEN_BACK = {
    "a partition whose append failed": [
        INIT, BEGIN, row(ONGOING, 0, partitions="a+b"), row(PREPARE_ABORT, 0, **LATE),
        row(COMPLETE_ABORT),
    ],
    "another partition instead": [
        INIT, BEGIN, row(ONGOING, 0, partitions="a+b"),
        row(ONGOING, 0, partitions="a+c", **LATE),
    ],
    "a decision, and the transaction goes on": [
        INIT, BEGIN, row(PREPARE_COMMIT), row(ONGOING, 0, partitions="a+b", **LATE)
    ],
}  # fmt: skip


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("name", FAILED)
def test_an_append_that_failed_is_no_offence(name: str, version: int) -> None:
    history = replayed(FAILED[name], version)
    assert violations(history) == []
    assert causes(history).count("repeated_append") == 1
    assert len(history.transactions) == 1


@pytest.mark.parametrize("name", TAKEN_BACK)
def test_a_step_counts_once_the_next_regular_one_follows(name: str) -> None:
    assert violations(replayed(TAKEN_BACK[name])) == []


LIVES_ON = {
    "a tombstone, and the id lives on": [INIT, BEGIN, *COMMIT, row(TOMBSTONE), row(ONGOING, 0, **LATE)],
    "two tombstones": [INIT, row(TOMBSTONE), row(TOMBSTONE, 0, **LATE), row(ONGOING, 0, **LATE)],
    "a tombstone before another instance": [INIT, row(TOMBSTONE), row(EMPTY, 1, **LATE)],
}  # fmt: skip


@pytest.mark.parametrize("name", LIVES_ON)
def test_an_id_outlives_a_tombstone_whose_append_failed(name: str) -> None:
    assert violations(replayed(LIVES_ON[name])) == []


@pytest.mark.parametrize("later", [row(ONGOING, 0, **NEW_ID, **LATE), row(ONGOING)])
def test_behind_a_tombstone_an_id_begins_anew(later: Row) -> None:
    """Another producer id is a new life; the same one at once is no attempt that failed in the meantime."""
    assert violations(replayed([INIT, row(TOMBSTONE), later])) == [(2, "illegal_transition")]


@pytest.mark.parametrize("name", TAKEN_BACK)
def test_without_the_wait_for_followers_it_was_taken(name: str) -> None:
    rows = [one._replace(wait_ms=10) for one in TAKEN_BACK[name]]
    found = violations(replayed(rows))
    assert [at for at, _ in found] == [3] or name == "another partition instead"


def test_the_last_prepare_is_the_outcome() -> None:
    replaced = replayed(FAILED["PrepareCommit replaced by PrepareAbort"]).transactions[0]
    assert (replaced.outcome, replaced.prepare_epoch, replaced.state) == (0, 1, COMPLETE_ABORT)
    assert replaced.prepare_offset == 3
    twice = replayed(FAILED["Prepare* written twice"]).transactions[0]
    assert (twice.outcome, twice.prepare_offset) == (1, 3)
    assert (
        twice.prepare_ms
        == replayed(FAILED["Prepare* written twice"][:3]).transactions[0].prepare_ms
    )


def test_a_partition_whose_append_failed_was_never_promised() -> None:
    (one,) = replayed(TAKEN_BACK["a partition whose append failed"]).transactions
    assert [name for name, _ in one.added] == ["a\x000"]


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_transaction_whose_first_append_failed_never_was(attempts: int) -> None:
    again = [row(ONGOING, 0, **LATE)] * (attempts - 1)
    history = replayed([INIT, BEGIN, *again, row(EMPTY, 1, **LATE)])
    assert violations(history) == []
    assert history.transactions == []


def test_the_wait_for_followers_is_a_second() -> None:
    for wait_ms, wanted in ((1_000, []), (999, [(2, "illegal_transition")])):
        assert violations(replayed([INIT, BEGIN, row(EMPTY, 1, wait_ms=wait_ms)])) == wanted
