"""Transactions that were declared complete although a partition got no marker, and what their producer does next."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.replay.open_runs import LOST_COMMIT
from tests import builders, log_layout, pure_audit
from tests.unit.detect.small import STATE_TOPIC, TOPIC, Small

OTHER = 7
"""A producer whose transactions show that the logs go on."""


def _decided(logs: Small, at: int, epoch: int, *, has_marker: bool) -> None:
    """A transaction of version 2, whose end raises the epoch."""
    version = {"version": 1, "client_transaction_version": 2}
    logs.state(at, builders.ONGOING, epoch=epoch, **version)
    logs.write(at + 2, epoch=epoch)
    logs.state(at + 10, builders.PREPARE_COMMIT, epoch=epoch + 1, **version)
    if has_marker:
        logs.mark(at + 15, epoch=epoch + 1)
    logs.state(at + 20, builders.COMPLETE_COMMIT, epoch=epoch + 1, **version)


def _begun() -> Small:
    logs = Small()
    for producer_id in (1, OTHER):
        logs.state(-6_000, builders.EMPTY, producer_id)
    logs.transaction(-5_000, OTHER)
    return logs


def _said(logs: Small, folder: Path) -> set[tuple[str, str]]:
    for at in range(60_000, 180_000, 5_000):
        logs.transaction(at, OTHER)
    log = log_layout.LogDir(folder)
    log.segment(TOPIC, 0, logs.data)
    log.segment(STATE_TOPIC, 0, logs.states)
    log.finish()
    found = pure_audit.accusations(folder)
    return {(one["code"], one["class"]) for one in found if one["severity"] != "info"}


@pytest.mark.parametrize("has_marker", [True, False])
@pytest.mark.parametrize("goes_on", [True, False])
def test_data_without_their_marker_are_nobodys_zombie(
    has_marker: bool, goes_on: bool, tmp_path: Path
) -> None:
    """The next transaction's data join them in one run, which its marker closes."""
    logs = _begun()
    _decided(logs, 0, 0, has_marker=has_marker)
    if goes_on:
        _decided(logs, 30_000, 1, has_marker=True)
    wanted = set() if has_marker else {("marker_audit", "missing")}
    if not has_marker and not goes_on:
        wanted |= {("hanging_transaction", "not_in_transaction"), ("lso_pinned", "pinned")}
    assert _said(logs, tmp_path) == wanted
    if (
        "lso_pinned",
        "pinned",
    ) in wanted:  # the advice is another one than for data outside any transaction
        runs = pure_audit.replayed(pure_audit.read(tmp_path, Config())).runs
        assert [run["reason"] for run in runs if run["is_open"]] == [LOST_COMMIT]


def test_data_behind_their_marker_are_a_zombies(tmp_path: Path) -> None:
    logs = _begun()
    _decided(logs, 0, 0, has_marker=True)
    logs.write(25_000, epoch=0)
    _decided(logs, 30_000, 1, has_marker=True)
    said = _said(logs, tmp_path)
    assert {code for code, _ in said} >= {"zombie_write"}
    assert ("marker_audit", "missing") not in said
