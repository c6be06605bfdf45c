"""Columns that tables share."""

from __future__ import annotations

from schemas.table import Column

PARTITION = (
    Column("copy", "int", "Which copy of the cluster, 0 unless one tree holds several."),
    Column("topic", "string", "Topic."),
    Column("partition", "int", "Partition."),
)

PLACE = (
    Column(
        "segment_id", "long", "Hash of the segment's identity and version; joins `bronze.segment`."
    ),
    Column("replica_id", "long", "Hash of copy, cluster, broker, topic, topic id and partition."),
    Column("position", "long", "Byte position of the batch in its file."),
)
"""Where a row of bronze was read."""
