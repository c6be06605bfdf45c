"""One replica was cleaned, the other was not yet: both are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders, log_layout, pure_audit

TOPIC = "compacted"


def _replica(root: Path, node: int, marker: bytes) -> None:
    """Data of two records, a marker, data of three; nothing says that a cleaner was here."""
    log = log_layout.LogDir(root, node)
    data = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    later = builders.batch(3, 3, producer_id=9, producer_epoch=0, base_sequence=0)
    log.segment(TOPIC, 0, [builders.batch(0, 2, base_sequence=0, **data), marker, later])
    log.finish(clean=False)


@pytest.mark.parametrize(
    ("other", "found"),
    [
        ({"delete_horizon_ms": builders.NOW_MS + 86_400_000}, []),
        ({"timestamp_ms": builders.NOW_MS + 1}, [("same_offset_other_bytes", 2)]),
    ],
    ids=["delete-horizon", "other-bytes"],
)
def test_a_marker_that_a_cleaner_gave_a_horizon(
    tmp_path: Path, other: dict[str, int], found: list[tuple[str, int]]
) -> None:
    """KIP-534 writes the horizon into the batch, on each replica when its own cleaner comes.

    The checkpoint of the cleaner tells only afterwards, and in a copy of a running broker it is older
    than the log: seen on a live cluster of 4.3.
    """
    _replica(tmp_path, 1, builders.marker(2, producer_id=7))
    _replica(tmp_path, 2, builders.marker(2, producer_id=7, **other))
    said = [
        (row["class"], row["first_offset"])
        for row in pure_audit.accusations(tmp_path)
        if row["code"] == "replica_divergence"
    ]
    assert said == found
