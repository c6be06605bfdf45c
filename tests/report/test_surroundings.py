"""A finding that names no producer has the batches around its place as its timeline."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from pipeline.report.facts import Facts
from pipeline.report.timeline import Timelines
from tests import stored_output
from tests.stored_output import RUN_ID, finding, summary

NOBODY = {"producer_id": None, "producer_epoch": None, "transactional_id": None, "group_id": None}


def _events(root: Path, one: dict[str, Any], rows: stored_output.Tables | None = None) -> Any:
    stored_output.write(root, rows or stored_output.tables(), summary())
    return Timelines(Facts(str(root), RUN_ID), [one]).of(one).events


def test_damage_is_shown_between_the_batches_around_it(tmp_path: Path) -> None:
    damage = finding(code="damaged_log", **{"class": "crc"}, **NOBODY, first_offset=1)
    events = _events(tmp_path, damage)
    assert [(one.offset, one.is_accused) for one in events] == [(0, False), (1, True)]
    assert events[0].words.startswith(
        "data orders-0 offsets 0 to 0, producer 7 epoch 0, leader epoch"
    )
    assert events[0].lane == "orders-0"


def test_two_replicas_have_a_line_each(tmp_path: Path) -> None:
    rows = stored_output.tables()
    mine = next(one for one in rows["replica"] if one["topic"] == "orders" and not one["partition"])
    other = mine | {"replica_id": 900, "broker_id": 2, "is_replayed": False}
    rows["replica"].append(other)
    theirs = [one for one in rows["entry"] if one["replica_id"] == mine["replica_id"]]
    rows["entry"] += [copy.deepcopy(one) | {"replica_id": 900} for one in theirs]
    split = finding(code="replica_divergence", **NOBODY, first_offset=0)
    events = _events(tmp_path, split, rows)
    assert {one.lane for one in events} == {"orders-0, broker 1", "orders-0, broker 2"}
    assert sum(one.is_accused for one in events) == 2


def test_the_evidence_gives_the_place_where_the_finding_has_none(tmp_path: Path) -> None:
    at = [{"broker": 1, "file": "f", "position": 0, "offset": 1, "what": "it"}]
    assert [
        one.offset
        for one in _events(tmp_path, finding(**NOBODY, first_offset=None, evidence=at))
        if one.is_accused
    ] == [1]


def test_a_finding_about_the_whole_cluster_has_none(tmp_path: Path) -> None:
    assert _events(tmp_path, finding(**NOBODY, topic=None, partition=None, first_offset=None)) == []
