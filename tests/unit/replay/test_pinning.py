"""Where readers of committed data wait, and what waits there."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.replay import pinning
from pipeline.replay.pinning import OpenRun, Pinned, Waiting
from pipeline.spark.pinned import behind
from schemas.codes import OFFSETS_TOPIC

RUN = OpenRun(0, "t", 0, 1, 9, 0, "id", 10, None, None, "open")
LOG = Pinned(log_end_offset=30, read_until_ms=None, cleaner_offset=4)


@pytest.mark.parametrize(("log_start", "at"), [(0, 10), (10, 10), (25, 25)])
def test_readers_wait_at_the_run_or_at_the_start_of_the_log(log_start: int, at: int) -> None:
    """DeleteRecords passes an open transaction; its finding stays the one of the transaction's first offset."""
    said = pinning.statement(RUN, 0, LOG._replace(log_start_offset=log_start), Waiting(3, None))
    assert said.title == f"read_committed consumers of t-0 wait at offset {at}"
    assert f"holds the last stable offset at {at}, the log ends at 30" in said.explanation
    assert f"cannot pass {at}." in said.explanation
    assert ("its transaction began at 10, the log starts at 25" in said.explanation) == (at == 25)
    assert said.first_offset == 10


def test_so_do_groups() -> None:
    run = RUN._replace(topic=OFFSETS_TOPIC)
    said = pinning.statement(run, 0, LOG._replace(log_start_offset=25), Waiting(3, None))
    assert (
        said.title == f"an open transaction holds the last stable offset of {OFFSETS_TOPIC}-0 at 25"
    )


@pytest.mark.parametrize(
    ("at", "records", "place"),
    [
        (0, 9, (0, 7, 0)),
        (5, 4, (5, 7, 90)),
        (3, 6, (0, 7, 0)),
        (9, 2, (9, 8, 0)),
        (10, 1, (9, 8, 0)),
        (11, 0, None),
    ],
)
def test_what_waits_there(at: int, records: int, place: tuple[int, int, int] | None) -> None:
    """Five records; two of three offsets that the cleaner left; a marker; two records in a later segment."""
    rows = {
        "base_offset": [0, 5, 8, 9], "last_offset": [4, 7, 8, 10], "records_count": [5, 2, 1, 2],
        "is_control": [0, 0, 1, 0], "position": [0, 90, 180, 0], "segment_id": [7, 7, 7, 8],
    }  # fmt: skip
    columns = {name: np.array(values, np.int64) for name, values in rows.items()}
    assert behind(columns, at) == (records, place)
