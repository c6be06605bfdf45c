"""Keys and values of the internal topics as the tools print them, all notations.

Source: `DumpLogSegments` (`TransactionLogMessageParser`, `OffsetsMessageParser`),
`TransactionLog.TransactionLogMessageFormatter`, `GroupMetadataManager.OffsetsMessageFormatter` and
the JSON of the coordinator's records since 3.8 and 4.1.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pipeline.wire.errors import WireError
from pipeline.wire.group_offsets import GroupRecord, OffsetCommit, UnknownGroupRecord
from pipeline.wire.txn_state import TxnEntry

Entry = TxnEntry | OffsetCommit | GroupRecord | UnknownGroupRecord
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_TEXTS = frozenset(
    {"transactional_id", "group_id", "topic", "member_id", "protocol_type", "topic_id"}
)
_LONGS = frozenset(
    {"producer_id", "previous_producer_id", "next_producer_id", "offset", "last_update_ms",
     "start_ms", "commit_timestamp_ms", "expire_timestamp_ms"}
)  # fmt: skip
TOMBSTONES = frozenset({"<DELETE>", "null", "NULL"})
_TXN_KEY = re.compile(
    r" key: (?:transaction_metadata::)?transactionalId=(?P<id>.*)"
    r" payload: (?P<value>producerId:.*|<DELETE>)",
    re.DOTALL,
)
_TXN_VALUE = re.compile(
    r"producerId:(-?\d+),producerEpoch:(-?\d+),state=(\w+),partitions=(?:\w*Set\(|\[)(.*)[)\]],"
    r"txnLastUpdateTimestamp=(-?\d+),txnTimeoutMs=(-?\d+)"
)
_CONSOLE_TXN = re.compile(
    r"(?P<id>.*)::TransactionMetadata\(transactionalId=(?P=id), producerId=?(-?\d+), "
    r"producerEpoch=(-?\d+), (.*)"
)
_OFFSET_KEY = re.compile(
    r" key: (?:offset_commit::group=(?P<group>.*),partition=(?P<topic>.*)-(?P<number>\d+)"
    r"|offset::(?P<group0>.*):(?P<topic0>[^:]*):(?P<number0>\d+))"
    r"(?: payload: (?P<value>.*))?",
    re.DOTALL,
)
_GROUP_KEY = re.compile(
    r' key: (?:group_metadata::group=|metadata::|\{"metadata":")(?P<group>.*?)(?:"\})?'
    r"(?: payload: (?P<value>.*))?",
    re.DOTALL,
)
_CONSOLE_OFFSET = re.compile(r"\[(?P<group>.*),(?P<topic>[^,]*),(?P<number>\d+)\]::(?P<value>.*)")


def txn_entry(rest: str) -> TxnEntry:
    """A record of `__transaction_state`.

    Args:
        rest: ` key: ... payload: ...`.

    Raises:
        WireError: `bad_record`: no notation that is known.
    """
    if rest.startswith(" key: {"):
        return _json_entry(*_json_pair(rest), TxnEntry)  # type: ignore[return-value]  # checked by the call
    match = _TXN_KEY.fullmatch(rest)
    if match is None:
        raise WireError("no transaction state as the decoder prints it", "bad_record")
    if match["value"] in TOMBSTONES:
        return tombstone(match["id"])
    value = _TXN_VALUE.fullmatch(match["value"])
    if value is None:
        raise WireError("a transaction state that is not whole", "bad_record")
    return _state(
        match["id"], int(value[1]), int(value[2]), value[3], value[4], int(value[6]), int(value[5])
    )


def console_txn(text: str) -> TxnEntry:
    """A line of the console consumer's transaction formatter (0.11 to 3.8).

    Raises:
        WireError: `bad_record`.
    """
    if text.endswith("::NULL"):
        return tombstone(text.removesuffix("::NULL"))
    match = _CONSOLE_TXN.fullmatch(text)
    fields = dict(re.findall(r"(\w+)=(-?\d+|\w+)", match[4])) if match else {}
    listed = re.search(
        r"(?:topicPartitions|partitions)=\w*[(\[](.*?)[)\]]", match[4] if match else ""
    )
    try:
        assert match is not None
        assert listed is not None
        entry = _state(
            match["id"], int(match[2]), int(match[3]), fields["state"], listed[1],
            int(fields["txnTimeoutMs"]), int(fields["txnLastUpdateTimestamp"]),
        )  # fmt: skip
        start_ms = int(fields.get("txnStartTimestamp", -1))
    except (AssertionError, KeyError, ValueError):
        raise WireError("a transaction state that is not whole", "bad_record") from None
    return entry._replace(start_ms=start_ms)


def group_entry(rest: str) -> OffsetCommit | GroupRecord | UnknownGroupRecord:
    """A record of `__consumer_offsets`.

    Raises:
        WireError: `bad_record`.
    """
    if rest.startswith(' key: {"type"'):
        return _json_entry(*_json_pair(rest), OffsetCommit)  # type: ignore[return-value]  # checked by the call
    match = _OFFSET_KEY.fullmatch(rest)
    if match is not None:
        older = "" if match["number"] is not None else "0"
        group, topic, number = (match[f"{name}{older}"] for name in ("group", "topic", "number"))
        if not topic:
            raise WireError("an offset commit without a topic", "bad_record")
        return _commit(group, topic, number, match["value"], r"(?:offset=)?(-?\d+)(?:,.*|:.*)?")
    match = _GROUP_KEY.fullmatch(rest)
    if match is None:
        raise WireError("no group record as the decoder prints it", "bad_record")
    gone = match["value"] is None or match["value"] in TOMBSTONES
    return GroupRecord(2, match["group"], None, None if gone else 0, None, None, None, gone)


def console_offset(text: str) -> OffsetCommit:
    """A line of the console consumer's offsets formatter (0.9 to 3.8).

    Raises:
        WireError: `bad_record`.
    """
    match = _CONSOLE_OFFSET.fullmatch(text)
    if match is None:
        raise WireError("an offset commit that is not whole", "bad_record")
    found = _commit(
        match["group"], match["topic"], match["number"], match["value"],
        r"(?:\[OffsetMetadata\[|OffsetAndMetadata\(offset=)(-?\d+)[,\]].*",
    )  # fmt: skip
    times: dict[str, str] = dict(re.findall(r"(CommitTime|ExpirationTime) (-?\d+)", match["value"]))
    times |= dict(re.findall(r"(commitTimestamp)=(-?\d+)", match["value"]))
    epoch = re.search(r"leaderEpoch=Optional\[(\d+)\]", match["value"])
    return found._replace(
        commit_timestamp_ms=int(times.get("CommitTime", times.get("commitTimestamp", "-1"))),
        expire_timestamp_ms=int(times.get("ExpirationTime", "-1")),
        leader_epoch=int(epoch[1]) if epoch else -1,
    )


def console_json(text: str) -> Entry:
    """A line of the console consumer's JSON formatters (3.9 and later).

    Raises:
        WireError: `bad_record`.
    """
    try:
        whole = json.loads(text)
        return _json_entry(whole["key"], whole.get("value"), None)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WireError("JSON that is not whole", "bad_record") from None


def check(entry: Entry) -> None:
    """A value that its field in the log cannot hold was never in a log.

    Raises:
        WireError: `bad_record`.
    """
    for name, value in entry._asdict().items():
        if name == "partitions":
            is_right = all(
                isinstance(topic, str) and _is_in(number, 31)
                for topic, number in entry.partitions  # type: ignore[union-attr]  # only one has it
            )
        elif name in _TEXTS:
            is_right = value is None or isinstance(value, str)
        elif name == "unknown_tags":
            is_right = True
        else:
            is_right = value is None or _is_in(value, 63 if name in _LONGS else 31)
        if not is_right:
            raise WireError(f"no {name} can be so", "bad_record")


def _is_in(value: object, bits: int) -> bool:
    return isinstance(value, int) and -(1 << bits) <= value < 1 << bits


def tombstone(transactional_id: str) -> TxnEntry:
    """The record that removes an id."""
    return TxnEntry(
        transactional_id, 0, None, -1, -1, -1, 0, (), True, -1, -1, -1, -1, None, -1, b""
    )


def _state(
    name: str, producer_id: int, epoch: int, state: str, listed: str, timeout_ms: int, at_ms: int
) -> TxnEntry:
    if state not in STATES:
        raise WireError("an unknown transaction state", "bad_record")
    parts = [one.strip().rpartition("-") for one in listed.split(",") if one.strip()]
    if not all(topic and number.isdecimal() for topic, _, number in parts):
        raise WireError("a partition list that is not whole", "bad_record")
    partitions = tuple(sorted((topic, int(number)) for topic, _, number in parts))
    return TxnEntry(
        name, 0, 0, producer_id, epoch, timeout_ms, STATES.index(state), partitions,
        not partitions, at_ms, -1, -1, -1, None, -1, b"",
    )  # fmt: skip


def _commit(group: str, topic: str, number: str, value: str | None, pattern: str) -> OffsetCommit:
    if value is None or value in TOMBSTONES:
        return OffsetCommit(group, topic, int(number), None, -1, -1, 0, -1, -1, None)
    match = re.fullmatch(pattern, value, re.DOTALL)
    if match is None:
        raise WireError("an offset commit that is not whole", "bad_record")
    return OffsetCommit(group, topic, int(number), 0, int(match[1]), -1, 0, -1, -1, None)


def _json_pair(rest: str) -> tuple[Any, Any]:
    text = rest.removeprefix(" key: ")
    try:
        key, end = json.JSONDecoder().raw_decode(text)
        payload = text[end:].strip().removeprefix("payload: ")
        value = None if not payload or payload in TOMBSTONES else json.loads(payload)
    except (ValueError, RecursionError):
        raise WireError("JSON that is not whole", "bad_record") from None
    return key, value


def _json_entry(key: Any, value: Any, wanted: type | None) -> Entry:
    try:
        data = key["data"]
        if "transactionalId" in data:
            found: Entry = _json_state(data["transactionalId"], value)
        else:
            found = _json_group(int(key.get("type", key.get("version", -1))), data, value)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise WireError("JSON of another record", "bad_record") from None
    if wanted is not None and (wanted is TxnEntry) != isinstance(found, TxnEntry):
        raise WireError("JSON of another topic", "bad_record")
    return found


def _json_state(name: str, value: Any) -> TxnEntry:
    if value is None:
        return tombstone(name)
    data = value["data"]
    status, topics = data["transactionStatus"], data["transactionPartitions"]
    listed = sorted((one["topic"], int(at)) for one in topics or () for at in one["partitionIds"])
    return TxnEntry(
        name, 0, int(value["version"]), data["producerId"], data["producerEpoch"],
        data["transactionTimeoutMs"], status if isinstance(status, int) else STATES.index(status),
        tuple(listed), topics is None, data["transactionLastUpdateTimestampMs"],
        data.get("transactionStartTimestampMs", -1), data.get("previousProducerId", -1),
        data.get("nextProducerId", -1), data.get("clientTransactionVersion"),
        data.get("nextProducerEpoch", -1), b"",
    )  # fmt: skip


def _json_group(
    record_type: int, names: dict[str, Any], value: Any
) -> OffsetCommit | GroupRecord | UnknownGroupRecord:
    data = value["data"] if value else {}
    version = int(value["version"]) if value else None
    if record_type <= 1:
        return OffsetCommit(
            names["group"], names["topic"], names["partition"], version, data.get("offset", -1),
            data.get("leaderEpoch", -1), len(data.get("metadata", "").encode()),
            data.get("commitTimestamp", -1), data.get("expireTimestamp", -1), data.get("topicId"),
        )  # fmt: skip
    group = names.get("groupId", names.get("group"))
    if group is None:
        return UnknownGroupRecord(record_type, -1, -1)
    is_classic = record_type == 2
    epochs = ("generation",) if is_classic else ("epoch", "assignmentEpoch", "memberEpoch")
    epoch = next((data[name] for name in epochs if name in data), None)
    members = len(data["members"]) if is_classic and "members" in data else None
    protocol = data.get("protocolType") if is_classic else None
    return GroupRecord(
        record_type, group, names.get("memberId"), version, epoch, members, protocol, value is None
    )
