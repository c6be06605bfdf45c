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
