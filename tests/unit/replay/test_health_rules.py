"""Slow transactions, storms, ids, applications, figures and sidecars: each fault and a twin that differs by one row."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.replay import fencing, ids, sidecar_check, slow
from pipeline.replay.application import application
from pipeline.replay.columns import Columns
from pipeline.replay.ids import Extent
from pipeline.replay.index_check import IndexProblem
from pipeline.replay.metrics import metrics
from pipeline.replay.sidecar_check import LastData, LastMarker, LogPlace
from pipeline.wire.producer_snapshot import SnapshotEntry
from tests.columns_of import of_rows
from tests.unit.replay.facts import living

NOW = 1_795_000_000_000
PLACE = LogPlace(0, "t", 0, 1, 0, 0, 100, True, None, False)
TRANSACTION: dict[str, Any] = {
    "copy": 0, "coordinator_partition": 1, "first_step_offset": 5, "producer_id": 7, "producer_epoch": 0,
    "prepare_epoch": 0, "state": 4, "outcome": 1, "transaction_version": 0, "txn_timeout_ms": 60_000,
    "ongoing_ms": NOW, "ongoing_leader_epoch": 0, "prepare_offset": 6, "prepare_ms": NOW + 100,
    "prepare_leader_epoch": 0, "complete_offset": 7, "complete_ms": NOW + 110, "complete_leader_epoch": 0,
    "transactional_id": "pay-0", "cause": "client_commit",
}  # fmt: skip
SLOW = slow.Limits(5_000, 60_000, 0.8)
STEP: dict[str, Any] = {
    "copy": 0, "coordinator_partition": 1, "offset": 1, "append_ms": NOW, "producer_id": 7, "producer_epoch": 1,
    "previous_producer_epoch": 0, "transaction_version": 0, "transactional_id": "pay-0", "cause": "init_again",
}  # fmt: skip
STORM = fencing.Limits(10, 600_000, 3, 300_000, 30)


LIVED = {(0, 1, 0): living(NOW + 90_000)}


def _repeats(*rows: dict[str, Any]) -> Columns:
    steps = [STEP | {"cause": slow.REPEATED} | row for row in rows]
    return of_rows(steps, ("copy", "coordinator_partition", "offset"), slow.TEXTS)


def _slow(*repeats: dict[str, Any], **fields: Any) -> list[str]:
    one = of_rows([TRANSACTION | fields], slow.NUMBERS, slow.TEXTS)
    return [said.label for said in slow.statements(one, _repeats(*repeats), LIVED, SLOW)]


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({}, []),
        ({"prepare_ms": NOW + 61_000, "complete_ms": NOW + 61_010}, ["long_running", "near_timeout"]),
        ({"prepare_ms": NOW + 49_000, "complete_ms": NOW + 49_010}, ["near_timeout"]),
        ({"prepare_ms": NOW + 49_000, "complete_ms": NOW + 49_010, "cause": "fence"}, []),
        ({"prepare_ms": NOW + 61_000, "complete_ms": None, "prepare_leader_epoch": 1}, []),
        ({"complete_ms": NOW + 6_000}, ["slow_markers"]),
        ({"complete_ms": NOW + 6_000, "complete_leader_epoch": 1}, []),
        ({"state": 1, "prepare_ms": None, "complete_ms": None, "cause": None}, ["long_running"]),
        ({"txn_timeout_ms": 2147483647, "prepare_ms": NOW + 50_000, "complete_ms": NOW + 50_001}, []),
        ({"txn_timeout_ms": 2147483647, "prepare_ms": NOW + 99_000, "complete_ms": NOW + 99_001}, []),
    ],
)  # fmt: skip
def test_slow_transactions(fields: dict[str, Any], labels: list[str]) -> None:
    assert _slow(**fields) == labels


@pytest.mark.parametrize(
    ("repeat", "labels"),
    [
        ({"offset": 6}, []),
        ({"offset": 8}, []),
        ({"offset": 5}, ["long_running", "near_timeout"]),
        ({"offset": 10}, ["long_running", "near_timeout"]),
        ({"offset": 6, "copy": 1}, ["long_running", "near_timeout"]),
        ({"offset": 6, "coordinator_partition": 2}, ["long_running", "near_timeout"]),
        ({"offset": 6, "transactional_id": "pay-1"}, ["long_running", "near_timeout"]),
    ],
)
def test_a_client_is_not_slow_where_the_coordinator_had_to_append_again(
    repeat: dict[str, Any], labels: list[str]
) -> None:
    late = {
        "prepare_offset": 8,
        "prepare_ms": NOW + 61_000,
        "complete_offset": 9,
        "complete_ms": NOW + 61_010,
    }
    assert _slow(repeat, **late) == labels


@pytest.mark.parametrize(("offset", "labels"), [(7, []), (8, []), (9, ["slow_markers"])])
def test_markers_are_not_slow_where_the_coordinator_had_to_append_again(
    offset: int, labels: list[str]
) -> None:
    assert _slow({"offset": offset}, complete_offset=8, complete_ms=NOW + 6_000) == labels


@pytest.mark.parametrize(
    ("fields", "title", "times"),
    [
        ({"prepare_ms": NOW + 49_000, "complete_ms": NOW + 49_010},
         "transactions of pay-0 come within 11 s of their timeout", "; it took 49 s, with a timeout of 60 s."),
        ({"prepare_ms": NOW + 9_880, "complete_ms": NOW + 9_900, "txn_timeout_ms": 9_000},
         "transactions of pay-0 take up to 9.88 s, their timeout is 9 s", "; it took 9.88 s, with a timeout of 9 s."),
        ({"complete_ms": NOW + 6_100}, "markers of transactions of pay-0 take up to 6 s", "Complete*; it took 6 s."),
    ],
)  # fmt: skip
def test_slow_transactions_are_told_with_their_times(
    fields: dict[str, Any], title: str, times: str
) -> None:
    one = of_rows([TRANSACTION | fields], slow.NUMBERS, slow.TEXTS)
    (said,) = slow.statements(one, _repeats(), LIVED, SLOW)
    assert said.title == title
    assert said.explanation.endswith(times)


def _fences(count: int, gap_ms: int, **fields: Any) -> list[str]:
    rows = [
        STEP | {"offset": n, "append_ms": NOW + n * gap_ms, "producer_epoch": n + 1, "previous_producer_epoch": n}
        | fields
        for n in range(count)
    ]  # fmt: skip
    said = fencing.statements(of_rows(rows, fencing.NUMBERS, fencing.TEXTS), STORM)
    return [one.label for one in said]


def test_fences() -> None:
    assert _fences(9, 10) == []
    assert _fences(10, 10) == ["storm"]
    assert _fences(10, 100_000) == []
    assert _fences(3, 10, cause="fence") == ["id_reuse_race"]
    assert _fences(2, 10, cause="fence") == []
    assert _fences(120, 60_000) == ["storm", "epoch_burn"]
    assert _fences(120, 60_000, transaction_version=2) == ["storm"]
    assert _fences(120, 86_400_000) == []


def _ids(rows: list[dict[str, Any]], steps: list[dict[str, Any]], limit: int = 3) -> list[str]:
    said = ids.statements(
        of_rows(rows, slow.NUMBERS, slow.TEXTS),
        of_rows(steps, ids.STEP_NUMBERS, ids.STEP_TEXTS),
        ids.Limits(limit, 900_000),
    )
    return [one.label for one in said]


def test_ids() -> None:
    many = [TRANSACTION | {"transactional_id": f"order-{n}"} for n in range(3)]
    assert _ids(many, []) == ["unbounded_ids"]
    assert _ids(many, [], limit=4) == []
    assert _ids([*many, *many], []) == []
    assert _ids([TRANSACTION | {"txn_timeout_ms": 900_001}], []) == ["timeout_above_max"]
    assert _ids([TRANSACTION | {"txn_timeout_ms": 2147483647}], []) == []
    gone = STEP | {"cause": "expiry", "offset": 4}
    assert _ids([], [STEP | {"cause": "init"}, gone, STEP | {"cause": "init", "offset": 5}]) == [
        "idle_expired"
    ]
    assert _ids([], [STEP | {"cause": "init"}, gone]) == []


def test_two_producer_ids_in_turn() -> None:
    older = Extent(0, "pay-0", 7, 0, "t", 0, 10, 40)
    newer = Extent(0, "pay-0", 8, 1, "t", 0, 30, 60)
    limits = ids.Limits(3, 900_000)
    assert [one.label for one in ids.interleaved([newer, older], limits)] == [
        "interleaved_producers"
    ]
    assert ids.interleaved([older._replace(last_offset=29), newer], limits) == []
    assert ids.interleaved([older, newer._replace(partition=1)], limits) == []


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("shop-orders-0_12", "shop-orders (Kafka Streams v1)"),
        ("shop-1f0e2c5a-0000-4000-8000-0123456789ab-3", "shop (Kafka Streams v2)"),
        ("connect-cluster-billing", "billing (Connect worker)"),
        ("sink-3-118", "sink (Flink)"),
        ("Sink: x-cbc357ccb763df2852fee8c4fc7d55f2-4", "Sink: x (Flink)"),
        ("pay-7", "pay"),
        ("alone", "alone"),
        ("", ""),
    ],
)
def test_applications(name: str, known: str) -> None:
    assert str(application(name)) == known


def test_a_pattern_goes_first() -> None:
    assert application("eu.pay.17", r"\w+\.(?P<application>\w+)\.\d+").name == "pay"
    assert application("pay-7", r"\w+\.(?P<application>\w+)\.\d+").name == "pay"


def test_figures() -> None:
    rows = [
        TRANSACTION,
        TRANSACTION
        | {"outcome": 0, "cause": "timeout", "ongoing_ms": NOW + 50, "complete_ms": None},
    ]
    kept = [{"copy": 0, "prepare_ms": NOW, "marker_ms": NOW + 4, "transactional_id": "pay-0"}]
    found = {
        (one.name, one.quantile): one.value
        for one in metrics(
            of_rows(rows, slow.NUMBERS, slow.TEXTS),
            of_rows(kept, ("copy", "prepare_ms", "marker_ms"), ("transactional_id",)),
            None,
        )
    }
    assert found["transactions_begun", None] == 2
    assert found["transactions_ongoing", None] == 2
    assert found["transactions_committed", None] == 1
    assert found["transactions_timed_out", None] == 1
    assert found["commit_latency", 95] == 10
    assert found["marker_latency", 50] == 4
    assert ("epochs_burnt", None) not in found


def test_nothing_gives_no_figures() -> None:
    empty = of_rows([], slow.NUMBERS, slow.TEXTS)
    assert (
        metrics(
            empty, of_rows([], ("copy", "prepare_ms", "marker_ms"), ("transactional_id",)), None
        )
        == []
    )


DATA = LastData(10, 12, 5, 0, NOW)
MARKER = LastMarker(20, 0, 3, NOW + 5)
END = 50
ENTRY = SnapshotEntry(7, 0, 5, 12, 2, NOW + 5, 3, -1)


@pytest.mark.parametrize(
    ("fields", "is_wrong"),
    [
        ({}, False),
        ({"last_offset": 20, "offset_delta": 0}, False),
        ({"timestamp_ms": NOW}, False),
        ({"timestamp_ms": -1, "coordinator_epoch": -1}, False),
        ({"last_sequence": 6}, True),
        ({"producer_epoch": 1}, True),
        ({"last_offset": 13}, True),
        ({"offset_delta": 1}, True),
        ({"timestamp_ms": NOW + 1}, True),
        ({"coordinator_epoch": 4}, True),
        ({"current_txn_first_offset": 10}, True),
    ],
)
def test_a_snapshot_entry(fields: dict[str, int], is_wrong: bool) -> None:
    said = sidecar_check.snapshot(PLACE, END, ENTRY._replace(**fields), DATA, MARKER, None)
    assert (said is not None) == is_wrong
    cut = PLACE._replace(history_start_offset=11)
    assert sidecar_check.snapshot(cut, END, ENTRY._replace(**fields), DATA, MARKER, None) is None


def test_a_snapshot_behind_the_end_of_the_log_is_of_another_moment() -> None:
    wrong = ENTRY._replace(last_sequence=6)
    assert sidecar_check.snapshot(PLACE, 101, wrong, DATA, MARKER, None) is None


def test_a_marker_of_a_higher_epoch_empties_a_snapshot_entry() -> None:
    raised = MARKER._replace(producer_epoch=1)
    entry = ENTRY._replace(producer_epoch=1, last_sequence=-1, last_offset=-1, offset_delta=0)
    assert sidecar_check.snapshot(PLACE, END, entry, DATA, raised, None) is None
    assert (
        sidecar_check.snapshot(PLACE, END, entry._replace(last_sequence=5), DATA, raised, None)
        is not None
    )


def test_leader_epochs() -> None:
    listed = [(0, 0), (2, 40)]
    assert sidecar_check.leader_epochs(PLACE, listed, [(0, 0), (2, 40)]) is None
    assert sidecar_check.leader_epochs(PLACE, listed, [(0, 0), (2, 45)]) is None
    assert sidecar_check.leader_epochs(PLACE, listed, [(2, 39)]) is not None
    assert sidecar_check.leader_epochs(PLACE, listed, [(1, 30)]) is not None
    assert sidecar_check.leader_epochs(PLACE, [], [(1, 30)]) is None
    newer = [(3, 60)]
    assert sidecar_check.leader_epochs(PLACE, listed, newer) is not None
    assert sidecar_check.leader_epochs(PLACE._replace(is_stopped=False), listed, newer) is None


@pytest.mark.parametrize(
    ("place", "severity"),
    [
        (PLACE, "major"),
        (PLACE._replace(is_stopped=False), "info"),
        (PLACE._replace(is_stopped=False, recovery_point=90), "major"),
        (PLACE._replace(is_stopped=False, recovery_point=20), "info"),
        (PLACE._replace(is_stopped=False, recovery_point=90, is_cleaned=True), "info"),
    ],
)
def test_an_index_convicts_where_it_has_to_agree(place: LogPlace, severity: str) -> None:
    said = sidecar_check.indexes(place, "t-0/0.log", [IndexProblem("index", 1, 30, 7, 0)])
    assert [one.severity for one in said] == [severity]
