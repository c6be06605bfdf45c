"""Bronze: what the files hold, decoded and not yet interpreted."""

from __future__ import annotations

from schemas.bronze_files import SEGMENT, SIDECAR, UNREADABLE
from schemas.columns import PLACE
from schemas.table import Column, Table

__all__ = ["SEGMENT", "SIDECAR", "UNREADABLE"]


ENTRY = Table(
    "bronze",
    "entry",
    "Everything that one pass over the files yields, one physical table with a `kind` column. Read the logical "
    "tables `batch`, `txn_state`, `offset_commit`, `group_metadata`, `sidecar` and `unreadable` instead.",
    (
        Column(
            "kind",
            "string",
            "batch, txn_state, offset_commit, group_metadata, sidecar, unreadable or scan.",
        ),
        *PLACE,
        Column(
            "base_offset",
            "long",
            "First offset of the batch; the record's own offset for records.",
            True,
        ),
        Column("last_offset", "long", "Last offset of the batch (survives compaction).", True),
        Column("partition_leader_epoch", "int", "Leader epoch written by the broker.", True),
        Column("magic", "int", "Message format: 0, 1 or 2.", True),
        Column("crc", "long", "CRC-32C as stored, unsigned.", True),
        Column("size_bytes", "long", "Size of the batch, or of the bytes skipped.", True),
        Column("codec", "int", "0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", True),
        Column("timestamp_type", "int", "0 CreateTime, 1 LogAppendTime.", True),
        Column("is_transactional", "boolean", "Attribute bit 4.", True),
        Column("is_control", "boolean", "Attribute bit 5.", True),
        Column(
            "delete_horizon_ms",
            "long",
            "Cleaner's delete horizon, where attribute bit 6 is set.",
            True,
        ),
        Column("base_timestamp_ms", "long", "Timestamp of the first record; null for -1.", True),
        Column("max_timestamp_ms", "long", "Largest timestamp of the batch; null for -1.", True),
        Column("producer_id", "long", "Producer id; -1 none.", True),
        Column("producer_epoch", "int", "Producer epoch; -1 none.", True),
        Column("base_sequence", "int", "Sequence of the first record; -1 none.", True),
        Column(
            "records_count",
            "int",
            "Records left in the batch; 0 after the cleaner removed all.",
            True,
        ),
        Column(
            "control_type",
            "int",
            "0 ABORT, 1 COMMIT, others as read; null when unreadable or no marker.",
            True,
        ),
        Column("coordinator_epoch", "int", "Coordinator epoch in the marker.", True),
        Column("transactional_id", "string", "Key of a `__transaction_state` record.", True),
        Column(
            "value_version", "int", "Version of the record's value; null for a tombstone.", True
        ),
        Column("txn_timeout_ms", "int", "Transaction timeout.", True),
        Column("state", "int", "Transaction state (`schemas.codes.TransactionState`).", True),
        Column(
            "partitions",
            "string",
            "Listed partitions, `topic\\x00partition` joined by `\\x01`, sorted.",
            True,
        ),
        Column(
            "last_update_ms", "long", "`txnLastUpdateTimestamp`: when the step was prepared.", True
        ),
        Column("start_ms", "long", "`txnStartTimestamp`; null for -1.", True),
        Column("previous_producer_id", "long", "Tag 0 of value version 1 (KIP-890).", True),
        Column("next_producer_id", "long", "Tag 1 of value version 1 (KIP-890).", True),
        Column(
            "client_transaction_version",
            "int",
            "Tag 2 of value version 1 (KIP-890); null when absent.",
            True,
        ),
        Column("next_producer_epoch", "int", "Tag 3 of value version 1 (KIP-939).", True),
        Column("group_id", "string", "Consumer group of a `__consumer_offsets` record.", True),
        Column("topic", "string", "Topic whose offset is committed.", True),
        Column("partition", "int", "Partition whose offset is committed.", True),
        Column("committed_offset", "long", "Committed offset.", True),
        Column("committed_leader_epoch", "int", "Leader epoch in the committed offset.", True),
        Column(
            "commit_timestamp_ms",
            "long",
            "`commitTimestamp`: group coordinator's clock at the request.",
            True,
        ),
        Column(
            "detail",
            "string",
            "JSON of the small kinds (sidecar, unreadable, group_metadata, scan).",
            True,
        ),
    ),
    ("kind", "segment_id", "position", "base_offset"),
)

