"""The timeline of a finding is the whole transaction, in every partition, and it is bounded."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from jobs import show
from pipeline.report.facts import Facts
from pipeline.report.files import finding_lines
from pipeline.report.nearest import Groups, Selection, nearest
from pipeline.report.page import PLOTS
from pipeline.report.timeline import CONTEXT, EVENTS, LANES, Timeline, Timelines, _is_inside
from pipeline.report.timeline_plot import plot
from pipeline.report.words import instant
from schemas import bronze, silver
from tests import stored_output
from tests.stored_output import RUN_ID, START_MS, finding, row, summary

BEFORE, DURING, AFTER = 0, 40, 80
"""When the producer's transactions begin, in seconds; the finding is about the second one."""


def _written(root: Path, partitions: int, each: int) -> Facts:
    """Three transactions of one producer, each with `each` batches and a marker in all partitions.

    The clients' clocks are hours wrong: brokers' times and the coordinator's records have to order them.
    """
    rows = stored_output.tables()
    for name in ("replica", "entry", "coordinator", "partition_history"):
        rows[name].clear()
    wide = each + 1
    for partition in range(partitions):
        rows["replica"].append(
            row(
                silver.REPLICA,
                replica_id=partition,
                topic="t",
                partition=partition,
                is_replayed=True,
            )
        )
        for number, second in enumerate((BEFORE, DURING, AFTER)):
            begin, end_ms = number * wide, START_MS + 1000 * second + 500
            for offset in range(begin, begin + each):
                batch = row(
                    bronze.ENTRY, kind="batch", replica_id=partition, producer_id=7, producer_epoch=0,
                    base_offset=offset, last_offset=offset, timestamp_type=0, is_control=False,
                    max_timestamp_ms=START_MS - 9_000_000 - offset,
                )  # fmt: skip
                rows["entry"].append(batch)
            run = row(
                silver.PARTITION_HISTORY, kind="partition_txn", replica_id=partition, topic="t",
                partition=partition, producer_id=7, run_number=number, is_open=False,
                first_offset=begin, last_offset=begin + each - 1, marker_offset=begin + each,
                marker_type=1, marker_epoch=0, marker_ms=end_ms, transactional_id="payments-1",
                coordinator_partition=0, transaction_offset=3 * number,
            )  # fmt: skip
            rows["partition_history"].append(run)
    for number, second in enumerate((BEFORE, DURING, AFTER)):
        for place, state in enumerate((1, 2, 4)):
            step = row(
                silver.COORDINATOR, kind="coordinator_step", coordinator_partition=0, state=state,
                offset=3 * number + place, transactional_id="payments-1", producer_id=7,
                producer_epoch=0, append_ms=START_MS + 1000 * second + 250 * place, cause="x",
            )  # fmt: skip
            rows["coordinator"].append(step)
    stored_output.write(root, rows, summary())
    return Facts(str(root), RUN_ID)


def _second(each: int) -> dict[str, object]:
    at = START_MS + 1000 * DURING
    return finding(topic="t", first_offset=each + 1, first_timestamp_ms=at, last_timestamp_ms=at)


def _of(root: Path, partitions: int, each: int) -> Timeline:
    one = _second(each)
    return Timelines(_written(root, partitions, each), [one]).of(one)


def test_the_whole_transaction_is_told_whatever_the_clients_clocks(tmp_path: Path) -> None:
    events, left_out = _of(tmp_path, partitions=4, each=2)
    ours = [
        f"t-{number} offset{word}" for number in range(4) for word in ("s 3 to 3", "s 4 to 4", " 5")
    ]
    assert all(any(one in event.words for event in events) for one in ours)
    assert [event.offset for event in events if event.kind == "state"] == list(range(9))
    assert [event.lane for event in events if event.is_accused] == ["t-0"]
    assert (len(events), left_out) == (4 * 9 + 9, 0)


def test_a_busy_partition_takes_no_other_s_place_and_what_is_left_out_is_counted(
    tmp_path: Path,
) -> None:
    each = 40
    events, left_out = _of(tmp_path, partitions=20, each=each)
    assert len(events) == EVENTS
    assert len({event.lane for event in events}) == LANES
    assert len(events) + left_out == 20 * 3 * (each + 1) + 9
    in_transaction = [
        each + 1 <= (event.offset or 0) <= 2 * each + 1 for event in events if event.kind != "state"
    ]
    assert all(in_transaction)


def test_context_is_bounded_for_each_line(tmp_path: Path) -> None:
    one = _second(1) | {"first_offset": None, "transactional_id": None}
    events, left_out = Timelines(_written(tmp_path, 1, 30), [one]).of(one)
    assert [event.lane for event in events].count("t-0") == CONTEXT
    assert left_out == 3 * 31 - CONTEXT


def test_show_says_how_many_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = _written(tmp_path, 60, 3)
    assert facts.replicas
    one = _second(3)
    directory = tmp_path / "runs" / RUN_ID
    directory.mkdir(parents=True)
    (directory / "findings.jsonl").write_text("".join(finding_lines([one | {"run_id": RUN_ID}])))
    assert show.run(str(one["finding_id"]), str(tmp_path)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"... and {60 * 3 * 4 + 9 - 200} more events of the same producer" in said


def test_rows_near_a_point_are_kept_from_a_table_of_any_length() -> None:
    pieces = (
        pa.table({"who": ["a", "b"] * 50_000, "at": range(start, start + 100_000)})
        for start in range(0, 300_000, 100_000)
    )
    groups = Groups({"who": ["a"]})
    rows, (count,) = nearest(pieces, [Selection(groups, "at", {groups.number("a"): [151_000]}, 2)])
    assert [one["at"] for one in rows] == [150_996, 150_998, 151_000, 151_002]
    assert count[groups.number("a")] == 150_000
    assert groups.number("b") == -1


def test_two_hundred_timelines_leave_the_page_below_its_limit(tmp_path: Path) -> None:
    one = _second(40)
    events, _ = Timelines(_written(tmp_path, 20, 40), [one]).of(one)
    longer = "a-topic-with-a-long-name-as-they-are-0123"
    events = [event._replace(words=event.words.replace("t-", longer)) for event in events]
    words = sum(len(instant(event.time_ms)) + len(event.words) + 25 for event in events)
    assert (len(plot(events, one) or "") + words) * PLOTS < 4_500_000


def test_a_run_of_one_record_at_offset_0_holds_nothing_behind_it() -> None:
    run = {"topic": "t", "partition": 0, "first_offset": 0, "last_offset": 0}
    assert _is_inside([run], "t", 0, 0)
    assert not _is_inside([run], "t", 0, 5)
    assert _is_inside([run | {"last_offset": None}], "t", 0, 5)
