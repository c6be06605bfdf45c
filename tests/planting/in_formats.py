"""Formats that prove a version, planted into the log of an older one: detection 19."""

from __future__ import annotations

import struct

from tests import builders
from tests.planting.copied import CopiedLogs
from tests.planting.expected import Planted, planted
from tests.planting.in_offsets import OFFSETS, committed
from tests.planting.transactions import TOPIC, Coordinator, State

TOPIC_ID = bytes(range(16))


def _proven(name: str, **fields: object) -> Planted:
    return planted("version_inferred", name, severity="info", certainty="proven", **fields)


def _last_of_version_1(logs: CopiedLogs) -> State:
    """Writes an id's last transaction as a coordinator of transaction.version 1 does, and returns its first record."""
    coordinator = Coordinator(logs)
    states = coordinator.last(coordinator.ids()[0])
    for state in states:
        coordinator.change(state, version=1)
    coordinator.save()
    return states[0]


def transaction_version(logs: CopiedLogs) -> Planted:
    """transaction.version is raised to 1 before an id's last transaction."""
    _last_of_version_1(logs)
    return _proven(
        "transaction_version", title="transactions run under transaction.version 1 and below"
    )


def broker_version(logs: CopiedLogs) -> Planted:
    """A coordinator's value has a format that only brokers of 4.0 or later write."""
    first = _last_of_version_1(logs)
    offset = logs.rows(TOPIC, first.partition)[first.index].base_offset
    return _proven("broker_version", topic=TOPIC, partition=first.partition, first_offset=offset,
                   title="brokers are of Kafka 4.0 or later")  # fmt: skip


def group_coordinator(logs: CopiedLogs) -> Planted:
    """A group's last offset is committed through the newer group coordinator."""
    partition, rows, commits = committed(logs)
    row = rows[commits[-1]]
    key, old = row.record()
    offset = struct.unpack_from(">q", old, 2)[0]
    value = builders.offset_value(offset, version=4, commit_ms=row.time_ms, topic_id=TOPIC_ID)
    rows[commits[-1]] = row.with_record(key, value)
    saved = logs.save(OFFSETS, partition, rows)
    return _proven("group_coordinator", topic=OFFSETS, partition=partition,
                   first_offset=saved[commits[-1]].base_offset)  # fmt: skip
