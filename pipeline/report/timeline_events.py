"""Rows of the run's tables as events of a timeline."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.report.causes import Finding
from pipeline.report.event import LOG_APPEND_TIME, Event
from pipeline.report.facts import Row
from pipeline.text import counted
from schemas.codes import OFFSETS_TOPIC, STATE_NAMES, TXN_TOPIC


def data(row: Row, finding: Finding) -> Event | None:
    """A data batch; None of one without a time."""
    if row["max_timestamp_ms"] is None:
        return None
    place = f"{row['topic']}-{row['partition']}"
    is_client = row["timestamp_type"] != LOG_APPEND_TIME
    clock = "client's clock" if is_client else "LogAppendTime"
    words = (
        f"data {place} offsets {row['base_offset']} to {row['last_offset']}, "
        f"producer {row['producer_id']} epoch {row['producer_epoch']} ({clock})"
    )
    return Event(
        "data",
        row["max_timestamp_ms"],
        place,
        words,
        row["base_offset"],
        is_client,
        None,
        _is_accused(finding, place, row["base_offset"]),
        row["producer_epoch"],
    )


def marker(row: Row, finding: Finding) -> Event | None:
    """The marker of a run; None of an open one, and of a marker without a time."""
    if row["marker_ms"] is None or row["marker_offset"] is None:
        return None
    kind = {0: "abort", 1: "commit"}.get(row["marker_type"], "abort")
    place = f"{row['topic']}-{row['partition']}"
    words = (
        f"{kind.upper()} marker {place} offset {row['marker_offset']}, producer {row['producer_id']} "
        f"epoch {row['marker_epoch']}"
    )
    return Event(
        kind,
        row["marker_ms"],
        place,
        words,
        row["marker_offset"],
        False,
        None,
        _is_accused(finding, place, row["marker_offset"]),
        row["marker_epoch"],
    )


def step(row: Row, finding: Finding) -> Event | None:
    """A record of a transaction coordinator; None of one without a time."""
    if row["append_ms"] is None:
        return None
    state = row["state"]
    name = "tombstone" if state is None else STATE_NAMES.get(state, f"state {state}")
    place = f"{TXN_TOPIC}-{row['coordinator_partition']}"
    words = (
        f"{row['transactional_id']}: {name} ({row['cause']}), producer {row['producer_id']} epoch "
        f"{row['producer_epoch']}, {place} offset {row['offset']}"
    )
    return Event(
        "state",
        row["append_ms"],
        row["transactional_id"],
        words,
        row["offset"],
        False,
        state,
        _is_accused(finding, place, row["offset"]),
        row["producer_epoch"],
    )


def commit(row: Row, finding: Finding, generations: Sequence[Row]) -> Event | None:
    """An offset commit, with the generation that was the group's then: a value does not tell its own."""
    if row["append_ms"] is None:
        return None
    words = (
        f"{row['group_id']} commits {row['topic']}-{row['partition']} at {row['committed_offset']} "
        f"({row['outcome']}), record {row['record_offset']}"
    )
    before = [one for one in generations if one["base_offset"] < row["record_offset"]]
    if before:
        words += f", in generation {before[-1]['generation_or_epoch']}"
    place = f"{OFFSETS_TOPIC}-{row['offsets_partition']}"
    is_accused = _is_accused(finding, place, row["record_offset"])
    lane = place
    if finding["group_id"] is not None:
        lane = f"commits of {row['group_id']}"
        is_here = (finding["topic"], finding["partition"]) == (row["topic"], row["partition"])
        is_accused = is_here and row["record_offset"] == finding["first_offset"]
    return Event(
        "offset", row["append_ms"], lane, words, row["record_offset"], False, None, is_accused
    )


def generation(row: Row) -> Event | None:
    """A generation of a group; None of one without a time."""
    if row["max_timestamp_ms"] is None:
        return None
    members = "" if row["member_count"] is None else f", {counted(row['member_count'], 'member')}"
    words = f"{row['group_id']}: generation {row['generation_or_epoch']}{members}, record {row['base_offset']}"
    lane = f"generations of {row['group_id']}"
    return Event("offset", row["max_timestamp_ms"], lane, words, row["base_offset"])


def _is_accused(finding: Finding, place: str, offset: int) -> bool:
    is_here = place == f"{finding['topic']}-{finding['partition']}"
    return bool(is_here and offset == finding["first_offset"])
