"""Runs over arrays equal the replay, row by row, on every recording and on generated histories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pipeline.replay.history import replay
from pipeline.replay.producer_arrays import INPUT
from pipeline.spark import producer_rows
from pipeline.spark.arrow import arrow_schema
from pipeline.spark.columnar import Pack
from schemas import bronze
from tests.differential.logs import Log, generated, is_near_wrap, recorded


def packs(log: Log, rows: int) -> Iterator[Pack]:
    schema = pa.schema([arrow_schema(bronze.BATCH).field(name) for name in INPUT])
    for start in range(0, len(log.batches), rows):
        held = log.batches[start : start + rows]
        columns = {name: [getattr(one, name) for one in held] for name in INPUT}
        yield Pack(0, "batch", held[0].base_offset, pa.table(columns, schema=schema))


def found(log: Log, rows: int) -> list[dict[str, Any]]:
    given = packs(log, rows)
    return producer_rows.runs(given, log.history_start_offset, log.is_offsets).to_pylist()


def expected(log: Log) -> list[dict[str, Any]]:
    history = replay(
        log.batches, is_offsets=log.is_offsets, history_start_offset=log.history_start_offset
    )
    return [run._asdict() for run in history.runs]


@pytest.mark.parametrize("rows", [1, 7, 1 << 18])
def test_arrays_equal_the_replay_on_generated_histories(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_rows, "STEP_ROWS", rows)
    irregular = 0
    for seed in range(400):
        log = generated(seed, ())
        runs = found(log, rows)
        assert runs == expected(log), seed
        irregular += sum(run["irregular_count"] for run in runs)
    assert irregular > 1000


@pytest.mark.parametrize("rows", [5, 1 << 18])
def test_arrays_equal_the_replay_on_recordings(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_rows, "STEP_ROWS", rows)
    logs = [log for log in recorded() if not is_near_wrap(log)]
    assert len(logs) > 20
    for log in logs:
        assert found(log, rows) == expected(log)


def test_packs_that_overlap_are_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_rows, "STEP_ROWS", 1)
    for seed in range(50):
        log = generated(seed, ())
        for shuffled in (log.batches[::2] + log.batches[1::2], log.batches[::-1]):
            one = log._replace(batches=shuffled)
            given = sorted(packs(one, max(len(shuffled) // 2, 1)), key=lambda pack: pack.first)
            held = [
                pack._replace(first=min(pack.rows["base_offset"].to_pylist())) for pack in given
            ]
            held.sort(key=lambda pack: pack.first)
            runs = producer_rows.runs(held, log.history_start_offset, log.is_offsets).to_pylist()
            assert runs == expected(log), seed


def test_what_a_text_does_not_say_is_null() -> None:
    schema = pa.schema([arrow_schema(bronze.BATCH).field(name) for name in INPUT])
    batch = dict.fromkeys(INPUT) | {
        "base_offset": 5, "producer_id": 1, "producer_epoch": 0, "is_control": False,
        "base_sequence": 3, "is_transactional": True, "records_count": 2,
    }  # fmt: skip
    marker = batch | {"base_offset": 9, "is_control": True, "records_count": 1}
    rows = pa.Table.from_pylist([batch, batch | {"base_offset": 7}, marker], schema=schema)
    (run,) = producer_rows.runs([Pack(0, "batch", 5, rows)], 0, False).to_pylist()
    assert run == {
        "producer_id": 1, "run_number": 0, "is_transactional": True, "is_open": False,
        "first_offset": 5, "last_offset": None, "batch_count": 2, "record_count": 4,
        "size_bytes": 0, "min_epoch": 0, "max_epoch": 0, "max_epoch_before": None,
        "first_sequence": 3, "first_append_ms": None, "irregular_count": 1,
        "marker_offset": 9, "marker_type": None, "marker_epoch": 0,
        "marker_coordinator_epoch": None, "marker_leader_epoch": None, "marker_ms": None,
        "coordinator_epoch_before": None,
    }  # fmt: skip
