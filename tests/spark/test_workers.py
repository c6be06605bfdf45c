"""What Python workers of a local run import, and the Parquet files that they write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.spark import parquet
from pipeline.spark.daemon import without_archives
from schemas.table import Column, Table

NUMBERS = Table(
    "gold",
    "number",
    "Numbers.",
    (
        Column("name", "string", "Name."),
        Column("offset", "bigint", "Offset."),
        Column("all", "array<struct<topic:string,offset:bigint>>", "More."),
    ),
    ("name",),
)


def test_archives_of_spark_leave_the_path() -> None:
    given = ["", "/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.10.9.9-src.zip"]
    kept = ["/code", "/code/jobs.zip", "/usr/lib/python311.zip"]
    assert without_archives(given + kept) == ["", *kept]


@pytest.mark.spark
def test_workers_begin_with_the_pipeline_imported_from_compiled_files(spark: SparkSession) -> None:
    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            names = ["pyspark.worker", "py4j", "pipeline.spark.silver"]
            files = [str(sys.modules[name].__file__) for name in names if name in sys.modules]
            yield pa.RecordBatch.from_pydict({"file": files})

    files = [row["file"] for row in spark.range(1).mapInArrow(tell, "file string").collect()]
    assert len(files) == 3
    assert not [file for file in files if ".zip" in file]


@pytest.mark.spark
def test_numbers_that_hardly_repeat_are_written_as_differences(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [
        {"name": "a", "offset": at * at, "all": [{"topic": "t", "offset": at}]} for at in range(9)
    ]
    batch = pa.Table.from_pylist(rows).to_batches()[0]

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    write = parquet.writer(NUMBERS, str(tmp_path), "run_id=one", same)
    assert sum(one.num_rows for one in write(iter([batch]))) == 1
    [file] = tmp_path.rglob("*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    assert ["DELTA_BINARY_PACKED" in column.encodings for column in columns] == [
        False,
        True,
        False,
        True,
    ]
    assert [column.has_dictionary_page for column in columns] == [True, False, True, False]
    read = spark.read.parquet(str(file)).orderBy("offset").collect()
    assert [row.asDict(recursive=True) for row in read] == rows
