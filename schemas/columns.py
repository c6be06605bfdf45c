"""Columns that tables share."""

from __future__ import annotations

from schemas.table import Column

PARTITION = (
    Column("copy", "int", "Which copy of the cluster, 0 unless one tree holds several."),
    Column("topic", "string", "Topic."),
    Column("partition", "int", "Partition."),
)
