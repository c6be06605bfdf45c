"""Rows packed by the tasks that read and unpacked by those that replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.spark import columnar
from pipeline.spark import stored as stored_rows
from pipeline.spark.columnar import Pack, Routed, Source


def numbers(count: int) -> Iterator[pa.RecordBatch]:
    """What `spark.range` gives to its tasks, one after the other."""
    for number in range(count):
        yield pa.RecordBatch.from_pydict({"id": [number]})


def by_parity(rows: pa.Table) -> Routed:
    offsets = rows["base_offset"].to_numpy()
    return Routed(rows, offsets % 2, offsets // 100, offsets, rows["segment_id"].to_numpy())


def stored(path: Path, offsets: list[int], segments: list[int]) -> str:
    table = pa.table(
        {"base_offset": offsets, "segment_id": segments, "name": [f"n{one}" for one in offsets]}
    )
    pq.write_table(table, path)
    return str(path)


def packed(sources: list[Source], files: int) -> list[pa.RecordBatch]:
    work = [(source, file) for source in sources for file in source.files]
    return list(columnar._packer(work)(numbers(files)))


def test_every_row_arrives_once_at_its_share_and_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_rows, "PIECE_ROWS", 7)
    first = stored(tmp_path / "a", list(range(150)), [1] * 150)
    second = stored(tmp_path / "b", list(range(150, 230)), [2] * 80)
    batches = packed([Source("x", [first, second], ("segment_id", "base_offset"), by_parity)], 2)
    found = []
    for batch in batches:
        shares = batch.column("share").to_pylist()
        for share, pack in zip(shares, columnar.packs(iter([batch])), strict=True):
            offsets = pack.rows["base_offset"].to_pylist()
            assert pack.rows.column_names == ["segment_id", "base_offset"]
            assert pack.first == min(offsets)
            assert {one % 2 for one in offsets} == {share}
            assert {one // 100 for one in offsets} == {pack.place}
            found += offsets
    assert sorted(found) == list(range(230))


def test_segments_of_one_file_do_not_share_a_pack(tmp_path: Path) -> None:
    file = stored(tmp_path / "a", [0, 10, 20, 2, 12], [7, 8, 9, 7, 8])
    (batch,) = packed([Source("x", [file], ("base_offset", "segment_id"), by_parity)], 1)
    packs = [pack.rows["base_offset"].to_pylist() for pack in columnar.packs(iter([batch]))]
    assert packs == [[0, 2], [10, 12], [20]]


def test_no_files_and_no_rows_give_nothing(tmp_path: Path) -> None:
    empty = stored(tmp_path / "a", [], [])
    source = Source("x", [empty], ("base_offset", "segment_id"), by_parity)
    assert [batch.num_rows for batch in packed([source], 1)] in ([], [0])
    assert packed([], 1) == []


def test_kinds_keep_their_own_columns(tmp_path: Path) -> None:
    file = stored(tmp_path / "a", [4], [1])
    batches = packed(
        [
            Source("one", [file], ("base_offset", "segment_id"), by_parity),
            Source("two", [file], ("base_offset", "segment_id", "name"), by_parity),
        ],
        2,
    )
    one, two = columnar.packs(iter(batches))
    assert (one.kind, one.rows.column_names) == ("one", ["base_offset", "segment_id"])
    assert two == Pack(0, "two", 4, two.rows)
    assert two.rows["name"].to_pylist() == ["n4"]


def test_rows_that_an_earlier_segment_holds_do_not_count() -> None:
    rows = pa.table({"segment_id": [1, 1, 2, 2, 3], "base_offset": [0, 9, 5, 10, 2]})
    kept = columnar.counted(rows, {2: 10, 3: 3})
    assert kept["base_offset"].to_pylist() == [0, 9, 10]
    assert columnar.counted(rows, {}) is rows


def test_equal_texts_go_to_equal_shares() -> None:
    keys = pa.chunked_array([["a", "b", None], ["a", "é", ""]])
    shares = columnar.hashed(keys, 5)
    assert shares[0] == shares[3]
    assert shares[2] == shares[5]
    assert shares.dtype == np.int64
    assert set(shares.tolist()) <= set(range(5))
    assert len(columnar.hashed(pa.chunked_array([], pa.string()), 5)) == 0


@pytest.mark.parametrize(("rows", "expected"), [(0, 8), (1_600_000, 8), (1_600_001, 9)])
def test_tasks_grow_with_the_rows(rows: int, expected: int) -> None:
    assert columnar.share_count(rows, 8) == expected
