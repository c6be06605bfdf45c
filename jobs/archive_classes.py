"""One small run whose classes the JVM keeps in an archive (class data sharing)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from pipeline.spark import session


def main(archive: Path) -> None:
    """Do once what every audit does: workers, windows, joins, Delta written and read."""
    written = archive.with_suffix(".new")
    spark = session.build(java_flags=[f"-XX:ArchiveClassesAtExit={written}"])
    with tempfile.TemporaryDirectory() as folder:
        _work(spark, folder)
    session.end(spark)
    written.replace(archive)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _work(spark: SparkSession, folder: str) -> None:
    path = str(Path(folder, "table"))
    by_kind = Window.partitionBy("kind").orderBy("id").rowsBetween(Window.unboundedPreceding, 0)
    rows = spark.range(1000).withColumn("kind", F.col("id") % 7)
    rows = rows.mapInArrow(_same, "id long, kind long").withColumn("sum", F.sum("id").over(by_kind))
    for _ in range(2):
        writer = rows.write.format("delta").mode("overwrite").partitionBy("kind")
        writer.option("replaceWhere", "kind >= 0").save(path)
    read = spark.read.format("delta").load(path)
    counts = read.groupBy("kind").agg(F.count("*").alias("n"), F.collect_list("sum").alias("sums"))
    read.join(counts, "kind", how="left").orderBy("id").collect()
    read.join(F.broadcast(counts), "kind", how="left_anti").toArrow()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
