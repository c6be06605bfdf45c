"""Transactions that take long: to be ended, to be marked, or nearly too long.

All times are of one coordinator under one leader epoch, so of one clock.

Source: `TransactionMetadata`, `TransactionMarkerChannelManager`; KIP-98.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pipeline.replay.alive import Alive, waited_ms
from pipeline.replay.application import application
from pipeline.replay.columns import NONE, Columns, Longs, Mask, groups
from pipeline.replay.statement import Place, Statement, span
from pipeline.replay.transaction_state import ONGOING
from pipeline.text import counted
from schemas.codes import TWO_PHASE_TIMEOUT_MS, TXN_TOPIC

NUMBERS = (
    "copy", "coordinator_partition", "first_step_offset", "producer_id", "producer_epoch", "prepare_epoch", "state",
    "outcome", "transaction_version", "txn_timeout_ms", "ongoing_ms", "ongoing_leader_epoch", "prepare_offset",
    "prepare_ms", "prepare_leader_epoch", "complete_offset", "complete_ms", "complete_leader_epoch",
)  # fmt: skip
TEXTS = ("transactional_id", "cause")
REPEATED = "repeated_append"
"""Cause of a step whose append failed or was repeated (`pipeline.replay.coordinator.CAUSES`)."""


class Limits(NamedTuple):
    """From where on a transaction is slow (`health` in the settings); times in ms."""

    commit_latency_ms: int
    long_running_ms: int
    near_timeout_share: float
    pattern: str | None = None


def statements(
    transactions: Columns,
    repeated: Columns,
    lived: Mapping[tuple[int, int, int], Alive],
    limits: Limits,
) -> list[Statement]:
    """One statement for each transactional id and class.

    Args:
        transactions: Columns `NUMBERS` and `TEXTS` of `silver.transaction`.
        repeated: Columns `copy`, `coordinator_partition`, `offset` and `transactional_id` of
            `silver.coordinator_step`, of steps with the cause `REPEATED`.
        lived: (copy, coordinator partition, leader epoch) -> how long that coordinator lived.
        limits: What counts as slow.
    """
    one = transactions
    open_ms, ended_ms = _durations(one, lived)
    open_ms[_was_repeated(one, "prepare_offset", repeated)] = NONE
    ended_ms[_was_repeated(one, "complete_offset", repeated)] = NONE
    timeout = one["txn_timeout_ms"]
    is_ended = one["prepare_ms"] != NONE
    # An external coordinator decides when those end (KIP-939); both sides know that it may take days.
    is_two_phase = timeout == TWO_PHASE_TIMEOUT_MS
    has_deadline = (timeout > 0) & ~is_two_phase
    is_near = is_ended & has_deadline & one.is_in("cause", "client_commit", "client_abort")
    is_near &= open_ms >= limits.near_timeout_share * timeout
    said = []
    for label, mask, times in (
        ("long_running", (open_ms > limits.long_running_ms) & ~is_two_phase, open_ms),
        ("slow_markers", ended_ms > limits.commit_latency_ms, ended_ms),
        ("near_timeout", is_near, open_ms),
    ):
        said += _by_id(one, label, mask, times, limits)
    return said


def _durations(one: Columns, lived: Mapping[tuple[int, int, int], Alive]) -> tuple[Longs, Longs]:
    """Ms from the first Ongoing to Prepare* (or as long as is known), and from there to Complete*; -1 unknown."""
    until = one["prepare_ms"].copy()
    is_same = one["prepare_leader_epoch"] == one["ongoing_leader_epoch"]
    for at in np.flatnonzero(one["state"] == ONGOING):
        key = (one["copy"][at], one["coordinator_partition"][at], one["ongoing_leader_epoch"][at])
        alive = lived.get((int(key[0]), int(key[1]), int(key[2])))
        begun = int(one["ongoing_ms"][at])
        until[at] = NONE if alive is None else begun + waited_ms(alive, begun)
        is_same[at] = True
    is_known = is_same & (one["ongoing_ms"] != NONE) & (until != NONE)
    open_ms = np.where(is_known, until - one["ongoing_ms"], NONE)
    is_known = (one["complete_ms"] != NONE) & (one["prepare_ms"] != NONE)
    is_known &= one["complete_leader_epoch"] == one["prepare_leader_epoch"]
    return open_ms, np.where(is_known, one["complete_ms"] - one["prepare_ms"], NONE)


def _was_repeated(one: Columns, until: str, repeated: Columns) -> Mask:
    """An append failed or was repeated on the way to a step: client and marked partitions did not take that time."""
    offsets: dict[tuple[int, int, str | None], list[int]] = {}
    for at in range(repeated.rows):
        name = repeated.text("transactional_id", at)
        key = (int(repeated["copy"][at]), int(repeated["coordinator_partition"][at]), name)
        insort(offsets.setdefault(key, []), int(repeated["offset"][at]))
    known = {name for _, _, name in offsets}
    numbers = [at for at, name in enumerate(one.names["transactional_id"]) if name in known]
    result = np.zeros(one.rows, np.bool_)
    for row in map(int, np.flatnonzero(np.isin(one["transactional_id"], numbers))):
        name = one.text("transactional_id", row)
        mine = offsets.get(
            (int(one["copy"][row]), int(one["coordinator_partition"][row]), name), []
        )
        after = bisect_right(mine, int(one["first_step_offset"][row]))
        result[row] = after < len(mine) and mine[after] <= int(one[until][row])
    return result


def _by_id(one: Columns, label: str, mask: Mask, times: Longs, limits: Limits) -> list[Statement]:
    slow = one.where(mask)
    took = times[mask]
    totals = {
        (int(one["copy"][rows[0]]), int(one["transactional_id"][rows[0]])): len(rows)
        for rows in groups(one["copy"], one["transactional_id"])
    } if slow.rows else {}  # fmt: skip
    said = []
    for rows in groups(slow["copy"], slow["transactional_id"]):
        worst = int(rows[np.argmax(took[rows])])
        name = slow.text("transactional_id", worst) or ""
        total = totals[int(slow["copy"][worst]), int(slow["transactional_id"][worst])]
        said.append(_statement(slow, label, rows, worst, took, total, name, limits))
    return said


def _statement(
    slow: Columns, label: str, rows: Longs, worst: int, took: Longs, total: int, name: str,
    limits: Limits,
) -> Statement:  # fmt: skip
    longest = int(took[worst])
    timeout = int(slow["txn_timeout_ms"][worst])
    timed_out = int((slow.is_in("cause", "timeout"))[rows].sum())
    what = {
        "long_running": f"stayed open for more than {span(limits.long_running_ms)}, {timed_out} of them until the "
        "coordinator aborted them",
        "slow_markers": f"took more than {span(limits.commit_latency_ms)} from the decision to Complete*",
        "near_timeout": f"used more than {limits.near_timeout_share:.0%} of transaction.timeout.ms",
    }[label]
    title = {
        "long_running": f"transactions of {name} stay open for up to {span(longest)}",
        "slow_markers": f"markers of transactions of {name} take up to {span(longest)}",
        "near_timeout": f"transactions of {name} come within {span(timeout - longest)} of their timeout"
        if longest < timeout
        else f"transactions of {name} take up to {span(longest)}, their timeout is {span(timeout)}",
    }[label]
    partition = int(slow["coordinator_partition"][worst])
    offset = int(slow["first_step_offset"][worst])
    middle = int(np.median(took[rows]))
    times = f"it took {span(longest)}"
    if len(rows) > 1:
        times = f"half of these took {span(middle)} or more, the longest {span(longest)}"
    limit = "" if label == "slow_markers" else f", with a timeout of {span(timeout)}"
    return Statement(
        int(slow["copy"][worst]), label, "minor", "proven", title,
        f"{len(rows)} of {counted(total, 'transaction')} of {name}, application "
        f"{application(name, limits.pattern)}, {what}; {times}{limit}.",
        topic=TXN_TOPIC, partition=partition, transactional_id=name,
        producer_id=slow.value("producer_id", worst), producer_epoch=slow.value("producer_epoch", worst),
        first_timestamp_ms=slow.value("ongoing_ms", worst), last_timestamp_ms=slow.value("complete_ms", worst),
        places=(Place(TXN_TOPIC, partition, offset, "first record of the slowest transaction"),),
    )  # fmt: skip
