"""A defect of old brokers is told of logs that they may have written, and not of their twins that prove the fix.

The proof is one record more: a value of version 1 in `__transaction_state`, which needs every broker to be 4.0, or an
offset commit of version 4, which is proof of the one broker that led the partition then.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import Config
from tests import builders
from tests.plant import PLANTS, plant
from tests.planting.copied import CopiedLogs, Row
from tests.planting.transactions import Coordinator
from tests.pure_audit import accusations
from tests.recordings import recording
from tests.score import matches

pytestmark = pytest.mark.slow
RACES = ("bypass", "early_answer", "race_regression", "healed")


def proven(folder: Path, target: Path, *, is_before: bool = True) -> Path:
    """A copy with a value of version 1 in front of the coordinator's log, or behind it."""
    coordinator = Coordinator(CopiedLogs(folder, target))
    partition = next(number for number, rows in coordinator.rows.items() if rows)
    rows = coordinator.rows[partition]
    time_ms = rows[0].time_ms - 60_000 if is_before else rows[-1].time_ms + 60_000
    value = builders.txn_value(
        builders.EMPTY, producer_id=98_765, partitions=None, last_update_ms=time_ms, version=1
    )
    at = 0 if is_before else len(rows)
    coordinator.insert(partition, at, coordinator.name("proof", partition), value, time_ms)
    coordinator.save()
    return target


def proven_leader(folder: Path, target: Path, *, is_same: bool = True) -> Path:
    """A copy in which the leader of each offsets partition writes a commit of version 4, or the leader after it."""
    logs = CopiedLogs(folder, target)
    for topic, partition in logs.names():
        if topic == "__consumer_offsets":
            rows = logs.rows(topic, partition)
            record = builders.Rec(
                builders.offset_key("proof", "t", 0), builders.offset_value(0, version=4)
            )
            last = rows[-1]
            epoch = last.leader_epoch + (not is_same)
            rows.append(
                Row(builders.batch(0, [record], timestamp_ms=last.time_ms + 9, partition_leader_epoch=epoch))
            )  # fmt: skip
            logs.save(topic, partition, rows)
    return target


@pytest.mark.parametrize("proof", ["none", "before", "behind"])
@pytest.mark.parametrize("name", RACES)
def test_a_race_of_old_brokers(name: str, proof: str, tmp_path: Path) -> None:
    planted = plant(name, recording(PLANTS[name].recording) / "logs", tmp_path / "logs")
    logs = tmp_path / "logs"
    if proof != "none":
        logs = proven(logs, tmp_path / "proven", is_before=proof == "before")
    is_told = any(matches(one, planted.must) for one in accusations(logs, Config()))
    assert is_told == (proof != "before")


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize("name", RACES)
def test_a_leader_that_proves_the_fix_frees_what_it_wrote(
    name: str, is_same: bool, tmp_path: Path
) -> None:
    """Its neighbours and those who led before it may still be old: clusters are upgraded a broker at a time."""
    planted = plant(name, recording(PLANTS[name].recording) / "logs", tmp_path / "logs")
    logs = proven_leader(tmp_path / "logs", tmp_path / "proven", is_same=is_same)
    is_told = any(matches(one, planted.must) for one in accusations(logs, Config()))
    # The window of `healed` stood under the leader before.
    assert is_told == (not is_same or name == "healed")
