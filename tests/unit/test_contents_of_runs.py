"""Which transactional records `content_duplicate` may take for committed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.spark.content_inputs import committed


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(4, True), (5, True), (7, False), (10, False), (13, True), (15, False)],
)
def test_a_marker_without_records_commits_none(offset: int, expected: bool) -> None:
    rows = pa.table(
        {
            "replica_id": pa.array([1, 1, 1], pa.int64()),
            "producer_id": pa.array([7, 7, 7], pa.int64()),
            # Records at 4 and 5; those at 10 were aborted at 11; the COMMIT at 12 ended none.
            "marker_offset": pa.array([6, 12, 14], pa.int64()),
            "first_offset": pa.array([4, None, 13], pa.int64()),
        }
    )
    assert committed(rows)[1].holds(7, offset) is expected
