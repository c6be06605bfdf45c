"""Health without Spark: the project's rules over rows of `tests.pure_audit`."""

from __future__ import annotations

from pipeline.replay import slow
from pipeline.replay.gap_cause import KINDS, Event
from pipeline.replay.pinning import Waiting, held_at
from pipeline.replay.statement import Statement
from pipeline.replay.version_bounds import NAMES_PREVIOUS_ID, Evidence
from pipeline.spark import gap_inputs, health, pinned, version_inputs
from pipeline.spark.stated import NONE
from pipeline.spark.version_inputs import First
from tests.columns_of import of_rows
from tests.pure_audit import Replayed
from tests.pure_input import OFFSETS_TOPIC, Row


def pins(one: Replayed) -> list[Statement]:
    """The oldest open run of each partition and the records behind it."""
    oldest, logs = pinned.open_runs(one.runs), pinned.logs(one.read.facts)
    waiting = {}
    for run, _ in oldest:
        at = held_at(run, logs[run.replica_id])
        records = sum(
            min(batch.records_count, batch.last_offset - max(batch.base_offset, at) + 1)
            for batch in one.read.batches[run.replica_id]
            if batch.last_offset >= at and not batch.is_control
        )
        if run.topic == OFFSETS_TOPIC:
            commits = one.read.commits.get(run.replica_id, [])
            records = sum(row["base_offset"] >= at for row in commits)
        waiting[run.replica_id] = Waiting(records, None)
    return pinned.statements(oldest, logs, waiting)


def statements(one: Replayed) -> list[tuple[str, Statement]]:
    """Slow transactions, storms and careless ids, each with its detector."""
    config = one.read.config
    said = health.statements(
        of_rows(one.transactions, slow.NUMBERS, slow.TEXTS),
        of_rows(one.steps, health.STEPS, health.STEP_TEXTS),
        health.lived(one.read.facts, one.read.newest),
        config,
    )
    return said + health.interleaved(health.successors(one.owners), one.runs, config)


def gaps(one: Replayed) -> list[Statement]:
    """Missing and restarted sequences with their causes."""
    events = []
    for place, event in one.events:
        step, previous = event.step, event.step.previous
        if event.kind in KINDS:
            reached = None if step.reached is None else step.reached.last_sequence
            events.append(Event(
                place.copy, place.topic, place.partition, place.replica_id, event.producer_id,
                step.offset, event.batch.last_offset, event.kind, event.batch.producer_epoch,
                step.first_sequence or 0, reached,
                None if previous is None else previous.last_offset,
                None if previous is None else previous.partition_leader_epoch,
                event.batch.partition_leader_epoch, event.batch.max_timestamp_ms,
            ))  # fmt: skip
    return gap_inputs.statements(events, one.read.facts, one.read.sidecars)


def formats(one: Replayed) -> list[Evidence]:
    """First records of each format of the internal topics."""
    return version_inputs.evidence(
        one.read.facts, _first(one.read.states), _first(one.read.commits)
    )


def _first(held: dict[int, list[Row]]) -> First:
    found: First = {}
    for replica, rows in held.items():
        for row in rows:
            version = NONE if row["value_version"] is None else row["value_version"]
            if row.get("previous_producer_id", NONE) not in (None, NONE):
                version = NAMES_PREVIOUS_ID
            stamp = NONE if row["max_timestamp_ms"] is None else row["max_timestamp_ms"]
            epoch = row["partition_leader_epoch"]
            leader = (replica, NONE if epoch is None else epoch, version)
            found[leader] = min((row["base_offset"], stamp), found.get(leader, (1 << 62, stamp)))
    return found
