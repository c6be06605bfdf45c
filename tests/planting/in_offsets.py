"""Faults in `__consumer_offsets`: detections 7 and 8."""

from __future__ import annotations

import struct
from itertools import pairwise

from pipeline.config import Config
from tests import builders
from tests.planting.copied import CopiedLogs, Row
from tests.planting.expected import Planted, planted
from tests.planting.in_data import LATE_MS
from tests.planting.transactions import Coordinator, home, runs

OFFSETS = "__consumer_offsets"


def committed(logs: CopiedLogs) -> tuple[int, list[Row], list[int]]:
    """Return an offsets partition, its rows and the rows of committed transactional offsets."""
    found = runs(logs, lambda topic: topic == OFFSETS)
    partition = found[-1].partition
    rows = logs.rows(OFFSETS, partition)
    commits = [
        run.data[0] for run in found
        if run.partition == partition and run.marker >= 0 and rows[run.marker].outcome
        and rows[run.data[0]].records == 1
    ]  # fmt: skip
    return partition, rows, commits


def key_of(row: Row) -> tuple[str, str, int]:
    """Return group, topic and partition of an offset commit."""
    key, at, texts = row.record()[0], 2, []
    for _ in range(2):
        size = struct.unpack_from(">h", key, at)[0]
        texts.append(key[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return texts[0], texts[1], struct.unpack_from(">i", key, at)[0]


def _patch(row: Row, at: int, number: int) -> Row:
    key, value = row.record()
    return row.with_record(key, value[:at] + struct.pack(">q", number) + value[at + 8 :])


def _of_group(code: str, name: str, row: Row, *may: str, **fields: object) -> Planted:
    group, topic, partition = key_of(row)
    return planted(code, name, *may, group_id=group, topic=topic, partition=partition, **fields)


def regressed(logs: CopiedLogs) -> Planted:
    """A committed transaction takes a group's offset back."""
    partition, rows, commits = committed(logs)
    last = next(i for i in reversed(commits)
                if sum(key_of(rows[j]) == key_of(rows[i]) for j in commits) > 2)  # fmt: skip
    rows[last] = _patch(rows[last], 2, 1)
    logs.save(OFFSETS, partition, rows)
    return _of_group("committed_offset", "regressed", rows[last], "offset_race/regression",
                     severity=["minor", "major"])  # fmt: skip


def blocked(logs: CopiedLogs) -> Planted:
    """The last marker of a group's transactional offset never came."""
    partition, rows, commits = committed(logs)
    end = max(i for i, row in enumerate(rows) if row.is_marker)
    mine = [i for i in commits if i < end and rows[i].producer_id == rows[end].producer_id]
    del rows[end]
    logs.save(OFFSETS, partition, rows)
    return _of_group("committed_offset", "blocked", rows[mine[-1]], "hanging_transaction",
                     "marker_audit/missing")  # fmt: skip


def mixed(logs: CopiedLogs) -> Planted:
    """A plain commit lies between transactional ones."""
    partition, rows, commits = committed(logs)
    middle = rows[commits[len(commits) // 2]]
    at = commits[len(commits) // 2] + 2
    plain = Row(middle.with_record(*middle.record()).set(
        producer_id=-1, epoch=-1, sequence=-1, attributes=0
    ).at(rows[at - 1].time_ms).data)  # fmt: skip
    rows.insert(at, plain)
    logs.save(OFFSETS, partition, rows)
    return _of_group("committed_offset", "mixed", middle, severity="info")


def beyond_end(logs: CopiedLogs) -> Planted:
    """A committed offset lies behind the end of its partition."""
    partition, rows, commits = committed(logs)
    rows[commits[-1]] = _patch(rows[commits[-1]], 2, 1_000_000)
    logs.save(OFFSETS, partition, rows)
    return _of_group("committed_offset", "beyond_end", rows[commits[-1]], severity="minor")


def bypass(logs: CopiedLogs) -> Planted:
    """An offset was requested before the producer's previous transaction had its first marker."""
    partition, rows, commits = committed(logs)
    row, before = rows[commits[-1]], rows[commits[-2]]
    value = row.record()[1]
    version, size = struct.unpack(">h", value[:2])[0], struct.unpack(">h", value[14:16])[0]
    at = 16 + size if version == 3 else 15 + value[14] - 1
    rows[commits[-1]] = _patch(row, at, before.time_ms - 500)
    logs.save(OFFSETS, partition, rows)
    return planted("offset_race", "bypass", producer_id=row.producer_id)


def window(logs: CopiedLogs) -> Planted:
    """Offsets of another group, too, follow the previous marker of their producer at once."""
    partition, rows, higher, _ = _behind_a_window(logs)
    group, topic, number = key_of(rows[higher])
    count = len(list(logs.brokers[0].glob(f"{OFFSETS}-*")))
    other = next(f"{group}-{n}" for n in range(999) if home(f"{group}-{n}", count) == partition)
    commit = rows[higher].with_record(
        builders.offset_key(other, topic, number), rows[higher].record()[1]
    )
    follows = rows[higher].sequence + rows[higher].delta + 1
    rows.insert(higher + 1, commit.set(sequence=follows))
    for later in range(higher + 2, len(rows)):
        if rows[later].is_data and rows[later].producer_id == commit.producer_id:
            rows[later] = rows[later].set(sequence=rows[later].sequence + 1)
    logs.save(OFFSETS, partition, rows)
    return planted("offset_race", "window", severity="info", group_id=other,
                   producer_id=commit.producer_id)  # fmt: skip


def race_regression(logs: CopiedLogs) -> Planted:
    """A group goes back right behind a commit that followed its producer's marker at once."""
    partition, rows, _, lower = _behind_a_window(logs)
    rows[lower] = _patch(rows[lower], 2, 1)
    logs.save(OFFSETS, partition, [*rows[:lower], _generation(rows[lower]), *rows[lower:]])
    return _of_group("offset_race", "regression", rows[lower], "committed_offset/regressed",
                     severity="info")  # fmt: skip


def healed(logs: CopiedLogs) -> Planted:
    """The same, under a leader that had read the log again."""
    partition, rows, _, lower = _behind_a_window(logs)
    rows[lower] = _patch(rows[lower], 2, 1)
    commit = rows[lower]
    rows[lower:] = [_generation(commit), *rows[lower:]]
    rows[lower:] = [row.set(leader_epoch=row.leader_epoch + 1) for row in rows[lower:]]
    logs.save(OFFSETS, partition, rows)
    return _of_group("offset_race", "healed", commit, "committed_offset/regressed",
                     severity="info")  # fmt: skip


def _generation(commit: Row) -> Row:
    """Return a record of a new generation of the commit's group (Kafka: `GroupMetadataValue`, version 3)."""
    group = key_of(commit)[0].encode()
    value = struct.pack(">hh8sihhqi", 3, 8, b"consumer", 7, -1, -1, commit.time_ms, 0)
    key = struct.pack(">hh", 2, len(group)) + group
    return Row(builders.batch(0, [builders.Rec(key, value)], timestamp_ms=commit.time_ms,
                              partition_leader_epoch=commit.leader_epoch))  # fmt: skip


def _behind_a_window(logs: CopiedLogs) -> tuple[int, list[Row], int, int]:
    """Return an offsets partition, its rows, the last commit in a window, and the next one of its key."""
    partition, rows, commits = committed(logs)
    for higher, lower in reversed(list(pairwise(commits))):
        if key_of(rows[higher]) != key_of(rows[lower]):
            continue
        mine = [row for row in rows[:higher]
                if row.is_marker and row.producer_id == rows[higher].producer_id]  # fmt: skip
        if mine and 0 <= rows[higher].time_ms - mine[-1].time_ms < Config().race_window_ms:
            return partition, rows, higher, lower
    raise LookupError("no two commits in a row behind a marker in this recording")


def early_answer(logs: CopiedLogs) -> Planted:
    """The last marker of a group's offsets comes five seconds after Complete*."""
    coordinator = Coordinator(logs)
    coordinator.tick_all(LATE_MS)
    coordinator.save()
    for partition in sorted({run.partition for run in runs(logs, lambda topic: topic == OFFSETS)}):
        rows = logs.rows(OFFSETS, partition)
        at = max((i for i, row in enumerate(rows) if row.is_marker and row.outcome), default=-1)
        if at >= 0 and all(r.producer_id != rows[at].producer_id for r in rows[at + 1 :]):
            marker = rows.pop(at)
            logs.save(OFFSETS, partition, [*rows, marker.at(rows[-1].time_ms + 5_000)])
            return planted("offset_race", "early_completion", "marker_audit/early_completion",
                           topic=OFFSETS, partition=partition, producer_id=marker.producer_id)  # fmt: skip
    raise LookupError("no committed offsets in this recording")
