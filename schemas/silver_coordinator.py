"""Silver of the transaction coordinators: their steps, transactions and the producer ids that they own."""

from __future__ import annotations

from schemas.table import Column, Table, union

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

COORDINATOR = union(
    "coordinator",
    "Physical table of `coordinator_step`, `transaction` and `owner`.",
    COORDINATOR_STEP,
    TRANSACTION,
    OWNER,
)
