"""Advice names the defects that may be behind a finding, and none that its brokers are proven to have fixed."""

from __future__ import annotations

import pytest

from docs.classes import CLASSES
from pipeline.detect import DETECTORS
from pipeline.findings import _with_causes
from pipeline.replay.coverage import NEVER
from pipeline.replay.known_defects import CAUSES, told
from pipeline.replay.version_bounds import ALL_NEW, parsed
from pipeline.report.advice import commands
from pipeline.spark.version_inputs import Proven, bound_at

NOW = 1_795_000_000_000
STUCK = {"code": "hanging_transaction", "class": "prepare_stuck", "copy": 0, "advice": "Restart."}
UNKNOWN = bound_at(None, {})


def _advice(proven: Proven, **times: int) -> str:
    row = STUCK | {"first_timestamp_ms": None, "last_timestamp_ms": None} | times
    return str(_with_causes([row], lambda: proven)[0]["advice"])


@pytest.mark.parametrize("place", sorted(CAUSES))
def test_each_cause_is_named_until_a_version_has_its_fix(place: tuple[str, str]) -> None:
    for one in CAUSES[place]:
        before = (one.since[0], one.since[1] - 1) if one.since[1] else (one.since[0] - 1, 9)
        assert one.name in told(*place, None)
        assert one.name in told(*place, before)
        assert one.name not in told(*place, one.since)
    assert told(*place, ALL_NEW) == ""


def test_the_page_of_a_class_names_the_same_defects() -> None:
    """And advice names none by itself: there nothing holds it against the brokers' versions."""
    fixed = {one.CODE: one.FIXED_IN for one in DETECTORS}
    for (code, label), causes in CAUSES.items():
        assert label in {one.name for one in CLASSES[code]}
        for one in causes:
            assert f"{one.name} in {one.fixed_in}" in fixed[code][label]


def test_a_transaction_that_is_stuck_under_old_brokers_may_have_met_any_of_them() -> None:
    assert _advice(UNKNOWN) == (
        "Restart. Known causes in older brokers: KAFKA-9777 (fixed in 2.6.0); KAFKA-16352 (fixed in 3.8.0); "
        "KAFKA-17877 (fixed in 4.0.0)."
    )


def test_the_same_under_brokers_that_have_the_fixes_names_none() -> None:
    assert _advice(bound_at(parsed("4.0.0"), {})) == "Restart."
    assert _advice(bound_at(None, {0: NEVER})) == "Restart."
    assert "9777" not in _advice(bound_at(parsed("3.9.1"), {}))
    assert "17877" in _advice(bound_at(parsed("3.9.1"), {}))


def test_a_command_at_the_end_is_copied_without_them() -> None:
    command = "kafka-transactions.sh --bootstrap-server <host:port> describe --transactional-id a-1"
    row = STUCK | {"advice": f"Restart. {command}", "first_timestamp_ms": None}
    (said,) = _with_causes([row | {"last_timestamp_ms": None}], lambda: UNKNOWN)
    assert f"{command}; known causes in older brokers: KAFKA-9777" in said["advice"]
    ids = {"topic": "t", "transactional_id": "a-1", "group_id": None}
    assert commands(said | ids) == [command]


@pytest.mark.parametrize(("ms", "is_named"), [(NOW - 1, True), (NOW, False), (None, True)])
def test_an_upgrade_frees_of_what_comes_behind_it(ms: int | None, is_named: bool) -> None:
    upgraded = bound_at(None, {0: NOW})
    times = {} if ms is None else {"last_timestamp_ms": ms, "first_timestamp_ms": NOW - 9}
    assert ("KAFKA" in _advice(upgraded, **times)) == is_named
    assert "KAFKA" in _advice(bound_at(None, {1: NOW}), **times)
