"""Detectors: facts in, findings out. One file a detector, in a fixed order."""

from __future__ import annotations

from types import ModuleType

from pipeline.detect import (
    committed_offset,
    content_duplicate,
    coordinator_state,
    damaged_log,
    duplicate_batch,
    fencing_storm,
    hanging_transaction,
    id_hygiene,
    lso_pinned,
    manual_abort,
    marker_audit,
    offset_race,
    replica_divergence,
    sequence_gap,
    slow_transaction,
    version_inferred,
    visibility,
    write_outside_transaction,
    zombie_write,
)

DETECTORS: tuple[ModuleType, ...] = (
    hanging_transaction,
    duplicate_batch,
    zombie_write,
    write_outside_transaction,
    marker_audit,
    coordinator_state,
    committed_offset,
    offset_race,
    sequence_gap,
    visibility,
    lso_pinned,
    slow_transaction,
    fencing_storm,
    content_duplicate,
    replica_divergence,
    damaged_log,
    id_hygiene,
    manual_abort,
    version_inferred,
)
"""In the order of the documentation. Each has CODE, NEEDS (bronze facts), FIXED_IN (versions, of the detector or of
each class, `*` for every other one) and `find(*, tables) -> DataFrame`."""
