"""Text files of a log directory.

Source: `CheckpointFile`, `OffsetCheckpointFile`, `LeaderEpochCheckpointFile`,
`PartitionMetadataFile`, `MetaProperties`, `CleanShutdownFileHandler`.
"""

from __future__ import annotations

import base64
import json
import re
from typing import NamedTuple

from pipeline.wire.cursor import text
from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, Limits

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_VERSION = 0
_KNOWN_PROPERTIES = frozenset({"version", "cluster.id", "node.id", "broker.id", "directory.id"})


class CleanShutdown(NamedTuple):
    """`.kafka_cleanshutdown`; both fields are None in the empty file of old brokers."""

    version: int | None
    broker_epoch: int | None


def offset_checkpoint(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[tuple[str, int, int]]:
    """Read a replication, recovery-point, log-start or cleaner offset checkpoint.

    Returns:
        (topic, partition, offset) in file order; none for an empty file.

    Raises:
        WireError: not a checkpoint of version 0 with as many entries as it announces.
    """
    entries: list[tuple[str, int, int]] = []
    for fields in _rows(data, 3, limits):
        if _TOPIC.fullmatch(fields[0]) is None:
            raise WireError("not a topic name")
        entries.append((fields[0], _integer(fields[1]), _integer(fields[2])))
    return entries


def leader_epoch_checkpoint(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[tuple[int, int]]:
    """Read `leader-epoch-checkpoint`.

    Returns:
        (leader epoch, start offset) in file order.

    Raises:
        WireError: not a checkpoint of version 0 with as many entries as it announces.
    """
    return [(_integer(epoch), _integer(offset)) for epoch, offset in _rows(data, 2, limits)]


def partition_metadata(data: bytes, limits: Limits = DEFAULT_LIMITS) -> str:
    """Read the topic id (URL-safe base64 without padding) of `partition.metadata`.

    Raises:
        WireError: unknown version or no topic id.
    """
    fields = dict(_pairs(data, ":", limits))
    if fields.get("version") != str(_VERSION):
        raise WireError("partition.metadata of an unknown version", "bad_version")
    topic_id = fields.get("topic_id", "")
    if re.fullmatch(r"[A-Za-z0-9_-]{22}", topic_id) is None:
        raise WireError("partition.metadata without a topic id")
    return topic_id


def topic_id_text(raw: bytes) -> str:
    """Write 16 bytes as Kafka's `Uuid.toString` does."""
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def meta_properties(data: bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, str]:
    """Read the known keys of `meta.properties`: cluster, node or broker, and directory id.

    Raises:
        WireError: beyond the limit.
    """
    return {key: value for key, value in _pairs(data, "=", limits) if key in _KNOWN_PROPERTIES}


def clean_shutdown(data: bytes, limits: Limits = DEFAULT_LIMITS) -> CleanShutdown:
    """Read `.kafka_cleanshutdown`: empty, or JSON with version and broker epoch.

    Raises:
        WireError: content that is neither.
    """
    content = _content(data, limits).strip()
    if not content:
        return CleanShutdown(None, None)
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        raise WireError("clean shutdown file is no JSON") from None
    if not isinstance(fields, dict):
        raise WireError("clean shutdown file is no JSON object")
    version, broker_epoch = fields.get("version"), fields.get("brokerEpoch")
    if type(version) is not int or type(broker_epoch) not in (int, type(None)):
        raise WireError("clean shutdown file without a version")
    return CleanShutdown(version, broker_epoch)


def _content(data: bytes, limits: Limits) -> str:
    if len(data) > limits.max_sidecar_bytes:
        raise WireError(f"{len(data)} bytes", "too_large")
    return text(data)


def _integer(field: str) -> int:
    if _INTEGER.fullmatch(field) is None:
        raise WireError("not an integer")
    value = int(field)
    if not -(2**63) <= value < 2**63:
        raise WireError("not an int64")
    return value


def _pairs(data: bytes, separator: str, limits: Limits) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for line in _content(data, limits).split("\n"):
        key, found, value = line.strip().partition(separator)
        if found and not key.startswith("#"):
            pairs.append((key.strip(), value.strip()))
    return pairs


def _rows(data: bytes, width: int, limits: Limits) -> list[list[str]]:
    lines = _content(data, limits).replace("\r\n", "\n").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if not lines:
        return []  # brokers create the file long before they first write it
    if len(lines) < 2:
        raise WireError("checkpoint without a number of entries", "torn_tail")
    if _integer(lines[0]) != _VERSION:
        raise WireError("checkpoint of an unknown version", "bad_version")
    announced = _integer(lines[1])
    rows = [line.split(" ") for line in lines[2:]]
    if len(rows) != announced:
        raise WireError(f"{announced} entries announced, {len(rows)} lines")
    for row in rows:
        if len(row) != width:
            raise WireError(f"an entry of {len(row)} fields")
    return rows
