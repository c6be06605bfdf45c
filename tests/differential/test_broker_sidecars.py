"""The replay holds what the brokers wrote beside their logs, for every recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.replay import stability
from pipeline.wire import producer_snapshot, txn_index
from pipeline.wire.producer_snapshot import SnapshotEntry
from tests.differential.replicas import replicas
from tests.recordings import all_recordings
from tests.snapshots import snapshot_entry

MARKER_OFFSET_GENERATION = ("0.11",)  # a marker sets last offset and delta as well
DATA_TIME_GENERATION = ("1.1.1", "2.0.1", "2.3.1")  # a marker leaves the timestamp alone
EMPTY_ABORT_GENERATION = (*MARKER_OFFSET_GENERATION, *DATA_TIME_GENERATION, "2.5.1")


def is_of(recording: Path, versions: tuple[str, ...]) -> bool:
    """Whether one of these Kafka versions made the recording, going by its name."""
    return any(f"-{version}" in recording.name for version in versions)


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_producer_state_equals_each_snapshot(folder: Path) -> None:
    entries = cut = 0
    for replica in replicas(folder):
        for offset, content in replica.sidecars("snapshot"):
            snapshot = producer_snapshot.read(content)
            assert snapshot.crc_ok
            held = replica.replayed(offset).producers
            for entry in snapshot.entries:
                place = (replica.folder.name, offset, entry)
                if 0 <= entry.last_offset < replica.history_start:
                    cut += 1
                    continue
                producer = held.get(entry.producer_id)
                assert producer is not None, place
                check(folder, entry, snapshot_entry(entry.producer_id, producer.broker), place)
                entries += 1
            named = {entry.producer_id for entry in snapshot.entries}
            for producer_id in held.keys() - named:
                assert held[producer_id].run is None or not held[producer_id].run.is_open
    print(folder.name, entries, "entries equal,", cut, "in cut history")


def check(folder: Path, entry: SnapshotEntry, held: SnapshotEntry, place: object) -> None:
    wanted = entry
    if is_of(folder, MARKER_OFFSET_GENERATION):
        assert entry.last_offset >= held.last_offset, place
        assert entry.offset_delta in (held.offset_delta, 0), place
        wanted = wanted._replace(last_offset=held.last_offset, offset_delta=held.offset_delta)
    if is_of(folder, DATA_TIME_GENERATION):
        assert entry.timestamp_ms <= held.timestamp_ms, place
        assert entry.coordinator_epoch in (held.coordinator_epoch, -1), place
        wanted = wanted._replace(
            timestamp_ms=held.timestamp_ms, coordinator_epoch=held.coordinator_epoch
        )
    assert wanted == held, place


@pytest.mark.parametrize("folder", all_recordings(), ids=lambda folder: folder.name)
def test_aborted_ranges_equal_the_transaction_index(folder: Path) -> None:
    equal = 0
    for replica in replicas(folder):
        listed = [
            entry for _, data in replica.sidecars("txnindex") for entry in txn_index.read(data)[0]
        ]
        replayed = stability.aborted(replica.replayed().runs)
        start = replica.history_start
        if is_of(folder, EMPTY_ABORT_GENERATION):
            listed = [entry for entry in listed if entry.first_offset != entry.last_offset]
        assert [e for e in listed if e.last_offset >= start] == [
            e for e in replayed if e.last_offset >= start
        ], replica.folder
        assert set(replayed) <= set(listed), replica.folder
        equal += len(replayed)
    print(folder.name, equal, "aborted transactions equal")


def test_history_that_was_cut_is_rare() -> None:
    """The tests above would pass on nothing if every snapshot counted as cut."""
    uncut = [
        replica.folder
        for folder in all_recordings()
        for replica in replicas(folder)
        if replica.history_start == 0
    ]
    assert len(uncut) > 4
