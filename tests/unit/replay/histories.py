"""Coordinator histories in short: rows with defaults become records, and records become steps."""

from __future__ import annotations

from typing import Any, NamedTuple

from pipeline.replay.coordinator_log import IdHistory, replay_id
from pipeline.replay.transaction_state import Record

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, FENCE = range(
    8
)
TOMBSTONE = None
START_MS = 1_795_000_000_000
TIMEOUT_MS = 60_000


class Row(NamedTuple):
    """One record: its state, and what is not the default."""

    state: int | None
    epoch: int
    wait_ms: int
    fields: dict[str, Any]


def row(state: int | None, epoch: int = 0, *, wait_ms: int = 10, **fields: Any) -> Row:
    """A record of producer 1.

    Args:
        state: New state; None is a tombstone.
        epoch: Producer epoch.
        wait_ms: How much later than the record before it was appended.
        **fields: Fields of `Record`; `partitions` are names with `+` between them (default `a`
            where the state lists any).
    """
    return Row(state, epoch, wait_ms, fields)


def records(rows: list[Row], version: int = 0) -> list[Record]:
    """The rows as records, at offsets 0, 1, ...

    Args:
        rows: In log order.
        version: transaction.version: 0 writes value version 0, 1 and 2 write version 1, 2 tells
            the client's version.
    """
    found, now, start = [], START_MS, START_MS
    for offset, (state, epoch, wait_ms, fields) in enumerate(rows):
        now += wait_ms
        if state == ONGOING and (not found or found[-1].state != ONGOING):
            start = now
        lists = state in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT)
        names = fields.get("partitions", "a" if lists else "")
        plain = {
            "offset": offset,
            "append_ms": now,
            "leader_epoch": 0,
            "value_version": None if state is None else min(version, 1),
            "state": state,
            "producer_id": 1,
            "producer_epoch": epoch,
            "txn_timeout_ms": TIMEOUT_MS,
            "start_ms": start if state not in (EMPTY, None) else None,
            "next_producer_id": -1,
            "client_transaction_version": 2 if version == 2 and state != EMPTY else None,
        }
        listed = "\x01".join(f"{name}\x000" for name in names.split("+") if name)
        found.append(Record(**{**plain, **fields, "partitions": listed}))
    return found


def replayed(
    rows: list[Row], version: int = 0, *, frontier: int = 0, is_complete: bool = True
) -> IdHistory:
    """The rows replayed as one id's whole log."""
    return replay_id(
        "id",
        records(rows, version),
        coordinator_partition=0,
        partition_count=None,
        frontier_offset=frontier,
        is_complete=is_complete,
    )


def violations(history: IdHistory) -> list[tuple[int, str]]:
    """Which records offend which rule."""
    return [(at, step.violation) for at, step in enumerate(history.steps) if step.violation]


def causes(history: IdHistory) -> list[str]:
    """What made the coordinator write each record."""
    return [step.cause for step in history.steps]
