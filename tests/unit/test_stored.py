"""Rows straight from Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.spark.stored import PIECE_ROWS, pieces_of

GROUP_ROWS = PIECE_ROWS + 1_000


def written(path: Path, groups: int) -> pq.ParquetFile:
    """A file of so many row groups whose numbers cannot be compressed."""
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, pa.schema([("a", pa.int64())])) as sink:
        for _ in range(groups):
            sink.write_table(pa.table({"a": rng.integers(0, 1 << 60, GROUP_ROWS)}))
    return pq.ParquetFile(path)


def test_every_row_comes_once_in_its_order(tmp_path: Path) -> None:
    source = written(tmp_path / "a", 3)
    pieces = list(pieces_of(source, ["a"]))
    assert max(map(len, pieces)) <= PIECE_ROWS
    assert pa.concat_tables(pieces).equals(source.read())


def test_memory_does_not_grow_with_the_row_groups(tmp_path: Path) -> None:
    def peak(groups: int) -> int:
        source = written(tmp_path / str(groups), groups)
        before = pa.total_allocated_bytes()
        return max(pa.total_allocated_bytes() - before for _ in pieces_of(source, ["a"]))

    assert peak(20) < 1.2 * peak(2)
