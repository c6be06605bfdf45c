"""The coordinator's state machine: each violation and its innocent twin."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.unit.replay.histories import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    FENCE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TOMBSTONE,
    Row,
    replayed,
    row,
    violations,
)

INIT, BEGIN = row(EMPTY), row(ONGOING)
COMMIT = [row(PREPARE_COMMIT), row(COMPLETE_COMMIT)]
ABORT = [row(PREPARE_ABORT), row(COMPLETE_ABORT)]
HIGH, LAST = 32766, 32767
NEW_ID = {"producer_id": 2}


class Pair(NamedTuple):
    """The last record of `offends` breaks the rule; `twin` differs by one row and is in order."""

    name: str
    version: int
    offends: list[Row]
    rule: str
    twin: list[Row]


PAIRS = [
    Pair(
        "complete without prepare", 0,
        [INIT, BEGIN, row(COMPLETE_COMMIT)], "illegal_transition", [INIT, BEGIN, *COMMIT],
    ),
    Pair(
        "prepare commit of nothing", 0,
        [INIT, row(PREPARE_COMMIT)], "illegal_transition", [INIT, BEGIN, row(PREPARE_COMMIT)],
    ),
    Pair(
        "prepare commit after complete", 0,
        [INIT, BEGIN, *COMMIT, row(PREPARE_COMMIT)], "illegal_transition",
        [INIT, BEGIN, *COMMIT, BEGIN, row(PREPARE_COMMIT)],
    ),
    Pair(
        "commit decided, abort completed", 0,
        [INIT, BEGIN, row(PREPARE_COMMIT), row(COMPLETE_ABORT)], "illegal_transition",
        [INIT, BEGIN, row(PREPARE_ABORT), row(COMPLETE_ABORT)],
    ),
    Pair(
        "begun again while prepared", 0,
        [INIT, BEGIN, row(PREPARE_COMMIT), BEGIN], "illegal_transition",
        [INIT, BEGIN, *COMMIT, BEGIN],
    ),
    Pair(
        "initialised while ongoing", 0,
        [INIT, BEGIN, row(EMPTY, 1)], "illegal_transition", [INIT, BEGIN, *ABORT, row(EMPTY, 1)],
    ),
    Pair(
        "empty abort before version 2", 1,
        [INIT, row(PREPARE_ABORT, 0, partitions="")], "illegal_transition",
        [INIT, BEGIN, row(PREPARE_ABORT)],
    ),
    Pair(
        "first record ever is no Empty", 0, [BEGIN], "illegal_transition", [INIT],
    ),
    Pair(
        "tombstone of a running transaction", 0,
        [INIT, BEGIN, row(TOMBSTONE)], "illegal_transition",
        [INIT, BEGIN, *COMMIT, row(TOMBSTONE)],
    ),
    Pair(
        "tombstone of a prepared transaction", 0,
        [INIT, BEGIN, row(PREPARE_ABORT), row(TOMBSTONE)], "illegal_transition",
        [INIT, BEGIN, *ABORT, row(TOMBSTONE)],
    ),
    Pair(
        "no Empty behind a tombstone", 0,
        [INIT, row(TOMBSTONE), BEGIN], "illegal_transition",
        [INIT, row(TOMBSTONE), row(EMPTY, 0, **NEW_ID)],
    ),
    Pair(
        "another epoch while ongoing", 0,
        [INIT, row(ONGOING, 1)], "epoch_rule", [INIT, row(EMPTY, 1), row(ONGOING, 1)],
    ),
    Pair(
        "another producer id while ongoing", 0,
        [INIT, row(ONGOING, 0, **NEW_ID)], "epoch_rule",
        [INIT, row(EMPTY, 0, **NEW_ID), row(ONGOING, 0, **NEW_ID)],
    ),
    Pair(
        "Empty goes back", 0,
        [INIT, row(EMPTY, 3), row(EMPTY, 2)], "epoch_rule", [INIT, row(EMPTY, 3), row(EMPTY, 4)],
    ),
    Pair(
        "new producer id does not begin at 0", 0,
        [INIT, row(EMPTY, 1, **NEW_ID)], "epoch_rule", [INIT, row(EMPTY, 0, **NEW_ID)],
    ),
    Pair(
        "commit with a bumped epoch before version 2", 0,
        [INIT, BEGIN, row(PREPARE_COMMIT, 1)], "epoch_rule", [INIT, BEGIN, row(PREPARE_ABORT, 1)],
    ),
    Pair(
        "commit without a bumped epoch under version 2", 2,
        [INIT, BEGIN, row(PREPARE_COMMIT, 0)], "epoch_rule", [INIT, BEGIN, row(PREPARE_COMMIT, 1)],
    ),
    Pair(
        "complete with another epoch", 0,
        [INIT, BEGIN, row(PREPARE_COMMIT), row(COMPLETE_COMMIT, 1)], "epoch_rule",
        [INIT, BEGIN, *COMMIT],
    ),
    Pair(
        "complete with another epoch, version 2", 2,
        [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 2)], "epoch_rule",
        [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 1)],
    ),
    Pair(
        "complete with a producer id that nobody announced", 2,
        [row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_COMMIT, HIGH + 1, next_producer_id=3),
         row(COMPLETE_COMMIT, 0, **NEW_ID)], "epoch_rule",
        [row(EMPTY, HIGH), row(ONGOING, HIGH), row(PREPARE_COMMIT, HIGH + 1, next_producer_id=2),
         row(COMPLETE_COMMIT, 0, **NEW_ID)],
    ),
    Pair(
        "complete with a new producer id below the last epoch", 2,
        [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 0, **NEW_ID)], "epoch_rule",
        [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(COMPLETE_COMMIT, 1)],
    ),
    Pair(
        "two epochs at once (KAFKA-19367)", 2,
        [INIT, BEGIN, row(PREPARE_ABORT, 2)], "double_epoch_bump",
        [INIT, BEGIN, row(PREPARE_ABORT, 1)],
    ),
    Pair(
        "the last epoch is given away", 0,
        [row(EMPTY, HIGH), row(EMPTY, LAST)], "epoch_rule",
        [row(EMPTY, HIGH), row(EMPTY, 0, **NEW_ID)],
    ),
    Pair(
        "a second commit with another epoch", 2,
        [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(PREPARE_COMMIT, 2)], "illegal_transition",
        [INIT, BEGIN, row(PREPARE_COMMIT, 1), row(PREPARE_COMMIT, 1)],
    ),
    Pair(
        "prepare lists less", 0,
        [INIT, row(ONGOING, 0, partitions="a+b"), row(PREPARE_COMMIT, 0, partitions="a")],
        "partition_set_shrank",
        [INIT, row(ONGOING, 0, partitions="a+b"), row(PREPARE_COMMIT, 0, partitions="a+b")],
    ),
    Pair(
        "timeout changes while prepared", 0,
        [INIT, BEGIN, row(PREPARE_COMMIT, 0, txn_timeout_ms=1)], "timeout_changed",
        [INIT, row(EMPTY, 1, txn_timeout_ms=1), row(ONGOING, 1, txn_timeout_ms=1)],
    ),
    Pair(
        "Dead is on disk", 0,
        [INIT, row(DEAD)], "impossible_state_on_disk", [INIT, row(TOMBSTONE)],
    ),
    Pair(
        "PrepareEpochFence is on disk", 0,
        [INIT, BEGIN, row(FENCE, 1)], "impossible_state_on_disk",
        [INIT, BEGIN, row(PREPARE_ABORT, 1)],
    ),
    Pair(
        "Empty lists partitions", 0,
        [INIT, BEGIN, *ABORT, row(EMPTY, 1, partitions="a")], "impossible_state_on_disk",
        [INIT, BEGIN, *ABORT, row(EMPTY, 1)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_an_offence_is_found_where_it_is(pair: Pair) -> None:
    last = len(pair.offends) - 1
    is_first = pair.offends[0].epoch == HIGH
    history = replayed(pair.offends, pair.version, is_complete=not is_first)
    assert violations(history) == [(last, pair.rule)]
    assert history.steps[last].explanation


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_the_innocent_twin_is_silent(pair: Pair) -> None:
    assert violations(replayed(pair.twin, pair.version)) == []


SHRUNK = [INIT, row(ONGOING, 0, partitions="a+b"), row(ONGOING, 0, partitions="a")]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_step_across_the_frontier_is_not_judged(pair: Pair) -> None:
    found = violations(replayed(pair.offends, pair.version, frontier=99, is_complete=False))
    always = [(len(pair.offends) - 1, pair.rule)]
    assert found == (always if pair.rule == "impossible_state_on_disk" else [])


def test_a_set_that_shrank() -> None:
    assert violations(replayed(SHRUNK)) == [(2, "partition_set_shrank")]
    grown = [INIT, row(ONGOING, 0, partitions="a"), row(ONGOING, 0, partitions="a+b")]
    assert violations(replayed(grown)) == []


def test_a_tombstone_below_the_frontier_convicts_nobody() -> None:
    rows = [row(TOMBSTONE), BEGIN]
    assert violations(replayed(rows, frontier=1, is_complete=False)) == []
    assert violations(replayed(rows, frontier=0, is_complete=False)) == [(1, "illegal_transition")]


@pytest.mark.parametrize("state", [-1, 8, 100])
def test_a_state_that_does_not_exist_is_an_offence_and_no_exception(state: int) -> None:
    assert (1, "impossible_state_on_disk") in violations(replayed([INIT, row(state), BEGIN]))
    assert violations(replayed([row(state), BEGIN]))


def test_an_epoch_that_jumps_under_version_0_is_kafka_9666() -> None:
    rows = [INIT, BEGIN, row(PREPARE_ABORT, 4), row(COMPLETE_ABORT, 4)]
    assert violations(replayed(rows)) == []
