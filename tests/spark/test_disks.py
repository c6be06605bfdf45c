"""Two log directories of one broker: its disks, or copies of one of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.spark.plan import plan
from tests import builders
from tests.log_layout import LogDir, meta_properties, offset_checkpoint, partition_metadata
from tests.spark.test_plan import copies_of, log_dir


def test_disks_of_one_broker_are_one_copy(tmp_path: Path) -> None:
    log_dir(tmp_path / "disk1", 1, "orders")
    log_dir(tmp_path / "disk2", 1, "events")
    moving = tmp_path / "disk2" / "broker-1" / f"orders-0.{'a' * 32}-future"
    shutil.copytree(tmp_path / "disk1" / "broker-1" / "orders-0", moving)
    assert set(copies_of(tmp_path).values()) == {0}
    assert sorted(one.suffix for one in plan([str(tmp_path)]).replicas) == ["", "", "future"]


def _two_directories(root: Path, own: int, *, is_known: bool) -> None:
    """Two log directories of a broker that both hold one partition, and some of their own."""
    for disk, records in (("disk-1", 2), ("disk-2", 5)):
        made = LogDir(root / disk, 1)
        made.segment("orders", 0, [builders.batch(0, records, partition_leader_epoch=4)])
        for number in range(own):
            made.segment(disk, number, [builders.batch(0, 3)])
        text = meta_properties(1, disk=disk).decode()
        if not is_known:
            text = "\n".join(line for line in text.split("\n") if "directory.id" not in line)
        (made.finish() / "meta.properties").write_text(text)


@pytest.mark.parametrize(
    ("is_known", "own"), [(True, 1), (False, 2)], ids=["directory-ids", "before-3.7"]
)
def test_a_partition_that_moved_between_disks_counts_where_it_is(
    is_known: bool, own: int, tmp_path: Path
) -> None:
    """Copied in two passes."""
    _two_directories(tmp_path, own, is_known=is_known)
    found = plan([str(tmp_path)])
    places = sorted(one.name for one in found.replicas)
    assert "disk-1/broker-1/orders-0" not in places
    assert "disk-2/broker-1/orders-0" in places
    assert {one.copy for one in found.log_dirs} == {0}
    why = {one.reason for one in found.skipped if "disk-1/broker-1/orders-0/" in one.name}
    assert why == {"not_replayed"}


def test_directories_without_ids_that_have_half_in_common_are_copies(tmp_path: Path) -> None:
    """Of few partitions nobody can tell: two copies keep all that is there."""
    _two_directories(tmp_path, 1, is_known=False)
    assert len(plan([str(tmp_path)]).replicas) == 4
    assert set(copies_of(tmp_path).values()) == {0, 1}


def test_checkpoints_tell_two_copies_of_chosen_partitions_from_two_disks(tmp_path: Path) -> None:
    """Each copy was made of a few topics; what its checkpoints name is the same."""
    _two_directories(tmp_path, 2, is_known=False)
    name = "recovery-point-offset-checkpoint"
    files = [tmp_path / disk / "broker-1" / name for disk in ("disk-1", "disk-2")]
    all_of_it = {(f"disk-{number}", partition): 3 for number in (1, 2) for partition in (0, 1)}
    for file in files:
        file.write_bytes(offset_checkpoint(all_of_it | {("orders", 0): 2}))
    assert set(copies_of(tmp_path).values()) == {0, 1}


def _spread(root: Path, broker: int, *partitions: int) -> LogDir:
    """A log directory without a directory id that holds these partitions of a topic, and one of another."""
    made = LogDir(root, broker)
    for number in partitions:
        made.segment("orders", number, [builders.batch(0, 3)])
    made.segment("events", 0, [builders.batch(0, 3)])
    text = meta_properties(broker).decode().split("\n")
    made.finish()
    (made.path / "meta.properties").write_text(
        "\n".join(line for line in text if "directory.id" not in line)
    )
    return made


def test_a_topic_that_is_spread_over_both_directories_tells_disks(tmp_path: Path) -> None:
    """Most of what is there moved between two passes, as a real broker's frantic moves do."""
    _spread(tmp_path / "disk-1", 1, 0, 1)
    _spread(tmp_path / "disk-2", 1, 1, 2)
    found = plan([str(tmp_path)])
    assert {one.copy for one in found.log_dirs} == {0}
    assert len(found.replicas) == 4
    _spread(tmp_path / "disk-1", 2, 0)
    _spread(tmp_path / "disk-2", 2, 0)
    assert set(copies_of(tmp_path).values()) == {0, 1}


def test_without_checkpoints_a_spread_topic_tells_nothing(tmp_path: Path) -> None:
    made = [_spread(tmp_path / "monday", 1, 0, 1), _spread(tmp_path / "tuesday", 1, 1, 2)]
    for one in made:
        (one.path / "replication-offset-checkpoint").unlink()
    assert set(copies_of(tmp_path).values()) == {0, 1}


def test_of_two_disks_the_log_with_the_greater_end_counts(tmp_path: Path) -> None:
    """The cleaner merged segments of the one that goes on: its last one begins earlier."""
    goes_on, behind = LogDir(tmp_path / "disk-1", 1), LogDir(tmp_path / "disk-2", 1)
    goes_on.segment("orders", 0, [builders.batch(0, 3), builders.batch(40, 3)], base_offset=0)
    behind.segment("orders", 0, [builders.batch(0, 3)])
    behind.segment("orders", 0, [builders.batch(20, 3)])
    for made, disk in ((goes_on, "a"), (behind, "b")):
        (made.finish() / "meta.properties").write_bytes(meta_properties(1, disk=disk))
    (found,) = plan([str(tmp_path)]).replicas
    assert found.name == "disk-1/broker-1/orders-0"


def test_two_incarnations_of_a_topic_are_one_copy(tmp_path: Path) -> None:
    log_dir(tmp_path / "disk1", 1, "orders")
    second = log_dir(tmp_path / "disk2", 1, "orders")
    (second / "orders-0" / "partition.metadata").write_bytes(partition_metadata("orders", 1))
    found = plan([str(tmp_path)])
    assert {one.copy for one in found.log_dirs} == {0}
    assert len({one.replica_id for one in found.replicas}) == 2
