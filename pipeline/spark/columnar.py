"""A shuffle of whole Arrow tables: what Python reads and Python replays passes the JVM in a few large binaries.

Rows that go from Parquet to a state machine need the JVM only to bring them together. As rows they would be decoded,
hashed, sorted and encoded again there, one by one; packed by the task that reads a file, a million of them are some
hundred rows of `PACKED`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pipeline.replay.columns import Longs
from pipeline.spark.parquet import Function
from pipeline.spark.stored import pieces_of

PACKED = "share int, place bigint, kind string, first bigint, packed binary"
"""What is shuffled: task and place in it, what the rows are, their lowest offset, and an Arrow stream of them."""
_PACKED_SCHEMA = pa.schema(
    [
        ("share", pa.int32()),
        ("place", pa.int64()),
        ("kind", pa.string()),
        ("first", pa.int64()),
        ("packed", pa.binary()),
    ]
)
SHARE_ROWS = 200_000
"""Rows that a task of the second half should get; some tens of megabytes."""


class Routed(NamedTuple):
    """Rows of one piece of a file and where each goes.

    Attributes:
        rows: The rows.
        share: Task of each.
        place: Rows of one place and kind come one after the other.
        first: Offset of each; packs of one place and kind come by their lowest.
        apart: Rows with different numbers do not share a pack.
    """

    rows: pa.Table
    share: Longs
    place: Longs
    first: Longs
    apart: Longs


class Source(NamedTuple):
    """Files of one kind of rows.

    Attributes:
        kind: Name of the kind.
        files: Parquet files, as `stored.files` gives them.
        columns: Columns to read.
        route: Rows of a piece of a file -> where they go.
    """

    kind: str
    files: Sequence[str]
    columns: Sequence[str]
    route: Callable[[pa.Table], Routed]


class Pack(NamedTuple):
    """Rows that arrived together."""

    place: int
    kind: str
    first: int
    rows: pa.Table


def share_count(rows: int, at_least: int) -> int:
    """Tasks for so many rows.

    Args:
        rows: Rows in all.
        at_least: Tasks that keep all cores busy.
    """
    return max(at_least, -(-rows // SHARE_ROWS))


def packed(spark: SparkSession, sources: Sequence[Source], shares: int) -> DataFrame:
    """Reads Parquet files, one task each, and brings the rows of each share to one task, by place, kind and first.

    Args:
        spark: The session.
        sources: What to read.
        shares: Number of shares, which are numbered from 0.
    """
    work = [(source, file) for source in sources for file in source.files]
    count = max(len(work), 1)
    # A range has one row a partition: each file is one task.
    numbers = spark.range(0, count, 1, count)
    found = numbers.mapInArrow(_packer(work), PACKED).repartitionById(shares, "share")
    return found.sortWithinPartitions("place", "kind", "first")


def _packer(work: Sequence[tuple[Source, str]]) -> Function:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for source, file in work[number : number + 1]:
                    for piece in pieces_of(pq.ParquetFile(file), source.columns):
                        yield _packed(source.kind, source.route(piece))

    return run


def _packed(kind: str, routed: Routed) -> pa.RecordBatch:
    order = np.lexsort((routed.apart, routed.place, routed.share))
    keys = np.stack((routed.share, routed.place, routed.apart))[:, order]
    changes = np.ones(len(order), np.bool_)
    changes[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    starts = np.flatnonzero(changes)
    ends = [*starts[1:], len(order)]
    rows = routed.rows.take(pa.array(order))
    lowest = np.minimum.reduceat(routed.first[order], starts) if len(starts) else starts
    packs = [
        _stream(rows.slice(start, end - start)) for start, end in zip(starts, ends, strict=False)
    ]
    columns = [keys[0, starts], keys[1, starts], [kind] * len(starts), lowest, packs]
    arrays = [pa.array(*pair) for pair in zip(columns, _PACKED_SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_PACKED_SCHEMA)


def _stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def packs(batches: Iterator[pa.RecordBatch]) -> Iterator[Pack]:
    """The packs of a task, in order.

    Args:
        batches: `PACKED`.
    """
    for batch in batches:
        names = ("place", "kind", "first")
        about = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
        for (place, kind, first), one in zip(about, batch.column("packed"), strict=True):
            yield Pack(place, kind, first, pa.ipc.open_stream(one.as_buffer()).read_all())


def counted(rows: pa.Table, keep_from: dict[int, int]) -> pa.Table:
    """Drops offsets that a preceding segment of the replica holds already.

    Args:
        rows: With `segment_id` and `base_offset`.
        keep_from: Segment id -> first offset that counts, where it overlaps the segment before it.
    """
    if not keep_from:
        return rows
    segments = pa.array(list(keep_from), pa.int64())
    lowest = pa.array(list(keep_from.values()), pa.int64())
    first = lowest.take(pc.index_in(rows["segment_id"].combine_chunks(), value_set=segments))
    counts = pc.greater_equal(rows["base_offset"], first)
    return rows.filter(pc.fill_null(counts, True))


def hashed(keys: pa.ChunkedArray, shares: int) -> Longs:
    """Share of each text: equal texts, equal shares, in every process.

    Args:
        keys: Texts.
        shares: Number of shares.
    """
    texts, numbers = encoded(keys)
    of_text = [zlib.crc32(text.encode()) % shares for text in texts]
    return np.asarray(of_text, np.int64)[numbers]


def encoded(keys: pa.ChunkedArray) -> tuple[list[str], Longs]:
    """Different texts, and the number of each row's; null is an empty text."""
    column = keys.combine_chunks().fill_null("").dictionary_encode()
    return column.dictionary.to_pylist(), column.indices.to_numpy().astype(np.int64)