_ENTRY_BY_NAME = {column.name: column for column in ENTRY.columns}


def _entry(*names: str) -> tuple[Column, ...]:
    return tuple(_ENTRY_BY_NAME[name] for name in names)


BATCH = Table(
    "bronze",
    "batch",
    "One record batch header (Kafka: `DefaultRecordBatch`), or one legacy message set.",
    PLACE
    + _entry(
        "base_offset",
        "last_offset",
        "partition_leader_epoch",
        "magic",
        "crc",
        "size_bytes",
        "codec",
        "timestamp_type",
        "is_transactional",
        "is_control",
        "delete_horizon_ms",
        "base_timestamp_ms",
        "max_timestamp_ms",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "records_count",
        "control_type",
        "coordinator_epoch",
    ),
    ("replica_id", "base_offset"),
)

TXN_STATE = Table(
    "bronze",
    "txn_state",
    "One record of `__transaction_state` (Kafka: `TransactionLogKey`, `TransactionLogValue`).",
    PLACE
    + _entry(
        "base_offset",
        "partition_leader_epoch",
        "max_timestamp_ms",
        "transactional_id",
        "value_version",
        "producer_id",
        "producer_epoch",
        "txn_timeout_ms",
        "state",
        "partitions",
        "last_update_ms",
        "start_ms",
        "previous_producer_id",
        "next_producer_id",
        "client_transaction_version",
        "next_producer_epoch",
    ),
    ("replica_id", "base_offset"),
)

OFFSET_COMMIT = Table(
    "bronze",
    "offset_commit",
    "One offset commit of `__consumer_offsets`, plain or transactional, or its tombstone "
    "(Kafka: `OffsetCommitKey`, `OffsetCommitValue`).",
    PLACE
    + _entry(
        "base_offset",
        "partition_leader_epoch",
        "max_timestamp_ms",
        "is_transactional",
        "producer_id",
        "producer_epoch",
        "value_version",
        "group_id",
        "topic",
        "partition",
        "committed_offset",
        "committed_leader_epoch",
        "commit_timestamp_ms",
    ),
    ("replica_id", "base_offset"),
)

GROUP_METADATA = Table(
    "bronze",
    "group_metadata",
    "One record of `__consumer_offsets` that is no offset commit: classic, consumer, share and streams groups "
    "as far as group, epoch and members need; unknown types are kept by number.",
    (
        *PLACE,
        Column("base_offset", "long", "Offset of the record."),
        Column("max_timestamp_ms", "long", "Timestamp of its batch.", True),
        Column("record_type", "int", "Type in the record's key."),
        Column("group_id", "string", "Group; null for an unknown type.", True),
        Column("member_id", "string", "Member, where the key names one.", True),
        Column("value_version", "int", "Version of the value; null for a tombstone.", True),
        Column("generation_or_epoch", "int", "Generation (classic) or group epoch.", True),
        Column("member_count", "int", "Members of a classic group.", True),
        Column("protocol_type", "string", "Protocol type of a classic group.", True),
    ),
    ("replica_id", "base_offset"),
)

_DETAIL = (*(column.name for column in PLACE), "base_offset", "max_timestamp_ms", "detail")
ENTRY = ENTRY._replace(
    parts=(
        *((table.name, table.names) for table in (BATCH, TXN_STATE, OFFSET_COMMIT)),
        *((kind, _DETAIL) for kind in ("group_metadata", "sidecar", "unreadable", "scan")),
    )
)

TABLES = (BATCH, TXN_STATE, OFFSET_COMMIT, GROUP_METADATA, SIDECAR, UNREADABLE, SEGMENT)
