"""Transactions taken whole equal the same taken record by record."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from pipeline.config import Config
from pipeline.replay import coordinator_log
from pipeline.replay.coordinator import IdState
from pipeline.replay.coordinator_log import IdHistory
from pipeline.replay.plain_commit import PlainCommit, plain_commit
from pipeline.replay.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    MAX_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Record,
)
from pipeline.spark.coordinator_rows import INPUT
from tests.pure_input import read
from tests.recordings import all_recordings


def replayed(records: list[Record], rng: random.Random) -> IdHistory:
    return coordinator_log.replay_id(
        "id",
        records,
        coordinator_partition=0,
        partition_count=None,
        frontier_offset=rng.choice((0, 0, 5)),
        is_complete=rng.random() < 0.5,
    )


def generated(rng: random.Random) -> list[Record]:
    """Mostly plain transactions of one id; something of one record in eight is another than it should be."""
    version = rng.choice((0, 1, 2))
    epoch, offset, now = rng.choice((0, 0, 0, MAX_EPOCH - 4)), 0, 1_000
    found: list[Record] = []
    start = now

    def add(state: int | None, names: str) -> None:
        nonlocal offset, now, start
        offset += rng.randint(1, 3)
        now += rng.choice((1, 5, 900, 1500, 70_000))
        if not found or found[-1].state not in (ONGOING, PREPARE_ABORT, PREPARE_COMMIT):
            start = now
        one = Record(
            offset=offset,
            append_ms=now,
            leader_epoch=rng.randint(0, 1),
            value_version=min(version, 1),
            state=state,
            producer_id=1,
            producer_epoch=epoch,
            txn_timeout_ms=60_000,
            partitions=names,
            start_ms=start,
            next_producer_id=-1,
            client_transaction_version=2 if version == 2 and state != EMPTY else None,
        )
        if rng.random() < 0.12:
            name, values = rng.choice(
                (
                    ("producer_id", (2,)),
                    ("producer_epoch", (epoch + 1, epoch - 1, epoch + 2)),
                    ("txn_timeout_ms", (1,)),
                    ("partitions", ("", "a\x000", "b\x000\x01a\x000", "a\x000\x01a\x000")),
                    ("state", (None, EMPTY, ONGOING, PREPARE_ABORT, COMPLETE_ABORT, DEAD)),
                    ("value_version", (None, 0, 1)),
                    ("client_transaction_version", (None, 0, 1, 2)),
                    ("append_ms", (None,)),
                    ("start_ms", (None, now + 7)),
                )
            )
            one = one._replace(**{name: rng.choice(values)})
        found.append(one)

    add(EMPTY, "")
    for _ in range(rng.randint(1, 8)):
        names: list[str] = []
        for _ in range(rng.randint(1, 3)):
            names = sorted({*names, f"{rng.choice('abc')}\x000"})
            add(ONGOING, "\x01".join(names))
        epoch += version == 2
        is_abort = rng.random() < 0.2
        add(PREPARE_ABORT if is_abort else PREPARE_COMMIT, "\x01".join(names))
        add(COMPLETE_ABORT if is_abort else COMPLETE_COMMIT, "")
        if rng.random() < 0.2:
            add(EMPTY, "")
    return found[: rng.randint(1, len(found))]


def test_whole_transactions_equal_single_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = []
    taken = 0

    def counted(records: Sequence[Record], at: int, state: IdState) -> PlainCommit | None:
        nonlocal taken
        found = plain_commit(records, at, state)
        taken += found is not None
        return found

    monkeypatch.setattr(coordinator_log, "plain_commit", counted)
    for seed in range(3000):
        rng = random.Random(seed)
        whole.append(replayed(generated(rng), rng))
    assert taken > 2000
    monkeypatch.setattr(coordinator_log, "plain_commit", lambda *_: None)
    violations = 0
    for seed in range(3000):
        rng = random.Random(seed)
        single = replayed(generated(rng), rng)
        assert single == whole[seed], seed
        violations += any(step.violation for step in single.steps)
    assert violations > 300


def test_recorded_ids_are_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = []
    for folder in all_recordings():
        for rows in read(folder / "logs", Config()).states.values():
            ids: dict[str, list[Record]] = {}
            for row in sorted(rows, key=lambda row: int(row["base_offset"])):
                record = Record._make(row[name] for name in INPUT[2:])
                ids.setdefault(row["transactional_id"], []).append(record)
            logs += ids.values()
    assert len(logs) > 50
    whole = [replayed(one, random.Random(0)) for one in logs]
    monkeypatch.setattr(coordinator_log, "plain_commit", lambda *_: None)
    assert [replayed(one, random.Random(0)) for one in logs] == whole
