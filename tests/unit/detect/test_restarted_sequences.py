"""A repartition topic of Streams on a broker up to 2.4: its records are deleted, it forgets, sequences begin anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders, log_layout, pure_audit
from tests.builders import NOW_MS

TOPIC = "app-repartition"


@pytest.mark.parametrize("is_repeated", [False, True])
def test_a_start_from_0_repeats_nothing(is_repeated: bool, tmp_path: Path) -> None:
    """KAFKA-7190: the copy holds no checkpoint, and the file still holds what DeleteRecords took away."""
    rows: list[bytes] = []

    def write(sequence: int, at: int) -> None:
        rows.append(
            builders.batch(
                len(rows), producer_id=1, producer_epoch=0, base_sequence=sequence,
                transactional=True, timestamp_ms=NOW_MS + at,
            )
        )  # fmt: skip

    for life in range(4):
        for sequence in range(3 + life):
            write(sequence, 10_000 * life + sequence)
        rows.append(
            builders.marker(len(rows), builders.COMMIT, producer_id=1, producer_epoch=0,
                            timestamp_ms=NOW_MS + 10_000 * life + 100)
        )  # fmt: skip
    if is_repeated:
        write(5, 30_005)
    log = log_layout.LogDir(tmp_path, 1)
    log.segment(TOPIC, 0, rows, base_offset=0)
    found = pure_audit.accusations(tmp_path)
    loud = {(row["code"], row["class"]) for row in found if row["severity"] != "info"}
    assert loud == ({("duplicate_batch", "exact")} if is_repeated else set())
