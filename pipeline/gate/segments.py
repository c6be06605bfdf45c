"""What `bronze.batch` and the tables of records hold of each segment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.spark import stored
from schemas import bronze as bronze_tables
from schemas.table import Table


class SegmentProfile(NamedTuple):
    """What `bronze.batch` holds of one segment.

    Attributes:
        rows: Batches.
        records: Records in them.
        markers: Control batches of producers.
        first: Lowest base offset.
        last: Highest last offset.
        covered: Offsets that its batches span.
        of_producers: Records of data batches with a producer id.
    """

    rows: int
    records: int
    markers: int
    first: int
    last: int
    covered: int
    of_producers: int


NOTHING = SegmentProfile(0, 0, 0, 0, 0, 0, 0)


def records_by_segment(table: Table, output: str, run_id: str) -> dict[int, int]:
    """Segment id -> rows of a table of records."""
    found: dict[int, int] = {}
    for piece in stored.pieces(table, output, run_id, ["segment_id"]):
        for one in pc.value_counts(piece["segment_id"].combine_chunks()).to_pylist():
            found[one["values"]] = found.get(one["values"], 0) + one["counts"]
    return found


def batches_by_segment(output: str, run_id: str) -> dict[int, SegmentProfile]:
    """Segment id -> what its batches come to."""
    columns = ["segment_id", "base_offset", "last_offset", "records_count", "is_control"]
    columns += ["producer_id"]
    found: dict[int, SegmentProfile] = {}
    for piece in stored.pieces(bronze_tables.BATCH, output, run_id, columns):
        arrays = {
            name: pc.fill_null(piece[name].cast(pa.int64()), 0).to_numpy() for name in columns
        }
        ids, where = np.unique(arrays["segment_id"], return_inverse=True)
        span = arrays["last_offset"] - arrays["base_offset"] + 1
        control = arrays["is_control"].astype(bool)
        has_producer = arrays["producer_id"] >= 0
        records = arrays["records_count"]
        sums = [
            np.bincount(where, weights, len(ids)).astype(np.int64)
            for weights in (None, records, control & has_producer, span)
        ]
        of_producers = np.bincount(where, records * (~control & has_producer), len(ids))
        firsts = np.full(len(ids), np.iinfo(np.int64).max)
        lasts = np.full(len(ids), np.iinfo(np.int64).min)
        np.minimum.at(firsts, where, arrays["base_offset"])
        np.maximum.at(lasts, where, arrays["last_offset"])
        for n, segment_id in enumerate(ids.tolist()):
            rows, held, markers, covered = (int(one[n]) for one in sums)
            mine = SegmentProfile(
                rows,
                held,
                markers,
                int(firsts[n]),
                int(lasts[n]),
                covered,
                int(of_producers[n]),
            )
            found[segment_id] = _added(found.get(segment_id), mine)
    return found


def _added(one: SegmentProfile | None, other: SegmentProfile) -> SegmentProfile:
    if one is None:
        return other
    return SegmentProfile(
        one.rows + other.rows,
        one.records + other.records,
        one.markers + other.markers,
        min(one.first, other.first),
        max(one.last, other.last),
        one.covered + other.covered,
        one.of_producers + other.of_producers,
    )
