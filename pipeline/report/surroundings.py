"""The timeline of a finding that names no producer, id or group: the batches around its place, in every replica."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from pipeline.report.causes import Finding
from pipeline.report.event import LOG_APPEND_TIME, Event
from pipeline.report.facts import Columns, Facts, Row
from schemas import bronze

NEAREST = 8
"""Batches of each replica that such a timeline holds."""
_MARKERS = {0: "abort", 1: "commit"}
_COLUMNS = (
    "replica_id",
    "producer_id",
    "producer_epoch",
    "base_offset",
    "last_offset",
    "max_timestamp_ms",
    "timestamp_type",
    "is_control",
    "control_type",
    "partition_leader_epoch",
)


class Surroundings:
    """Batches near the places of many findings, read in one go.

    Args:
        facts: The run's tables.
        findings: Those whose timelines will be asked for.
    """

    def __init__(self, facts: Facts, findings: Iterable[Finding]) -> None:
        wanted: dict[tuple[str, int], set[int]] = defaultdict(set)
        for one in findings:
            if (offset := only_place(one)) is not None:
                wanted[one["topic"], one["partition"]].add(offset)
        self._replicas = {
            one["replica_id"]: one
            for one in (facts.replicas if wanted else ())
            if (one["topic"], one["partition"]) in wanted
        }
        self._near: dict[tuple[int, int], list[Row]] = defaultdict(list)
        if not self._replicas:
            return
        for piece in facts.pieces(bronze.BATCH, _COLUMNS, {"replica_id": self._replicas}):
            columns = Columns(piece)
            for replica in np.unique(columns["replica_id"]).tolist():
                one = self._replicas[replica]
                here = np.flatnonzero(columns["replica_id"] == replica)
                for offset in wanted[one["topic"], one["partition"]]:
                    distance = np.abs(columns["base_offset"][here] - offset)
                    close = here[np.argpartition(distance, min(NEAREST, len(here) - 1))[:NEAREST]]
                    self._near[replica, offset] += piece.take(close).to_pylist()

    def of(self, finding: Finding) -> list[Event]:
        """Events around the place of a finding, in time order."""
        offset = only_place(finding)
        if offset is None:
            return []
        place = (finding["topic"], finding["partition"])
        here = [one for one in self._replicas.values() if (one["topic"], one["partition"]) == place]
        events = []
        for one in here:
            near = self._near[one["replica_id"], offset]
            near.sort(key=lambda row: abs(row["base_offset"] - offset))
            lane = f"{place[0]}-{place[1]}"
            if len(here) > 1:
                lane += f", broker {one['broker_id']}"
            events += [_event(row, lane, offset) for row in _timed(near[:NEAREST])]
        return sorted(events, key=lambda event: (event.time_ms, event.lane, event.offset or 0))


def only_place(finding: Finding) -> int | None:
    """The offset of a finding that names nobody, only a partition; None of any other."""
    who = [finding[name] for name in ("producer_id", "transactional_id", "group_id")]
    if any(one is not None for one in who) or finding["topic"] is None:
        return None
    offsets = [finding["first_offset"], *(one["offset"] for one in finding["evidence"])]
    return next((int(one) for one in offsets if one is not None), None)


def _timed(rows: Sequence[Row]) -> Iterable[Row]:
    return (row for row in rows if row["max_timestamp_ms"] is not None)


def _event(row: Row, lane: str, offset: int) -> Event:
    """A batch of any producer, with its leader epoch."""
    kind = _MARKERS.get(row["control_type"], "data") if row["is_control"] else "data"
    is_client = kind == "data" and row["timestamp_type"] != LOG_APPEND_TIME
    what = f"data {lane} offsets {row['base_offset']} to {row['last_offset']}"
    if kind != "data":
        what = f"{kind.upper()} marker {lane} offset {row['base_offset']}"
    who = ""
    if row["producer_id"] is not None and row["producer_id"] >= 0:
        who = f", producer {row['producer_id']} epoch {row['producer_epoch']}"
    words = f"{what}{who}, leader epoch {row['partition_leader_epoch']}"
    words += " (client's clock)" if is_client else ""
    is_accused = row["base_offset"] <= offset <= row["last_offset"]
    return Event(
        kind, row["max_timestamp_ms"], lane, words, row["base_offset"], is_client, None, is_accused
    )
