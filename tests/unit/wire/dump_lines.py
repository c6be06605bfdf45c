"""Read what the broker's own tool (`kafka-dump-log.sh`, 0.11 to 4.3) printed over a recording."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_LINE = re.compile(r"(\| )?(?:baseOffset|offset): -?\d+ ")
_FIELD = re.compile(r"(\w+): ?(\S+)")
_NOISE = ("Dumping ", "Starting offset", "Log starting offset", "Found ", "Mismatches in")
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
)


class Line(NamedTuple):
    """One batch or record line: its fields by name, and what follows the header keys."""

    is_record: bool
    fields: dict[str, str]
    rest: str


def text_of(path: Path) -> str | None:
    """Text of a dump, compressed or not; None when there is none."""
    if path.exists():
        return path.read_text("utf-8", "replace")
    packed = path.with_name(path.name + ".gz")
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode("utf-8", "replace")
    return None


def fields_of(line: str) -> dict[str, str]:
    """Give `name: value` pairs."""
    return dict(_FIELD.findall(line))


def lines_of(text: str) -> Iterator[Line]:
    """Give batch and record lines; a payload may go on over several lines of text."""
    current: list[str] = []
    for raw in [*text.split("\n"), "| offset: 0 "]:
        if _LINE.match(raw):
            if current:
                yield _line("\n".join(current))
            current = [raw]
        elif current and not raw.startswith(_NOISE):
            current.append(raw)


def _line(text: str) -> Line:
    head, found, tail = text.rstrip("\n").partition(" headerKeys: [")
    rest = tail.partition("]")[2] if found else ""
    if not found:
        head, key, value = head.partition(" key: ")
        rest = key + value
    is_record = text.startswith("| ") or bool(found) or bool(rest)
    return Line(is_record, fields_of(head), rest)


def timestamp_of(fields: dict[str, str]) -> tuple[int, int]:
    """(timestamp type, timestamp in ms); the type is -1 for "no timestamp"."""
    for number, name in enumerate(("CreateTime", "LogAppendTime")):
        if name in fields:
            return number, int(fields[name])
    return -1, int(fields["NoTimestampType"])


def key_and_payload(rest: str) -> tuple[str, str | None]:
    """Split the decoded key from the payload; None is a tombstone."""
    key, found, payload = rest.removeprefix(" key: ").partition(" payload: ")
    return key, payload if found and payload not in ("<DELETE>", "null") else None


def txn_state(rest: str) -> dict[str, Any]:
    """Read a `__transaction_state` record in any of the tool's three notations."""
    key, payload = key_and_payload(rest)
    if key.startswith("{"):
        wanted: dict[str, Any] = {"transactional_id": json.loads(key)["data"]["transactionalId"]}
        return wanted | (_json_state(json.loads(payload)) if payload else {"tombstone": True})
    wanted = {"transactional_id": key.partition("transactionalId=")[2]}
    if payload is None:
        return wanted | {"tombstone": True}
    match = re.fullmatch(
        r"producerId:(-?\d+),producerEpoch:(-?\d+),state=(\w+),partitions=(?:\w*Set\(|\[)(.*)[)\]],"
        r"txnLastUpdateTimestamp=(-?\d+),txnTimeoutMs=(\d+)",
        payload,
    )
    assert match, payload
    partitions = [item.strip().rpartition("-") for item in match[4].split(",") if item.strip()]
    return wanted | {
        "producer_id": int(match[1]),
        "producer_epoch": int(match[2]),
        "state": STATES.index(match[3]),
        "partitions": tuple(sorted((topic, int(number)) for topic, _, number in partitions)),
        "last_update_ms": int(match[5]),
        "txn_timeout_ms": int(match[6]),
    }


def _json_state(value: dict[str, Any]) -> dict[str, Any]:
    data = value["data"]
    status = data["transactionStatus"]
    topics = data["transactionPartitions"]
    return {
        "value_version": int(value["version"]),
        "producer_id": data["producerId"],
        "producer_epoch": data["producerEpoch"],
        "txn_timeout_ms": data["transactionTimeoutMs"],
        "state": status if isinstance(status, int) else STATES.index(status),
        "partitions": tuple(
            sorted((t["topic"], number) for t in topics or () for number in t["partitionIds"])
        ),
        "is_partitions_null": topics is None,
        "last_update_ms": data["transactionLastUpdateTimestampMs"],
        "start_ms": data["transactionStartTimestampMs"],
        "previous_producer_id": data.get("previousProducerId", -1),
        "next_producer_id": data.get("nextProducerId", -1),
        "client_transaction_version": data.get("clientTransactionVersion"),
    }


def group_record(rest: str) -> dict[str, Any] | None:
    """Read a `__consumer_offsets` record in any notation; None where the tool could not."""
    key, payload = key_and_payload(rest)
    if key.startswith('{"type"'):
        return _json_group(json.loads(key), json.loads(payload) if payload else None)
    if key.startswith("offset_commit::"):
        match = re.fullmatch(r"offset_commit::group=(.*),partition=(.*)-(\d+)", key)
        offset = re.match(r"offset=(-?\d+)", payload or "")
    elif key.startswith("offset::"):
        match = re.fullmatch(r"offset::(.*):(.*):(\d+)", key)
        offset = re.match(r"(-?\d+)", payload or "")
    else:
        match = re.fullmatch(r'group_metadata::group=(.*)|metadata::(.*)|{"metadata":"(.*)"}', key)
        assert match, rest
        group = next(name for name in match.groups() if name is not None)
        return {"record_type": 2, "group_id": group, "tombstone": payload is None}
    assert match, rest
    wanted = {
        "group_id": match[1],
        "topic": match[2],
        "partition": int(match[3]),
        "tombstone": payload is None,
    }
    return wanted | ({"offset": int(offset[1])} if offset else {})


def _json_group(key: dict[str, Any], value: dict[str, Any] | None) -> dict[str, Any]:
    record_type, names = int(key["type"]), key["data"]
    data = value["data"] if value else {}
    wanted: dict[str, Any] = {"tombstone": value is None}
    if value:
        wanted["value_version"] = int(value["version"])
    if record_type <= 1:
        wanted |= {
            "group_id": names["group"],
            "topic": names["topic"],
            "partition": names["partition"],
        }
        if value:
            wanted |= {
                "offset": data["offset"],
                "leader_epoch": data["leaderEpoch"],
                "metadata_size": len(data["metadata"].encode()),
                "commit_timestamp_ms": data["commitTimestamp"],
                "topic_id": data.get("topicId"),
            }
        return wanted
    wanted |= {"record_type": record_type, "group_id": names.get("groupId", names.get("group"))}
    wanted["member_id"] = names.get("memberId")
    if value and record_type == 2:
        wanted |= {
            "generation_or_epoch": data["generation"],
            "member_count": len(data["members"]),
            "protocol_type": data["protocolType"],
        }
    elif value:
        names_of_epoch = ("epoch", "assignmentEpoch", "memberEpoch")
        wanted["generation_or_epoch"] = next((data[n] for n in names_of_epoch if n in data), None)
    return wanted
