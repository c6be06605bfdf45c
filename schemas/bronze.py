"""Bronze: what the files hold, decoded and not yet interpreted."""

from __future__ import annotations

from schemas.table import Column, Table

_PLACE = (
    Column(
        "segment_id", "long", "Hash of the segment's identity and version; joins `bronze.segment`."
    ),
    Column("replica_id", "long", "Hash of copy, cluster, broker, topic, topic id and partition."),
    Column("position", "long", "Byte position of the batch in its file."),
)

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
        *_PLACE,
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
    _PLACE
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
    _PLACE
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
    _PLACE
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
        *_PLACE,
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

SIDECAR = Table(
    "bronze",
    "sidecar",
    "One entry of a sidecar file: producer snapshot, aborted transaction, or checkpoint line.",
    (
        Column("segment_id", "long", "Hash of the sidecar file."),
        Column("replica_id", "long", "Replica; 0 for files of the whole log directory."),
        Column("file", "string", "Path of the file below its input root."),
        Column(
            "entry_kind",
            "string",
            "producer_snapshot, aborted_txn, leader_epoch or checkpoint name.",
        ),
        Column(
            "end_offset", "long", "Offset in the file's name (exclusive end of the snapshot).", True
        ),
        Column("topic", "string", "Topic of a checkpoint line.", True),
        Column("partition", "int", "Partition of a checkpoint line.", True),
        Column("producer_id", "long", "Producer id.", True),
        Column("producer_epoch", "int", "Producer epoch.", True),
        Column("last_sequence", "int", "Last sequence in the snapshot; -1 none.", True),
        Column(
            "first_offset",
            "long",
            "First offset of the aborted transaction, or of the leader epoch.",
            True,
        ),
        Column(
            "last_offset",
            "long",
            "Last offset: of the producer's last batch, or the ABORT marker.",
            True,
        ),
        Column("last_stable_offset", "long", "As in `.txnindex`.", True),
        Column(
            "offset_delta", "int", "Last minus first sequence of the producer's last batch.", True
        ),
        Column("timestamp_ms", "long", "Producer's last timestamp.", True),
        Column(
            "coordinator_epoch", "int", "Coordinator epoch of the producer's last marker.", True
        ),
        Column(
            "current_txn_first_offset",
            "long",
            "First offset of the open transaction; null none.",
            True,
        ),
        Column(
            "offset", "long", "Offset of a checkpoint line; the epoch of a leader-epoch line.", True
        ),
    ),
    ("segment_id", "entry_kind", "producer_id", "first_offset", "topic", "partition"),
)

UNREADABLE = Table(
    "bronze",
    "unreadable",
    "Bytes that could not be used, with place and reason. Nothing in the input is dropped without a row here.",
    (
        *_PLACE,
        Column("file", "string", "Path of the file below its input root."),
        Column("size_bytes", "long", "Bytes skipped."),
        Column(
            "reason",
            "string",
            "crc, torn_tail, zero_tail, bad_length, bad_magic, bad_record, io and others.",
        ),
        Column("explanation", "string", "Short text without user data."),
        Column("after_offset", "long", "Last offset that was readable before it.", True),
        Column("next_offset", "long", "First offset that was readable behind it.", True),
        Column("is_tail", "boolean", "Nothing readable follows in this file."),
    ),
    ("segment_id", "position"),
)

SEGMENT = Table(
    "bronze",
    "segment",
    "One segment file of one replica: identity, version, extent. Written last: the commit record of an ingest.",
    (
        Column("segment_id", "long", "Hash of identity and version."),
        Column("replica_id", "long", "Joins `silver.replica`."),
        Column("file", "string", "Path below its input root."),
        Column("base_offset", "long", "Offset in the file's name."),
        Column("size_bytes", "long", "Size of the file."),
        Column("readable_bytes", "long", "Bytes in whole batches with a right CRC."),
        Column("first_offset", "long", "First offset present.", True),
        Column("last_offset", "long", "Last offset present.", True),
        Column("batch_count", "long", "Whole batches."),
        Column("record_count", "long", "Records in them."),
        Column("first_crc", "long", "CRC of the first batch.", True),
        Column("last_crc", "long", "CRC of the last whole batch.", True),
        Column("max_leader_epoch", "int", "Highest partition leader epoch in the file.", True),
        Column("hole_end_offset", "long", "First offset behind the last hole in offsets.", True),
        Column(
            "shortened_end_offset",
            "long",
            "Last offset of the last batch that a cleaner changed: fewer records than offsets, or a delete horizon.",
            True,
        ),
        Column(
            "first_broker_ms", "long", "First time stamped by a broker's clock in the file.", True
        ),
        Column(
            "last_broker_ms", "long", "Latest time stamped by a broker's clock in the file.", True
        ),
        Column("marker_count", "long", "Transaction markers."),
        Column(
            "is_superseded",
            "boolean",
            "All of its offsets lie in a segment before it (`segment_overlap`).",
        ),
    ),
    ("segment_id",),
)

_DETAIL = (*(column.name for column in _PLACE), "base_offset", "max_timestamp_ms", "detail")
ENTRY = ENTRY._replace(
    parts=(
        *((table.name, table.names) for table in (BATCH, TXN_STATE, OFFSET_COMMIT)),
        *((kind, _DETAIL) for kind in ("group_metadata", "sidecar", "unreadable", "scan")),
    )
)

TABLES = (BATCH, TXN_STATE, OFFSET_COMMIT, GROUP_METADATA, SIDECAR, UNREADABLE, SEGMENT)
