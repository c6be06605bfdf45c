"""Silver: what the broker, the coordinators and the cleaner did, replayed from bronze."""

from __future__ import annotations

from schemas.table import Column, Table, union

_PARTITION = (
    Column("copy", "int", "Which copy of the cluster, 0 unless one tree holds several."),
    Column("topic", "string", "Topic."),
    Column("partition", "int", "Partition."),
)

REPLICA = Table(
    "silver",
    "replica",
    "One replica of one partition: what was copied of it, where its complete history begins and how far it was read.",
    (
        Column(
            "replica_id", "long", "Hash of copy, cluster, broker, topic, topic id and partition."
        ),
        *_PARTITION,
        Column("topic_id", "string", "Topic id of `partition.metadata`.", True),
        Column("broker_id", "int", "Broker, from `meta.properties`.", True),
        Column("log_dir", "string", "Log directory below its input root."),
        Column(
            "is_replayed",
            "boolean",
            "This replica stands for the partition: highest leader epoch, then end.",
        ),
        Column("is_one_instant", "boolean", "Stopped cleanly before the copy: absences are proof."),
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

COORDINATOR_STEP = Table(
    "silver",
    "coordinator_step",
    "One record of `__transaction_state` as a step of its transactional id's state machine "
    "(Kafka: `TransactionMetadata`, `TransactionStateManager`).",
    (
        Column("copy", "int", "Copy of the cluster."),
        Column("coordinator_partition", "int", "Partition of `__transaction_state`."),
        Column("offset", "long", "Offset of the record."),
        Column("transactional_id", "string", "Transactional id."),
        Column(
            "append_ms",
            "long",
            "CreateTime of the record: the coordinator's clock at append.",
            True,
        ),
        Column("leader_epoch", "int", "Leader epoch of the partition = coordinator epoch.", True),
        Column("state", "int", "New state; null for a tombstone.", True),
        Column("producer_id", "long", "Producer id.", True),
        Column("producer_epoch", "int", "Producer epoch.", True),
        Column("txn_timeout_ms", "int", "Transaction timeout.", True),
        Column("previous_state", "int", "State before; null for the first retained record.", True),
        Column("previous_producer_epoch", "int", "Epoch before.", True),
        Column(
            "cause",
            "string",
            "What made the coordinator write it (`pipeline.replay.coordinator.CAUSES`).",
        ),
        Column(
            "transaction_version", "int", "0, 1 or 2: the feature level of this step (KIP-890)."
        ),
        Column(
            "violation",
            "string",
            "Class of `coordinator_state` that it offends; null for a legal step.",
            True,
        ),
        Column("explanation", "string", "What was expected, for an offending step.", True),
    ),
    ("copy", "coordinator_partition", "offset"),
)

TRANSACTION = Table(
    "silver",
    "transaction",
    "One transaction of the coordinator, from its first Ongoing (or first retained record) to Complete*.",
    (
        Column("copy", "int", "Copy of the cluster."),
        Column("coordinator_partition", "int", "Partition of `__transaction_state`."),
        Column("transactional_id", "string", "Transactional id."),
        Column(
            "first_step_offset",
            "long",
            "Offset of its first retained record: the transaction's identity.",
        ),
        Column("producer_id", "long", "Producer id."),
        Column("producer_epoch", "int", "Epoch while Ongoing: the epoch of its data."),
        Column("prepare_epoch", "int", "Epoch in Prepare*: the epoch of its markers.", True),
        Column("state", "int", "Last regular state."),
        Column("outcome", "int", "0 ABORT or 1 COMMIT once prepared; null while Ongoing.", True),
        Column(
            "cause",
            "string",
            "What ended it: client_commit, client_abort, timeout, fence, unknown_abort; null.",
            True,
        ),
        Column("transaction_version", "int", "0, 1 or 2."),
        Column("txn_timeout_ms", "int", "Transaction timeout."),
        Column("start_ms", "long", "Start as the coordinator recorded it.", True),
        Column("ongoing_ms", "long", "Append time of the first Ongoing; null when cut.", True),
        Column(
            "ongoing_leader_epoch", "int", "Coordinator epoch of its first retained record.", True
        ),
        Column("prepare_offset", "long", "Offset of the last Prepare*.", True),
        Column("prepare_ms", "long", "Append time of the first Prepare* of this outcome.", True),
        Column("prepare_leader_epoch", "int", "Coordinator epoch that prepared it.", True),
        Column("complete_offset", "long", "Offset of Complete*.", True),
        Column("complete_ms", "long", "Append time of Complete*.", True),
        Column("complete_leader_epoch", "int", "Coordinator epoch that completed it.", True),
        Column("has_start", "boolean", "Its first Ongoing is retained."),
        Column("partition_count", "int", "Partitions listed."),
        Column(
            "partitions",
            "array<struct<topic:string,partition:int,added_ms:long>>",
            "Listed partitions with the append time of the record that first listed each.",
        ),
    ),
    ("copy", "coordinator_partition", "transactional_id", "first_step_offset"),
)

OWNER = Table(
    "silver",
    "owner",
    "Who holds a producer id: the last regular step of a transactional id, for each producer id it ever had.",
    (
        Column("copy", "int", "Copy of the cluster."),
        Column("producer_id", "long", "Producer id."),
        Column("transactional_id", "string", "Transactional id."),
        Column("coordinator_partition", "int", "Partition of `__transaction_state`."),
        Column("is_current", "boolean", "The id still holds this producer id."),
        Column("state", "int", "Last regular state; null after expiry.", True),
        Column("producer_epoch", "int", "Epoch in it.", True),
        Column("transaction_version", "int", "Feature level of the last transaction."),
        Column("txn_timeout_ms", "int", "Timeout.", True),
        Column("append_ms", "long", "Append time of the last step.", True),
        Column("start_ms", "long", "Start of the transaction that is Ongoing or Prepare*.", True),
        Column("leader_epoch", "int", "Coordinator epoch of the last step.", True),
        Column(
            "listed_partitions",
            "array<string>",
            "Partitions that the last state lists, `topic-partition`.",
        ),
    ),
    ("copy", "producer_id", "transactional_id"),
)

PARTITION_TXN = Table(
    "silver",
    "partition_txn",
    "What one producer wrote to one partition between two of its markers, with the marker that closed it; open "
    "when none did. A marker without data is a row of its own (Kafka: `ProducerStateManager`).",
    (
        *_PARTITION,
        Column("replica_id", "long", "Replica that was replayed."),
        Column("producer_id", "long", "Producer id."),
        Column("run_number", "long", "Markers of this producer before it, in retained history."),
        Column("is_transactional", "boolean", "At least one of its batches is transactional."),
        Column("is_open", "boolean", "Transactional data and no marker behind them."),
        Column(
            "first_offset",
            "long",
            "First offset of its transactional data, else of its data.",
            True,
        ),
        Column("last_offset", "long", "Last offset of its data.", True),
        Column("batch_count", "long", "Batches with records."),
        Column("record_count", "long", "Records retained."),
        Column("size_bytes", "long", "Bytes of its data batches."),
        Column("min_epoch", "int", "Lowest epoch of its data.", True),
        Column("max_epoch", "int", "Highest epoch of its data.", True),
        Column(
            "max_epoch_before",
            "int",
            "Highest epoch of this producer earlier in the partition.",
            True,
        ),
        Column("first_sequence", "int", "Sequence of its first data batch.", True),
        Column("first_append_ms", "long", "Earliest LogAppendTime; null under CreateTime.", True),
        Column(
            "irregular_count",
            "long",
            "Steps that are not the plain next one: see `sequence_event`.",
        ),
        Column("marker_offset", "long", "Offset of the closing marker.", True),
        Column(
            "marker_type", "int", "0 ABORT, 1 COMMIT; null open, or removed by the cleaner.", True
        ),
        Column("marker_epoch", "int", "Producer epoch in the marker.", True),
        Column("marker_coordinator_epoch", "int", "Coordinator epoch in the marker.", True),
        Column(
            "marker_leader_epoch", "int", "Leader epoch of the data partition at the marker.", True
        ),
        Column("marker_ms", "long", "Time of the marker: its partition leader's clock.", True),
        Column(
            "coordinator_epoch_before",
            "int",
            "Highest coordinator epoch in this producer's earlier markers.",
            True,
        ),
        Column("transactional_id", "string", "Owner, where known.", True),
        Column("coordinator_partition", "int", "Owner's partition of `__transaction_state`.", True),
        Column(
            "transaction_offset",
            "long",
            "`first_step_offset` of the transaction it belongs to.",
            True,
        ),
        Column(
            "transaction_epoch",
            "int",
            "Epoch of that transaction's data, as the coordinator has it.",
            True,
        ),
        Column(
            "alignment",
            "string",
            "How marker and coordinator go together (`pipeline.replay.alignment`).",
        ),
        Column(
            "judgement",
            "string",
            "Class of an open or unowned run (`pipeline.replay.open_runs`).",
            True,
        ),
        Column(
            "outside",
            "string",
            "partition_not_added, after_completion or swallowed; null inside one.",
            True,
        ),
        Column(
            "zombie",
            "string",
            "after_fence: written by a fenced epoch, proven by order; else null.",
            True,
        ),
        Column(
            "before_ms",
            "long",
            "Last marker before it in the partition: not earlier than this.",
            True,
        ),
        Column(
            "after_ms", "long", "First marker behind its first offset: not later than this.", True
        ),
        Column("reason", "string", "Why it was judged so, or why it could not be judged.", True),
    ),
    ("replica_id", "producer_id", "run_number"),
)

TRANSACTION_PARTITION = Table(
    "silver",
    "transaction_partition",
    "What the coordinator promised to one partition against what the partition holds.",
    (
        *_PARTITION,
        Column("coordinator_partition", "int", "Partition of `__transaction_state`."),
        Column("transactional_id", "string", "Transactional id."),
        Column("transaction_offset", "long", "`first_step_offset` of the transaction."),
        Column("producer_id", "long", "Producer id."),
        Column("producer_epoch", "int", "Epoch while Ongoing."),
        Column("prepare_epoch", "int", "Epoch of its markers.", True),
        Column("state", "int", "Last regular state of the transaction."),
        Column("outcome", "int", "0 ABORT, 1 COMMIT; null while Ongoing.", True),
        Column("transaction_version", "int", "0, 1 or 2."),
        Column("prepare_offset", "long", "Offset of Prepare*.", True),
        Column("prepare_ms", "long", "Append time of Prepare*.", True),
        Column("complete_ms", "long", "Append time of Complete*.", True),
        Column("prepare_leader_epoch", "int", "Coordinator epoch that prepared it.", True),
        Column(
            "added_ms", "long", "Append time of the record that first listed the partition.", True
        ),
        Column("marker_offset", "long", "Offset of its first marker here; null none found.", True),
        Column("marker_type", "int", "Type of that marker.", True),
        Column("marker_epoch", "int", "Producer epoch in it.", True),
        Column("marker_ms", "long", "Time of it.", True),
        Column("marker_count", "int", "Markers of this transaction here (resends included)."),
        Column(
            "status",
            "string",
            "present, missing, in_flight, ongoing, prepare_stuck, ambiguous, context or not_copied.",
        ),
        Column("reason", "string", "Why, where it is not plain.", True),
    ),
    (
        "copy",
        "topic",
        "partition",
        "coordinator_partition",
        "transactional_id",
        "transaction_offset",
    ),
)

SEQUENCE_EVENT = Table(
    "silver",
    "sequence_event",
    "A batch whose epoch or sequence is not the plain next one of its producer in the partition "
    "(Kafka: `ProducerAppendInfo`).",
    (
        *_PARTITION,
        Column("replica_id", "long", "Replica that was replayed."),
        Column("producer_id", "long", "Producer id."),
        Column("offset", "long", "First offset of the batch."),
        Column("last_offset", "long", "Last offset of the batch."),
        Column(
            "kind", "string", "exact, overlap, gap, reset, epoch_regressed, first or bump_not_zero."
        ),
        Column("producer_epoch", "int", "Epoch of the batch."),
        Column("first_sequence", "long", "First sequence, unwrapped to 64 bits."),
        Column("last_sequence", "long", "Last sequence, unwrapped to 64 bits."),
        Column("previous_epoch", "int", "Highest epoch before it.", True),
        Column("previous_sequence", "long", "Last sequence before it, unwrapped.", True),
        Column("previous_offset", "long", "Last offset of the producer's previous batch.", True),
        Column(
            "other_offset",
            "long",
            "First offset of the earlier batch that it repeats or overlaps.",
            True,
        ),
        Column("previous_leader_epoch", "int", "Leader epoch of the previous batch.", True),
        Column("leader_epoch", "int", "Leader epoch of this batch.", True),
        Column("is_transactional", "boolean", "Attribute bit 4."),
        Column("timestamp_ms", "long", "Largest timestamp of the batch; the client's clock.", True),
    ),
    ("replica_id", "producer_id", "offset"),
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

COORDINATOR = union(
    "coordinator",
    "Physical table of `coordinator_step`, `transaction` and `owner`.",
    COORDINATOR_STEP,
    TRANSACTION,
    OWNER,
)

PARTITION_HISTORY = union(
    "partition_history",
    "Physical table of `partition_txn` and `transaction_partition`.",
    PARTITION_TXN,
    TRANSACTION_PARTITION,
)

LSO = Table(
    "silver",
    "lso",
    "Who held the last stable offset of a partition, from which offset to which (a view of `partition_txn`).",
    (
        *_PARTITION,
        Column("replica_id", "long", "Replica that was replayed."),
        Column("producer_id", "long", "Producer whose run was the oldest open one."),
        Column("run_number", "long", "That run."),
        Column("last_stable_offset", "long", "First offset of the run: where the LSO stood."),
        Column("pinned_from_offset", "long", "Log end at which it became the oldest open run."),
        Column("pinned_to_offset", "long", "Its marker; null while it still pins.", True),
    ),
    ("replica_id", "pinned_from_offset"),
)

PRODUCER_EPOCH = Table(
    "silver",
    "producer_epoch",
    "One producer epoch in one replica (a view of `partition_txn`).",
    (
        *_PARTITION,
        Column("replica_id", "long", "Replica that was replayed."),
        Column("producer_id", "long", "Producer id."),
        Column("producer_epoch", "int", "Epoch."),
        Column("first_offset", "long", "First offset of its data.", True),
        Column("last_offset", "long", "Last offset of its data.", True),
        Column("record_count", "long", "Records retained."),
        Column("run_count", "long", "Runs between markers."),
        Column("last_marker_offset", "long", "Last marker.", True),
    ),
    ("replica_id", "producer_id", "producer_epoch"),
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
