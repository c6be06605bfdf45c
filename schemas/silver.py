"""Silver: what the broker, the coordinators and the cleaner did, replayed from bronze."""

from __future__ import annotations

from schemas.columns import PARTITION
from schemas.silver_coordinator import COORDINATOR, COORDINATOR_STEP, OWNER, TRANSACTION
from schemas.silver_partition import (
    LSO,
    PARTITION_HISTORY,
    PARTITION_TXN,
    PRODUCER_EPOCH,
    SEQUENCE_EVENT,
    TRANSACTION_PARTITION,
)
from schemas.table import Column, Table

__all__ = [
    "COMMITTED_OFFSET",
    "COORDINATOR",
    "COORDINATOR_STEP",
    "LSO",
    "OWNER",
    "PARTITION_HISTORY",
    "PARTITION_TXN",
    "PRODUCER_EPOCH",
    "REPLICA",
    "SEQUENCE_EVENT",
    "TABLES",
    "TRANSACTION",
    "TRANSACTION_PARTITION",
]

REPLICA = Table(
    "silver",
    "replica",
    "One replica of one partition: what was copied of it, where its complete history begins and how far it was read.",
    (
        Column(
            "replica_id", "long", "Hash of copy, cluster, broker, topic, topic id and partition."
        ),
        *PARTITION,
        Column("topic_id", "string", "Topic id of `partition.metadata`.", True),
        Column("broker_id", "int", "Broker, from `meta.properties`.", True),
        Column("log_dir", "string", "Log directory below its input root."),
        Column(
            "is_replayed",
            "boolean",
            "This replica stands for the partition: highest leader epoch, then end.",
        ),
        Column(
            "is_one_instant",
            "boolean",
            "Stopped cleanly, with the others, before the copy: absences are proof.",
        ),
        Column(
            "history_start_offset",
            "long",
            "Below it history was cut; what lies there is context only.",
        ),
        Column("log_start_offset", "long", "`log-start-offset-checkpoint`; null not listed.", True),
        Column("cleaner_offset", "long", "`cleaner-offset-checkpoint`; null not listed.", True),
        Column("high_watermark", "long", "`replication-offset-checkpoint`; null not listed.", True),
        Column("log_end_offset", "long", "Offset behind the last readable batch (exclusive)."),
        Column("max_leader_epoch", "int", "Highest leader epoch in its batches.", True),
        Column("first_broker_ms", "long", "First time stamped by a broker's clock.", True),
        Column(
            "read_until_ms",
            "long",
            "Latest broker-stamped time in the file; null when it holds none.",
            True,
        ),
        Column(
            "frontier_ms",
            "long",
            "`__transaction_state` only: broker time from which its history is complete.",
            True,
        ),
        Column("is_complete", "boolean", "Complete from offset 0 to the end without a hole."),
        Column(
            "is_damaged", "boolean", "Bytes other than a torn or zeroed tail could not be read."
        ),
    ),
    ("replica_id",),
)

COMMITTED_OFFSET = Table(
    "silver",
    "committed_offset",
    "Log-truth history of committed offsets, one row a record of `__consumer_offsets` "
    "(Kafka: `OffsetMetadataManager`).",
    (
        Column("copy", "int", "Copy of the cluster."),
        Column("offsets_partition", "int", "Partition of `__consumer_offsets`."),
        Column("record_offset", "long", "Offset of the record there."),
        Column("group_id", "string", "Consumer group."),
        Column("topic", "string", "Committed topic."),
        Column("partition", "int", "Committed partition."),
        Column("committed_offset", "long", "Committed offset; null for a tombstone.", True),
        Column("commit_timestamp_ms", "long", "Group coordinator's clock at the request.", True),
        Column("append_ms", "long", "Time of the batch.", True),
        Column("leader_epoch", "int", "Leader epoch of the batch.", True),
        Column("is_transactional", "boolean", "Committed inside a transaction."),
        Column("producer_id", "long", "Producer id of a transactional commit.", True),
        Column("producer_epoch", "int", "Producer epoch of it.", True),
        Column(
            "outcome",
            "string",
            "materialised, pending, aborted, superseded, deleted or undecided (marker unreadable).",
        ),
        Column("marker_offset", "long", "Offset of the marker that decided it.", True),
        Column("previous_committed_offset", "long", "Committed offset that it replaced.", True),
        Column(
            "previous_is_transactional",
            "boolean",
            "Whether the replaced one was transactional.",
            True,
        ),
        Column("previous_record_offset", "long", "Offset of the record that it replaced.", True),
        Column(
            "race_ms",
            "long",
            "Milliseconds since the producer's previous marker, same leader epoch.",
            True,
        ),
        Column("is_before_marker", "boolean", "Commit timestamp earlier than that marker."),
    ),
    ("copy", "offsets_partition", "record_offset"),
)

TABLES = (
    REPLICA,
    COORDINATOR_STEP,
    TRANSACTION,
    OWNER,
    PARTITION_TXN,
    TRANSACTION_PARTITION,
    SEQUENCE_EVENT,
    COMMITTED_OFFSET,
    LSO,
    PRODUCER_EPOCH,
)
