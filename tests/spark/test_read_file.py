"""One file in, rows of the physical bronze table out; no Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pipeline.spark import read_file, tasks
from pipeline.spark.entry import SCHEMA, logical
from pipeline.spark.extent import disjointed, merged, overlaps
from pipeline.spark.plan import plan
from pipeline.spark.split import split_points
from pipeline.spark.tasks import Task, tasks_of
from schemas import bronze
from tests import builders
from tests.builders import Rec
from tests.log_layout import LogDir, offset_index, snapshot, txn_index
from tests.recordings import recording

Row = dict[str, Any]


def rows_of(task: Task, **options: bool) -> dict[str, list[Row]]:
    """Rows by kind; `detail` unfolded."""
    found: dict[str, list[Row]] = {}
    for batch in read_file.read_task(task, **options):
        assert batch.schema == SCHEMA
        for row in batch.to_pylist():
            details = json.loads(row["detail"]) if row["detail"] else {}
            found.setdefault(row["kind"], []).append({**row, **details})
    return found


def only_task(root: Path) -> Task:
    (task,) = tasks_of(plan([str(root)]))
    return task


def segment(root: Path, batches: list[bytes], topic: str = "orders") -> Task:
    LogDir(root).segment(topic, 0, batches)
    return only_task(root)


def test_headers_keep_null_apart_from_minus_one(tmp_path: Path) -> None:
    batches = [
        builders.batch(0, 2, producer_id=7, producer_epoch=1, base_sequence=5, transactional=True),
        builders.marker(2, producer_id=7, producer_epoch=1, coordinator_epoch=9),
        builders.batch(3, 0, last_offset_delta=1, delete_horizon_ms=77, timestamp_ms=-1),
    ]
    data, marker, emptied = rows_of(segment(tmp_path, batches))["batch"]
    assert (data["producer_id"], data["base_sequence"], data["records_count"]) == (7, 5, 2)
    assert data["delete_horizon_ms"] is data["control_type"] is data["coordinator_epoch"] is None
    assert (marker["is_control"], marker["control_type"], marker["coordinator_epoch"]) == (
        True,
        1,
        9,
    )
    assert (emptied["producer_id"], emptied["records_count"]) == (-1, 0)
    assert (emptied["delete_horizon_ms"], emptied["max_timestamp_ms"]) == (77, None)


def test_the_extent_says_what_the_file_holds(tmp_path: Path) -> None:
    batches = [
        builders.batch(0, 2, timestamp_ms=50),
        builders.batch(5, 0, last_offset_delta=2, partition_leader_epoch=3),
        builders.marker(8, producer_id=1, timestamp_ms=900),
        builders.batch(9, 1, timestamp_ms=700, log_append_time=True),
    ]
    (scan,) = rows_of(segment(tmp_path, batches))["scan"]
    assert (scan["first_offset"], scan["last_offset"]) == (0, 9)
    assert (scan["batch_count"], scan["record_count"], scan["marker_count"]) == (4, 4, 1)
    assert (scan["hole_end_offset"], scan["shortened_end_offset"]) == (5, 7)
    assert (scan["first_broker_ms"], scan["last_broker_ms"]) == (700, 700)
    assert scan["max_leader_epoch"] == 3
    assert scan["readable_bytes"] == scan["size_bytes"] == sum(map(len, batches))


def test_damage_names_its_neighbours(tmp_path: Path) -> None:
    batches = [builders.batch(offset, 1) for offset in range(6)]
    batches[3] = batches[3][:-1] + bytes([batches[3][-1] ^ 1])
    found = rows_of(segment(tmp_path, [*batches, batches[0][:40]]))
    wrong, torn = found["unreadable"]
    assert (wrong["reason"], wrong["after_offset"], wrong["next_offset"]) == ("crc", 2, 4)
    assert (torn["reason"], torn["after_offset"], torn["is_tail"]) == ("torn_tail", 5, True)
    assert [row["base_offset"] for row in found["batch"]] == [0, 1, 2, 4, 5]
    assert found["scan"][0]["hole_end_offset"] == 4


def test_coordinator_records_are_rows_and_their_batches_are_not(tmp_path: Path) -> None:
    values = builders.txn_value(1, producer_id=5, partitions=[("b", 1), ("a", 2)], start_ms=10)
    task = segment(
        tmp_path,
        [
            builders.txn_entry(0, "id", values, partition_leader_epoch=2),
            builders.txn_entry(1, "id", None),
            builders.batch(2, [Rec(builders.txn_key("id"), b"\x00")]),
        ],
        "__transaction_state",
    )
    found = rows_of(task)
    value, tombstone = found["txn_state"]
    assert (value["transactional_id"], value["state"], value["start_ms"]) == ("id", 1, 10)
    assert value["partitions"] == "a\x002\x01b\x001"
    assert (value["partition_leader_epoch"], value["crc"] > 0) == (2, True)
    assert tombstone["value_version"] is tombstone["state"] is tombstone["start_ms"] is None
    assert [row["reason"] for row in found["unreadable"]] == ["bad_record"]
    assert "batch" not in found
    assert len(rows_of(task, headers_only=True)["batch"]) == 3


def test_group_records_and_transactional_commits(tmp_path: Path) -> None:
    commit = builders.offset_value(42, commit_ms=99)
    task = segment(
        tmp_path,
        [
            builders.batch(0, [Rec(builders.offset_key("g", "orders", 3), commit)]),
            builders.batch(
                1,
                [Rec(builders.offset_key("g", "orders", 3), None)],
                producer_id=4,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            ),
            builders.batch(2, [Rec(builders.group_key("g"), None)]),
            builders.batch(3, [Rec(builders.group_key("g", 999), b"")]),
            builders.marker(4, producer_id=4),
        ],
        "__consumer_offsets",
    )
    found = rows_of(task)
    plain, deleted = found["offset_commit"]
    assert (plain["committed_offset"], plain["commit_timestamp_ms"]) == (42, 99)
    assert (plain["is_transactional"], plain["producer_id"]) == (False, -1)
    assert (deleted["value_version"], deleted["committed_offset"]) == (None, None)
    assert (deleted["is_transactional"], deleted["producer_id"]) == (True, 4)
    assert [row["record_type"] for row in found["group_metadata"]] == [2, 999]
    assert [row["base_offset"] for row in found["batch"]] == [1, 4]


def test_sidecars_are_rows_and_broken_ones_are_damage(tmp_path: Path) -> None:
    made = LogDir(tmp_path)
    made.sidecar("orders", 0, 10, "snapshot", snapshot([(7, 1, 5, 9, 2, 1000, 3, -1)]))
    made.sidecar("orders", 0, 0, "txnindex", txn_index([(7, 1, 4, 5)]) + b"torn")
    made.sidecar("orders", 0, 20, "snapshot", b"\x00\x01")
    found = [rows_of(task) for task in tasks_of(plan([str(tmp_path)]))]
    by_kind = {kind: rows for one in found for kind, rows in one.items() if kind == "unreadable"}
    sidecars = [row for one in found for row in one.get("sidecar", [])]
    assert [(row["entry_kind"], row["end_offset"]) for row in sidecars] == [
        ("aborted_txn", 0),
        ("producer_snapshot", 10),
    ]
    assert sidecars[1]["current_txn_first_offset"] is None
    assert [row["reason"] for row in by_kind["unreadable"]] == ["sidecar_torn_tail"]


def test_a_sidecar_of_any_size_costs_no_memory(tmp_path: Path) -> None:
    file = LogDir(tmp_path).sidecar("orders", 0, 10, "snapshot", b"")
    os.truncate(file, 1 << 40)
    (row,) = rows_of(only_task(tmp_path))["unreadable"]
    assert row["reason"] == "sidecar_too_large"


def test_what_vanished_or_changed_is_a_row(tmp_path: Path) -> None:
    task = segment(tmp_path, [builders.batch(0, 1)])
    with open(task.path, "ab") as stream:
        stream.write(builders.batch(1, 1))
    found = rows_of(task)
    assert [row["base_offset"] for row in found["batch"]] == [0, 1]
    assert [row["reason"] for row in found["unreadable"]] == [read_file.CHANGED]
    os.unlink(task.path)
    found = rows_of(task)
    assert [row["reason"] for row in found["unreadable"]] == ["io"]
    assert found["scan"][0]["batch_count"] == 0


def test_a_file_that_cannot_be_read_is_a_row(tmp_path: Path) -> None:
    # A directory opens and does not read, whoever the user is.
    task = segment(tmp_path, [builders.batch(0, 1)])
    found = rows_of(task._replace(path=str(tmp_path)))
    assert {row["reason"] for row in found["unreadable"]} == {"io"}


PART_BYTES = 300


def big(root: Path, lies: bool = False) -> tuple[Path, bytes]:
    """A segment of batches that quote one; where the index lies, it points to a quoted one."""
    quoted = builders.batch(1, 1)
    batches = [builders.batch(n, [Rec(b"k", quoted)], producer_id=n % 3) for n in range(40)]
    made = LogDir(root)
    made.segment("orders", 0, batches)
    size = len(batches[0])
    inside = batches[0].index(quoted)
    entries = [(n, n * size + (inside if lies and n == 20 else 0)) for n in range(4, 40, 4)]
    made.sidecar("orders", 0, 0, "index", offset_index(entries))
    return root, b"".join(batches)


def test_parts_of_a_split_file_give_what_the_whole_gives(tmp_path: Path) -> None:
    planned = plan([str(big(tmp_path)[0])])
    parts = tasks_of(planned, part_bytes=PART_BYTES)
    (whole,) = tasks_of(planned, whole={parts[0].segment_id})
    assert len(parts) > 4
    found = [rows_of(part) for part in parts]
    assert [row for one in found for row in one["batch"]] == rows_of(whole)["batch"]
    scans = [row for one in found for row in one["scan"]]
    assert not disjointed(scans)
    names = bronze.SEGMENT.names
    (joined,), (plain,) = overlaps(merged(scans))[0], overlaps(merged(rows_of(whole)["scan"]))[0]
    assert [joined[name] for name in names] == [plain[name] for name in names]


def test_an_index_that_points_into_a_record_is_found_out(tmp_path: Path) -> None:
    parts = tasks_of(plan([str(big(tmp_path, lies=True)[0])]), part_bytes=PART_BYTES)
    scans = [row for part in parts for row in rows_of(part)["scan"]]
    assert disjointed(scans) == {parts[0].segment_id}


def test_an_index_that_points_nowhere_is_not_believed(tmp_path: Path) -> None:
    root, data = big(tmp_path)
    index = next(root.rglob("*.index"))
    index.write_bytes(offset_index([(n, n * 97) for n in range(4, 40, 4)]))
    log = str(index.with_suffix(".log"))
    assert split_points(log, len(data), str(index), 0, PART_BYTES) == [(0, None)]
    assert split_points(log, len(data), str(index) + "x", 0, PART_BYTES) == [(0, None)]


def test_an_offset_counts_once(tmp_path: Path) -> None:
    made = LogDir(tmp_path)
    for first, last in ((0, 9), (3, 5), (8, 12), (13, 14)):
        made.segment("orders", 0, [builders.batch(n, 1) for n in range(first, last + 1)])
    scans = [rows_of(task)["scan"][0] for task in tasks_of(plan([str(tmp_path)]))]
    segments, keep_from = overlaps(merged(scans))
    by_base = {row["base_offset"]: row for row in segments}
    assert [by_base[base]["is_superseded"] for base in (0, 3, 8, 13)] == [False, True, False, False]
    assert keep_from == {by_base[3]["segment_id"]: 10, by_base[8]["segment_id"]: 10}


def test_work_is_balanced_and_complete() -> None:
    one = Task("p", "n", "log", 0, 1, 2, "t", 0)
    all_tasks = [one._replace(name=str(n), size=n * 1_000_000) for n in range(50)]
    shares = tasks.bins(all_tasks, 6)
    assert sorted(task for share in shares for task in share) == sorted(all_tasks)
    loads = [sum(task.cost for task in share) for share in shares]
    assert max(loads) < 1.1 * min(loads)
    assert tasks.bins([], 6) == []


def test_logical_tables_of_a_recording_have_their_columns() -> None:
    by_name = {table.name: table for table in bronze.TABLES}
    seen = set()
    for task in tasks_of(plan([str(recording("06") / "logs")])):
        for batch in read_file.read_task(task):
            kind = batch.column(0)[0].as_py()
            if kind in by_name:
                seen.add(kind)
                assert logical(batch, by_name[kind]).schema.names == list(by_name[kind].names)
    assert seen == {"batch", "txn_state", "sidecar"}
