"""Bronze of whole files: segments, sidecars, and what could not be read."""

from __future__ import annotations

from schemas.columns import PLACE
from schemas.table import Column, Table

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
        *PLACE,
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
            "last_broker_ms",
            "long",
            "Last time stamped by a broker's clock in the file, by offset.",
            True,
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
