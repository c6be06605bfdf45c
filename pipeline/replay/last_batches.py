"""The last batch and the last marker of producers in front of given offsets, from batches in any order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pipeline.replay.sidecar_check import LastData, LastMarker
from pipeline.wire.batch import CONTROL_ABORT, CONTROL_COMMIT, MAX_SEQUENCE, NO_SEQUENCE

Key = tuple[int, int, int]
"""Replica id, producer id, offset behind the batches that count."""
Columns = Mapping[str, np.ndarray[Any, Any]]
NEEDED = (
    "replica_id", "producer_id", "base_offset", "last_offset", "base_sequence", "producer_epoch",
    "max_timestamp_ms", "is_control", "control_type", "coordinator_epoch",
)  # fmt: skip
"""Columns of `bronze.batch` that `LastBatches.add` reads; null is -1."""


class LastBatches:
    """Takes batches a piece at a time and keeps what each key asks for.

    Attributes:
        data: Key -> last data batch.
        markers: Key -> last ABORT or COMMIT; a control batch that was emptied changes nothing.
    """

    def __init__(self, keys: Iterable[Key]) -> None:
        self.data: dict[Key, LastData] = {}
        self.markers: dict[Key, LastMarker] = {}
        self._ends: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for replica_id, producer_id, end in sorted(set(keys)):
            self._ends[replica_id][producer_id].append(end)

    @property
    def replicas(self) -> list[int]:
        """Replicas that are asked about."""
        return sorted(self._ends)

    def add(self, batches: Columns) -> None:
        """Takes one piece: columns `NEEDED`."""
        for replica_id in np.unique(batches["replica_id"]):
            asked = self._ends.get(int(replica_id))
            if asked is None:
                continue
            mine = batches["replica_id"] == replica_id
            mine &= np.isin(batches["producer_id"], np.fromiter(asked, np.int64))
            rows = {name: batches[name][mine] for name in NEEDED}
            is_marker = rows["is_control"] == 1
            is_read = np.isin(rows["control_type"], (CONTROL_ABORT, CONTROL_COMMIT))
            is_read &= rows["coordinator_epoch"] >= 0
            for is_wanted, keep in ((~is_marker, self._data), (is_marker & is_read, self._marker)):
                at = np.flatnonzero(is_wanted)
                at = at[np.lexsort((rows["base_offset"][at], rows["producer_id"][at]))]
                producers, offsets = rows["producer_id"][at], rows["base_offset"][at]
                for producer_id in np.unique(producers):
                    low, high = np.searchsorted(producers, (producer_id, producer_id + 1))
                    ends = asked[int(producer_id)]
                    for end, count in zip(
                        ends, np.searchsorted(offsets[low:high], ends), strict=True
                    ):
                        if count:
                            key = (int(replica_id), int(producer_id), end)
                            keep(key, rows, int(at[low + count - 1]))

    def _data(self, key: Key, rows: Columns, at: int) -> None:
        known = self.data.get(key)
        base, last = int(rows["base_offset"][at]), int(rows["last_offset"][at])
        if known is None or base > known.base_offset:
            first = int(rows["base_sequence"][at])
            sequence = (
                NO_SEQUENCE if first == NO_SEQUENCE else (first + last - base) % (MAX_SEQUENCE + 1)
            )
            self.data[key] = LastData(
                base, last, sequence, int(rows["producer_epoch"][at]), int(rows["max_timestamp_ms"][at])
            )  # fmt: skip

    def _marker(self, key: Key, rows: Columns, at: int) -> None:
        known = self.markers.get(key)
        offset = int(rows["base_offset"][at])
        if known is None or offset > known.offset:
            self.markers[key] = LastMarker(
                offset, int(rows["producer_epoch"][at]), int(rows["coordinator_epoch"][at]),
                int(rows["max_timestamp_ms"][at]),
            )  # fmt: skip
