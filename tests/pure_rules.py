"""What the detectors accuse, as loops over the rows of `tests.pure_audit`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from pipeline.replay.alive import STUCK_LIFE_MS, STUCK_MS, settled_ms
from pipeline.replay.version_bounds import is_fixed, parsed
from pipeline.spark import version_inputs
from pipeline.spark.race_inputs import fixed_from_ms
from schemas.codes import GROUP_RECORDS, OFFSETS_TOPIC, TXN_TOPIC
from tests import pure_content, pure_health, pure_sidecars
from tests.pure_audit import Replayed
from tests.pure_files import damage, divergence, finding, snapshot_only
from tests.pure_input import Row, places

LATE = "owner_not_copied_late"
HANGING = (
    "orphan_producer",
    "not_in_transaction",
    "epoch_mismatch",
    "prepare_stuck",
    "past_deadline",
)
MARKERS = ("torn", "wrong_outcome", "wrong_epoch", "unexpected", "early_completion")


def accusations(one: Replayed) -> list[Row]:
    """Everything above `info`, in the order of the detectors; of `info` manual aborts and windows."""
    rules = (
        _hanging, snapshot_only, _events, _zombies, _outside, _missing, _markers, _steps, _shared,
        _stuck, _regressed, _blocked, _beyond_end, _races, divergence, damage,
        _sidecars,
    )  # fmt: skip
    return [found for rule in rules for found in rule(one)]


def _sidecars(one: Replayed) -> Iterator[Row]:
    yield from pure_sidecars.accused("damaged_log", pure_sidecars.damage(one))
    yield from pure_sidecars.accused("visibility", pure_sidecars.txn_index(one))
    yield from pure_sidecars.accused("lso_pinned", pure_health.pins(one))
    yield from pure_sidecars.accused("sequence_gap", pure_health.gaps(one))
    yield from pure_sidecars.accused("content_duplicate", pure_content.repeated(one))
    for code, said in pure_health.statements(one):
        yield from pure_sidecars.accused(code, [said])


def _hanging(one: Replayed) -> Iterator[Row]:
    for run in one.runs:
        label = run["judgement"]
        if label in HANGING:
            yield finding("hanging_transaction", label, "critical", run, reason=run["reason"])
        elif label == LATE:
            yield finding("hanging_transaction", "owner_not_copied", "major", run)


_EVENTS = {
    "exact": ("duplicate_batch", "exact", "critical"),
    "overlap": ("duplicate_batch", "overlap", "critical"),
    "epoch_regressed": ("zombie_write", "epoch_regressed", "critical"),
}


def _events(one: Replayed) -> Iterator[Row]:
    for place, event in one.events:
        if event.kind in _EVENTS:
            where = {"topic": place.topic, "partition": place.partition,
                     "producer_id": event.producer_id, "first_offset": event.step.offset}  # fmt: skip
            yield finding(*_EVENTS[event.kind], where)


def _zombies(one: Replayed) -> Iterator[Row]:
    known = {
        (place.replica_id, event.producer_id, event.step.offset)
        for place, event in one.events
        if event.kind == "epoch_regressed"
    }
    for run in one.runs:
        if (
            run["zombie"]
            and (run["replica_id"], run["producer_id"], run["first_offset"]) not in known
        ):
            yield finding("zombie_write", run["zombie"], "critical", run)
        before, epoch = run["coordinator_epoch_before"], run["marker_coordinator_epoch"]
        is_back = before is not None and epoch is not None and epoch < before
        if is_back and run["alignment"] not in ("manual_abort", "context"):
            marker = run | {"first_offset": run["marker_offset"]}
            yield finding("zombie_write", "stale_coordinator", "critical", marker)


def _outside(one: Replayed) -> Iterator[Row]:
    for run in one.runs:
        if run["outside"]:
            severity = "major" if run["outside"] == "swallowed" else "critical"
            yield finding("write_outside_transaction", run["outside"], severity, run)


def _missing(one: Replayed) -> Iterator[Row]:
    for promise in one.promises:
        if promise["status"] == "missing":
            yield finding("marker_audit", "missing", "major", promise,
                           first_offset=promise["prepare_offset"], reason=promise["reason"])  # fmt: skip


def _key(row: Row) -> tuple[Any, ...]:
    names = ("copy", "coordinator_partition", "transactional_id", "transaction_offset")
    return tuple(row[name] for name in names)


def _markers(one: Replayed) -> Iterator[Row]:
    kept = {
        _key(promise)
        for promise in one.promises
        if promise["status"] == "present" and promise["marker_type"] == promise["outcome"]
    }
    for run in one.runs:
        label = run["alignment"]
        if label in MARKERS:
            if label == "wrong_outcome" and _key(run) in kept:
                label = "torn"
            severity = "critical" if label in ("torn", "wrong_outcome") else "major"
            yield finding("marker_audit", label, severity, run, first_offset=run["marker_offset"])
        if label == "manual_abort":
            yield finding("manual_abort", label, "info", run, first_offset=run["marker_offset"])


def _steps(one: Replayed) -> Iterator[Row]:
    defect = ("coordinator_state", "double_epoch_bump")
    is_safe = is_fixed(*defect, parsed(one.read.config.kafka_version))
    fixed = version_inputs.fixed_leaders(pure_health.formats(one), TXN_TOPIC, defect)
    for step in one.steps:
        if step["violation"]:
            epoch = -1 if step["leader_epoch"] is None else step["leader_epoch"]
            leader = (step["copy"], step["coordinator_partition"], epoch)
            if step["violation"] == defect[1] and (is_safe or leader in fixed):
                step = step | {"violation": "epoch_rule"}
            where = step | {"topic": TXN_TOPIC, "partition": step["coordinator_partition"],
                            "first_offset": step["offset"]}  # fmt: skip
            yield finding("coordinator_state", step["violation"], "major", where,
                           reason=step["explanation"])  # fmt: skip


def _shared(one: Replayed) -> Iterator[Row]:
    ids: dict[tuple[int, int], set[str]] = defaultdict(set)
    for owner in one.owners:
        ids[owner["copy"], owner["producer_id"]].add(owner["transactional_id"])
    for (_, producer_id), names in ids.items():
        if len(names) > 1:
            where = {"producer_id": producer_id, "transactional_id": min(names), "topic": TXN_TOPIC}
            yield finding("coordinator_state", "producer_id_shared", "major", where)


def _stuck(one: Replayed) -> Iterator[Row]:
    newest = {
        (place.copy, place.partition): one.read.newest.get(place.replica_id, {})
        for place in places(one.read, TXN_TOPIC)
    }
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for promise in one.promises:
        if promise["state"] in (2, 3):
            groups[_key(promise)].append(promise)
    for promises in groups.values():
        if any(promise["status"] != "present" for promise in promises):
            continue
        times = [one["marker_ms"] for one in promises if one["marker_ms"] is not None]
        last, first = max([*times, promises[0]["prepare_ms"]]), promises[0]
        epochs = newest.get((first["copy"], first["coordinator_partition"]), {})
        alive = epochs.get(first["prepare_leader_epoch"])
        if alive is None or alive.newest_ms <= last + STUCK_MS:
            continue
        settled = settled_ms(alive, STUCK_LIFE_MS)
        if settled is not None and settled >= last:
            where = first | {"topic": TXN_TOPIC, "partition": first["coordinator_partition"],
                             "first_offset": first["prepare_offset"]}  # fmt: skip
            yield finding("coordinator_state", "prepare_with_all_markers", "major", where)


def _regressed(one: Replayed) -> Iterator[Row]:
    for row in one.offsets:
        before = row["previous_committed_offset"]
        is_back = before is not None and (row["committed_offset"] or 0) < before
        if row["outcome"] == "materialised" and is_back and row["is_transactional"]:
            yield finding("committed_offset", "regressed", "minor", row,
                           first_offset=row["record_offset"])  # fmt: skip


def _blocked(one: Replayed) -> Iterator[Row]:
    """As severe as the transaction is as a `hanging_transaction`."""
    severities = dict.fromkeys(HANGING, "critical") | {LATE: "major"}
    hanging = {
        (run["copy"], run["partition"], run["producer_id"]): severities[run["judgement"]]
        for run in one.runs
        if run["topic"] == OFFSETS_TOPIC and run["judgement"] in severities
    }
    for row in one.offsets:
        severity = hanging.get((row["copy"], row["offsets_partition"], row["producer_id"]))
        if row["outcome"] == "pending" and severity is not None:
            yield finding("committed_offset", "blocked", severity, row,
                           first_offset=row["record_offset"])  # fmt: skip


def _beyond_end(one: Replayed) -> Iterator[Row]:
    ends: dict[tuple[int, str, int], int] = {}
    for place in one.read.facts:
        if place.is_one_instant:
            key = (place.copy, place.topic, place.partition)
            ends[key] = max(place.log_end_offset, ends.get(key, 0))
    last = {
        (row["copy"], row["group_id"], row["topic"], row["partition"]): row
        for row in sorted(one.offsets, key=lambda row: row["record_offset"])
        if row["outcome"] in ("materialised", "deleted")
    }
    for (copy, _, topic, partition), row in last.items():
        end = ends.get((copy, topic, partition))
        if end is not None and (row["committed_offset"] or 0) > end:
            yield finding("committed_offset", "beyond_end", "minor", row,
                           first_offset=row["record_offset"])  # fmt: skip


def _races(one: Replayed) -> Iterator[Row]:
    """Rungs of the ladder of KAFKA-17507, where nothing proves a fixed version yet."""
    is_exposed = _exposed(one)
    for run in one.runs:
        is_offsets = run["topic"] == OFFSETS_TOPIC and run["alignment"] == "early_completion"
        place = (run, run["partition"], run["marker_leader_epoch"], run["marker_ms"])
        if is_offsets and is_exposed(*place):
            where = run | {"first_offset": run["marker_offset"]}
            yield finding("offset_race", "early_completion", "major", where)
    seen = set()
    windows: dict[tuple[int, int, int], Row] = {}
    for row in one.offsets:
        place = (row, row["offsets_partition"], row["leader_epoch"], row["append_ms"])
        if not row["is_transactional"] or not is_exposed(*place):
            continue
        if row["is_before_marker"]:
            yield finding("offset_race", "bypass", "major", row, first_offset=row["record_offset"])
        key = (row["copy"], row["offsets_partition"], row["group_id"], row["producer_id"])
        is_window = (
            row["race_ms"] is not None and 0 <= row["race_ms"] < one.read.config.race_window_ms
        )
        if is_window:
            windows[row["copy"], row["offsets_partition"], row["record_offset"]] = row
        if is_window and key not in seen:
            seen.add(key)
            where = row | {"topic": OFFSETS_TOPIC, "partition": row["offsets_partition"]}
            yield finding("offset_race", "window", "info", where, first_offset=None)
    for row in one.offsets:
        higher = windows.get((row["copy"], row["offsets_partition"], row["previous_record_offset"]))
        if higher is not None and _is_rewound(one, row):
            is_reloaded = (row["leader_epoch"] or 0) > (higher["leader_epoch"] or 0)
            yield finding("offset_race", "healed" if is_reloaded else "regression", "info", row,
                           first_offset=row["record_offset"])  # fmt: skip


def _is_rewound(one: Replayed, row: Row) -> bool:
    """Whether a commit went back behind a new generation of its group."""
    if (
        row["outcome"] != "materialised"
        or row["committed_offset"] >= row["previous_committed_offset"]
    ):
        return False
    mine = {
        place.replica_id
        for place in places(one.read, OFFSETS_TOPIC)
        if (place.copy, place.partition) == (row["copy"], row["offsets_partition"])
    }
    return any(
        group["replica_id"] in mine
        and group["record_type"] in GROUP_RECORDS
        and group["group_id"] == row["group_id"]
        and group["generation_or_epoch"] is not None
        and row["previous_record_offset"] < group["base_offset"] < row["record_offset"]
        for group in one.read.groups
    )


def _exposed(one: Replayed) -> Callable[[Row, int, int, int], bool]:
    """Whether nothing proves that what a leader of an offsets partition wrote then has the fix."""
    first = {
        replica: min(row["max_timestamp_ms"] for row in rows if (row["value_version"] or 0) >= 1)
        for replica, rows in one.read.states.items()
        if any((row["value_version"] or 0) >= 1 for row in rows)
    }
    from_ms = fixed_from_ms(one.read, first)  # type: ignore[arg-type]  # asks only what `Read` has
    fixed = {
        (place.copy, place.partition, row["partition_leader_epoch"])
        for place in places(one.read, OFFSETS_TOPIC)
        for row in one.read.commits.get(place.replica_id, [])
        if (row["value_version"] or 0) >= 4
    }

    def is_exposed(row: Row, partition: int, leader_epoch: int, ms: int) -> bool:
        is_new = (row["copy"], partition, leader_epoch) in fixed
        return not is_new and bool(ms < from_ms.get(row["copy"], ms + 1))

    return is_exposed
