"""Plants one fault into a copy of a real recording; the untouched recording is its twin.

`plant("torn", source, target)` copies a recording's `logs` folder, edits it by one row (CRC,
offsets and sidecars put right) and says what an audit has to find. `PLANTS` names every fault, and
the recording that offers a place for it. The mechanics are in `tests/planting`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.planting import (
    in_contents,
    in_coordinator,
    in_data,
    in_files,
    in_formats,
    in_gaps,
    in_health,
    in_markers,
    in_offsets,
    in_replicas,
    in_sidecars,
)
from tests.planting.copied import CopiedLogs
from tests.planting.expected import Planted

OLD, NEW = "02-happy-path-3.9-tv0", "01-happy-path-4.1-tv2"
REPLICATED = "14a-three-brokers-failover-4.1-tv2"


class Plant(NamedTuple):
    """A fault and the recording to plant it into."""

    edit: Callable[[CopiedLogs], Planted]
    recording: str


_OLD = (
    in_data.orphan_producer, in_data.pinned, in_data.not_in_transaction, in_data.owner_not_copied,
    in_data.epoch_mismatch, in_data.prepare_stuck, in_data.past_deadline, in_data.snapshot_only,
    in_data.exact_duplicate, in_data.overlapping_duplicate, in_data.after_fence,
    in_markers.stale_coordinator, in_markers.partition_not_added, in_markers.swallowed, in_markers.after_completion,
    in_markers.missing, in_markers.unexpected, in_markers.manual_abort, in_markers.duplicate,
    in_markers.torn, in_markers.wrong_outcome, in_markers.other_clock, in_markers.ambiguous,
    in_coordinator.illegal_transition, in_coordinator.partition_set_shrank,
    in_coordinator.epoch_rule, in_coordinator.impossible_state, in_coordinator.wrong_partition,
    in_coordinator.producer_id_shared, in_coordinator.timeout_changed,
    in_coordinator.prepare_with_all_markers, in_offsets.regressed, in_offsets.blocked,
    in_offsets.mixed, in_offsets.beyond_end, in_offsets.bypass,
    in_offsets.race_regression, in_offsets.healed, in_offsets.early_answer, in_offsets.window,
    in_coordinator.lost_batch,
    in_files.crc, in_files.torn_tail, in_files.zero_tail, in_files.zeroed_block,
    in_files.unreadable, in_files.segment_overlap, in_files.gap_between_segments,
    in_sidecars.index_mismatch, in_sidecars.timeindex_mismatch, in_sidecars.snapshot_mismatch,
    in_sidecars.leader_epoch_mismatch, in_sidecars.aborted_exposed, in_sidecars.committed_hidden,
    in_sidecars.index_wrong,
    in_health.long_running, in_health.near_timeout, in_health.slow_markers, in_health.storm,
    in_health.epoch_burn, in_health.id_reuse_race, in_health.unbounded_ids, in_health.idle_expired,
    in_health.timeout_above_max, in_health.interleaved_producers,
    *in_gaps.CAUSES,
    in_contents.resent, in_contents.resent_without_id, in_contents.repeated,
    in_formats.transaction_version, in_formats.broker_version, in_formats.group_coordinator,
)  # fmt: skip
_NEW = (
    in_data.epoch_regressed, in_markers.wrong_epoch, in_markers.early_completion,
    in_coordinator.double_epoch_bump,
)  # fmt: skip
_REPLICATED = (
    in_replicas.same_offset_other_bytes, in_replicas.lost_tail, in_replicas.uncommitted_tail,
    in_replicas.other_incarnation,
)  # fmt: skip

PLANTS: dict[str, Plant] = {
    edit.__name__: Plant(edit, recording)
    for recording, edits in ((OLD, _OLD), (NEW, _NEW), (REPLICATED, _REPLICATED))
    for edit in edits
}


def plant(name: str, source: Path, target: Path) -> Planted:
    """Copy a recording's `logs` folder and plant a fault.

    Args:
        name: a key of `PLANTS`.
        source: the recording's `logs` folder.
        target: where the edited copy is made; must not exist.

    Returns:
        What has to be found and what may come along.
    """
    return PLANTS[name].edit(CopiedLogs(source, target))
