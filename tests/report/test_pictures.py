"""Figures of the page from known tables: each number is counted by hand here."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pipeline.config import Config
from pipeline.config_sections import Report
from pipeline.report import charts, health, lag
from pipeline.report.charts import Alert
from pipeline.report.examples import examples
from pipeline.report.facts import Facts, thinned
from pipeline.report.markdown import markdown
from pipeline.report.picture import Picture
from pipeline.report.pictures import bucket_of, pictures
from pipeline.report.svg import TimeScale, clipped, value_ticks
from pipeline.report.timeline import Timelines
from pipeline.report.words import duration, instant, utc
from schemas.codes import OFFSETS_TOPIC
from tests import stored_output
from tests.stored_output import RUN_ID, START_MS, Tables, finding, summary


def _facts(root: Path, rows: Tables | None = None) -> Facts:
    stored_output.write(root, rows or stored_output.tables(), summary())
    return Facts(str(root), RUN_ID)


def _by_title(facts: Facts, limits: Report | None = None) -> dict[str, Picture]:
    return {one.title: one for one in pictures(facts, limits or Report())}


def _transactions(count: int, **changed: object) -> Tables:
    """The transaction of the small run, again and again a second later."""
    rows = stored_output.tables()
    plain = next(row for row in rows["coordinator"] if row["kind"] == "transaction")
    for number in range(1, count):
        times = {
            name: plain[name] + 1000 * number
            for name in ("ongoing_ms", "prepare_ms", "complete_ms", "start_ms")
        }
        rows["coordinator"].append(plain | times | {"first_step_offset": number * 3} | changed)
    return rows


def test_the_small_run(tmp_path: Path) -> None:
    found = _by_title(_facts(tmp_path))
    assert "1 commit. Most timeouts: 0/s" in found["Transaction outcomes"].words
    latency = found["Commit latency (Prepare* to Complete*)"].words
    assert "1 transaction: p50 1 s, p95 1 s, p99 1 s, longest 1 s; 0 above 5 s" in latency
    assert (
        "Most at once: 1 (alert at 10,000); 0 not ended" in found["Transactions open at once"].words
    )
    assert "1 id, 1 transaction " in found["Busiest transactional ids"].words
    assert "1 producer wrote to 2 partitions" in found["Who writes where"].words
    assert "highest 0 records" in found["Coordinator backlog"].words
    assert "alert: 1,000 records (far beyond these bars)" in str(found["Coordinator backlog"].svg)


def test_timeouts_and_latency_are_held_against_their_alerts(tmp_path: Path) -> None:
    rows = _transactions(10, cause="timeout", outcome=0)
    found = _by_title(_facts(tmp_path, rows), Report(commit_latency_ms=999, timed_out_per_s=0.5))
    assert "9 timeout" in found["Transaction outcomes"].words
    assert "Most timeouts: 1/s (alert at 0.5/s)" in found["Transaction outcomes"].words
    assert "10 above" in found["Commit latency (Prepare* to Complete*)"].words
    drawn = str(found["Transaction outcomes"].svg)
    assert 'class="alert"' in drawn
    assert "alert: 0.5/s timed out" in drawn


def test_a_run_that_stays_open_is_lag(tmp_path: Path) -> None:
    rows = stored_output.tables()
    plain = next(row for row in rows["partition_history"] if row["kind"] == "partition_txn")
    rows["partition_history"].append(
        plain
        | {
            "producer_id": 8,
            "is_open": True,
            "marker_offset": None,
            "marker_ms": None,
            "first_offset": 1,
        }
    )
    later = {
        "producer_id": 9,
        "first_offset": 50,
        "marker_offset": 60,
        "marker_ms": START_MS + 9000,
    }
    rows["partition_history"].append(plain | later)
    rows["replica"][0]["log_end_offset"] = 71
    found = _by_title(_facts(tmp_path, rows))["LSO lag by partition"]
    assert "Highest: 70 in orders-0. At the end of the copy 1 partition is behind" in found.words


def test_lag_rises_until_the_marker_and_falls_with_it() -> None:
    first, marker = np.array([0, 4, 2]), np.array([3, 9, 6])
    times, behind = lag._saw(first, marker, np.array([10, 30, 20]))
    assert times.tolist() == [10, 10, 20, 20, 30, 30]
    # Before the marker at 6 the oldest open run began at 2, after it at 4; the last one leaves nothing open.
    assert behind.tolist() == [3, 2, 4, 3, 5, 0]


def test_long_names_keep_the_end_that_tells_them_apart() -> None:
    assert clipped("short", 5) == "short"
    assert clipped("orders-by-customer-changelog-17", 15) == "orders-…elog-17"


def test_an_epoch_forecast(tmp_path: Path) -> None:
    rows = _transactions(3)
    for number, row in enumerate(
        row for row in rows["coordinator"] if row["kind"] == "transaction"
    ):
        row["producer_epoch"] = number * 10
    owner = next(row for row in rows["coordinator"] if row["kind"] == "owner")
    owner["producer_epoch"] = 20
    words = _by_title(_facts(tmp_path, rows))["Producer epochs used up"].words
    # 10 epochs a second: (32,767 - 20) / 10 seconds are left.
    assert f"in {duration(3274.7 * 1000)}" in words


def test_nothing_to_draw_says_so(tmp_path: Path) -> None:
    rows = stored_output.tables()
    rows["coordinator"], rows["partition_history"], rows["replica"] = [], [], []
    for one in _by_title(_facts(tmp_path, rows)).values():
        assert one.svg is None
        assert one.words.startswith("No ")


def test_health_tells_good_from_unknown(tmp_path: Path) -> None:
    answers = {
        one.question.split()[0]: one for one in health.health(_facts(tmp_path), [], Config())
    }
    assert [one.state for one in answers.values()].count("unknown") == 1
    states = [one.state for one in health.health(_facts(tmp_path), [], Config())]
    assert states == ["good", "good", "good", "good", "good", "unknown", "good"]


@pytest.mark.parametrize(
    ("changed", "number", "words"),
    [
        ({"transaction_version": 0}, 0, "1 with version 0"),
        ({"txn_timeout_ms": 10**7}, 1, "Longest 2.78 h"),
        ({"cause": "fence"}, 2, "was fenced 3 times"),
    ],
)
def test_health_says_where_to_look(
    tmp_path: Path, changed: dict[str, object], number: int, words: str
) -> None:
    facts = _facts(tmp_path, _transactions(4 if "cause" in changed else 2, **changed))
    answer = health.health(facts, [], Config())[number]
    assert answer.state == "look"
    assert words in answer.words


def test_aborted_offset_commits_expose_nobody(tmp_path: Path) -> None:
    rows = stored_output.tables()
    for table in rows.values():
        for row in table:
            if "topic" in row:
                row["topic"] = OFFSETS_TOPIC
    exposure = health.health(_facts(tmp_path, rows), [], Config())[4]
    assert (exposure.state, exposure.words) == (
        "unknown", "No transactional data of a user topic was read."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({"class": "after_fence"}, "look"),
        ({"class": "after_fence", "status": "resolved"}, "good"),
        ({"class": "stale_coordinator"}, "good"),
    ],
)
def test_a_zombie_is_a_second_instance(
    tmp_path: Path, changed: dict[str, object], state: str
) -> None:
    zombie = finding(code="zombie_write", **changed)
    assert health.health(_facts(tmp_path), [zombie], Config())[2].state == state


def test_a_timeline_holds_data_markers_and_coordinator_records(tmp_path: Path) -> None:
    one = finding(first_offset=0)
    events, left_out = Timelines(_facts(tmp_path), [one]).of(one)
    assert [event.kind for event in events] == [
        "data", "data", "state", "state", "commit", "commit", "state",
    ]  # fmt: skip
    assert [event.lane for event in events if event.kind == "commit"] == ["orders-0", "orders-1"]
    assert [event.offset for event in events if event.is_accused] == [0]
    assert left_out == 0
    assert events[0].is_client_time
    assert [event.time_ms for event in events] == sorted(event.time_ms for event in events)


def test_examples_prefer_what_is_current() -> None:
    found = [finding(first_offset=n, status="resolved" if n < 3 else "new") for n in range(5)]
    chosen = examples(found, 2)
    assert [one["first_offset"] for one in chosen.shown] == [3, 4]
    assert chosen.left_out == {("hanging_transaction", "orphan_producer"): 3}


def test_markdown_stays_below_a_megabyte() -> None:
    found = [finding(first_offset=n, title="t" * 100_000) for n in range(50)]
    text = markdown(summary(verdict="failed"), found, 1000, "out")
    assert len(text.encode()) < 1_000_000
    assert "Cut here" in text


def test_drawings_are_xml_with_a_name() -> None:
    drawn = [
        charts.lines("a", "ms", {"x": [(0.0, 1.0), (5.0, 2.0)]}, Alert(1e9, "far"), is_level=True),
        charts.lines("a", "ms", {"x": [(0.0, 0.0)]}),
        charts.stacked("a", "n", 1000, [0.0, 1000.0], {"x": [1, 2], "y": [0, 3]}),
        charts.ranking("a", [("x" * 99, 3.0, "3")], Alert(2, "")),
        charts.dots("a", ["r"], ["c"], {(0, 0): 4.0}),
    ]
    for one in drawn:
        root = ElementTree.fromstring(str(one))
        assert root.get("role") == "img"
        assert root.get("aria-label") == "a"
    assert "far above this chart" in str(drawn[0])
    assert charts.lines("a", "ms", {}) is None


@pytest.mark.parametrize("span", [0, 1, 999, 10**5, 10**9, 10**12, 2**62])
def test_axes_have_ticks_and_never_too_many(span: int) -> None:
    ticks = TimeScale(START_MS, START_MS + span, 0, 100).ticks()
    assert len(ticks) <= 18
    assert value_ticks(span)[-1] >= span
    assert len(value_ticks(span)) <= 7
    assert span / bucket_of(0, span) <= 60


@pytest.mark.parametrize("extreme", [-1, 0, 2**63 - 1, -(2**63)])
def test_times_that_no_calendar_has(extreme: int) -> None:
    assert utc(extreme)
    assert instant(extreme)
    TimeScale(float(min(extreme, 0)), float(max(extreme, 1)), 0, 1).ticks()


def test_thinning_keeps_the_peaks() -> None:
    times = np.arange(5000)[::-1]
    values = np.where(times == 777, 1000, 1)
    kept = thinned(times, values, 100)
    assert len(kept) <= 100
    assert (777.0, 1000.0) in kept
    assert kept == sorted(kept)
    assert thinned(times[:3], values[:3]) == [(4997.0, 1.0), (4998.0, 1.0), (4999.0, 1.0)]


def test_lag_of_a_partition_without_a_single_marker(tmp_path: Path) -> None:
    rows = stored_output.tables()
    for row in rows["partition_history"]:
        row |= {"is_open": True, "marker_offset": None, "marker_ms": None}
    facts = _facts(tmp_path, rows)
    found = {one.title: one for one in pictures(facts, Report(), START_MS + 5000)}
    words = found["LSO lag by partition"].words
    assert "At the end of the copy 2 partitions are behind" in words
    assert "<circle" in str(found["LSO lag by partition"].svg)
