"""Silver of the partitions: what producers, markers and sequence numbers say."""

from __future__ import annotations

from schemas.columns import PARTITION
from schemas.table import Column, Table, union

PARTITION_TXN = Table(
    "silver",
    "partition_txn",
    "What one producer wrote to one partition between two of its markers, with the marker that closed it; open "
    "when none did. A marker without data is a row of its own (Kafka: `ProducerStateManager`).",
    (
        *PARTITION,
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
        *PARTITION,
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
        *PARTITION,
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
        *PARTITION,
        Column("replica_id", "long", "Replica that was replayed."),
        Column("producer_id", "long", "Producer whose run was the oldest open one."),
        Column("run_number", "long", "That run."),
        Column(
            "last_stable_offset",
            "long",
            "First offset of the run: where the LSO stood, unless the log starts behind it.",
        ),
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
        *PARTITION,
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
