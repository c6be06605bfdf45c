"""The replay says what the live broker said before the copy was taken, for every recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.replay import stability
from pipeline.replay.history import History
from tests.differential.replicas import Replica, best_replicas, truth
from tests.recordings import all_recordings, recording

FOLDERS = pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)


def facts_of(folder: Path) -> dict[str, Any]:
    return truth(folder).get("serverFacts") or {}


def asked(folder: Path) -> Iterator[tuple[dict[str, Any], Replica, History]]:
    """What the broker said of each copied partition, and its history up to that high watermark."""
    best = best_replicas(folder)
    for fact in facts_of(folder).get("partitions", []):
        replica = best.get((fact["topic"], fact["partition"]))
        assert replica is not None, fact
        assert replica.log_end_offset >= fact["hw"]
        yield fact, replica, replica.replayed(fact["hw"])


@FOLDERS
def test_last_stable_offset_and_open_transactions(folder: Path) -> None:
    partitions = is_open = 0
    for fact, _, history in asked(folder):
        place = (fact["topic"], fact["partition"])
        assert stability.last_stable_offset(history.runs, fact["hw"], fact["hw"]) == fact["lso"], (
            place
        )
        partitions += 1
        pinned = [pin for pin in stability.pins(history.runs) if pin.pinned_to_offset is None]
        assert [pin.last_stable_offset for pin in pinned] == (
            [fact["lso"]] if fact["lso"] < fact["hw"] else []
        )
        if not isinstance(fact.get("describeProducers"), list):
            continue
        told = {
            (one["producerId"], one["currentTransactionStartOffset"])
            for one in fact["describeProducers"]
            if one["currentTransactionStartOffset"] >= 0
        }
        assert {(run.producer_id, run.first_offset) for run in history.runs if run.is_open} == told
        is_open += len(told)
    print(folder.name, partitions, "partitions equal,", is_open, "transactions open")


@FOLDERS
def test_producers_as_the_broker_described_them(folder: Path) -> None:
    producers = 0
    for fact, _, history in asked(folder):
        for told in fact.get("describeProducers") or []:
            held = history.producers[told["producerId"]].broker
            assert {
                "producerId": told["producerId"],
                "producerEpoch": held.producer_epoch,
                "coordinatorEpoch": held.coordinator_epoch,
                "lastSequence": held.last_sequence,
                "lastTimestamp": held.last_timestamp_ms,
                "currentTransactionStartOffset": held.current_txn_first_offset,
            } == told
            producers += 1
    print(folder.name, producers, "producers equal")


def committed_offsets(folder: Path) -> dict[str, dict[str, int | None]]:
    """Group -> `topic-partition` -> committed offset, replayed."""
    found: dict[str, dict[str, int | None]] = {}
    for replica in best_replicas(folder).values():
        if replica.is_offsets:
            for (group_id, topic, partition), one in replica.committed()[0].materialised.items():
                found.setdefault(group_id, {})[f"{topic}-{partition}"] = one.committed_offset
    return found


@FOLDERS
def test_committed_offsets(folder: Path) -> None:
    found = committed_offsets(folder)
    groups = facts_of(folder).get("groups") or []
    for group in groups:
        if folder.name.startswith("15a"):
            continue  # the broker's memory was wrong, see below
        assert found.get(group["group"], {}) == group["offsets"], group["group"]
    print(folder.name, len(groups), "groups equal")


def test_the_log_knew_better_than_the_broker() -> None:
    """KAFKA-17507: the broker answered 350 from memory and 352 once it had read the log again."""
    folder = recording("15a")
    found = committed_offsets(folder)
    after = {
        (event["group"], event["tp"]): event["offset"]
        for event in truth(folder)["afterRestart"]["events"]
        if event["action"].startswith("offsetFetch")
    }
    assert {key: found[key[0]][key[1]] for key in after} == after
    before = {group["group"]: group["offsets"] for group in facts_of(folder)["groups"]}
    assert found["g-race"] != before["g-race"]


def test_a_pending_offset_and_a_regression() -> None:
    decided = [
        one
        for replica in best_replicas(recording("16a")).values()
        if replica.is_offsets
        for one in replica.committed()[1]
    ]
    pending = [one.record for one in decided if one.outcome == "pending"]
    assert [(one.group_id, one.topic, one.partition, one.committed_offset) for one in pending] == [
        ("g-pending", "o-in", 0, 4)
    ]
    lower = [
        (
            one.record.group_id,
            one.record.partition,
            one.previous.committed_offset,
            one.record.committed_offset,
        )
        for one in decided
        if one.outcome == "materialised"
        and one.previous is not None
        and (one.record.committed_offset or 0) < (one.previous.committed_offset or 0)
    ]
    assert lower == [("g-simple", 3, 8, 2)]
    assert {one.outcome for one in decided} >= {"aborted", "superseded", "materialised"}
