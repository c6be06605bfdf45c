"""What the planner finds in copies as they are in life, without Spark."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from pipeline.errors import UsageError
from pipeline.spark.plan import UNKNOWN_CLUSTER, plan
from pipeline.spark.walk import MAX_DEPTH
from tests import builders
from tests.log_layout import (
    LogDir,
    segment_name,
)
from tests.recordings import recording


def log_dir(root: Path, node_id: int = 1, *topics: str, cluster: str = "model") -> Path:
    """A log directory with one batch in partition 0 of each topic."""
    made = LogDir(root, node_id, cluster)
    for topic in topics or ("orders",):
        made.segment(topic, 0, [builders.batch(0, 3, partition_leader_epoch=4)])
    return made.finish()


def copies_of(root: Path) -> dict[str, int]:
    return {os.path.relpath(one.path, root): one.copy for one in plan([str(root)]).log_dirs}


def test_a_log_directory_gives_its_broker_checkpoints_and_epochs(tmp_path: Path) -> None:
    log_dir(tmp_path, 7)
    found = plan([str(tmp_path)])
    (one,) = found.log_dirs
    assert (one.broker_id, one.cluster_id, one.copy) == (7, found.cluster_id, 0)
    assert (one.is_clean_shutdown, one.has_checkpoints) == (True, True)
    assert one.high_watermarks == {("orders", 0): 3} == one.recovery_points
    (replica,) = found.replicas
    assert (replica.topic, replica.partition, replica.suffix) == ("orders", 0, "")
    assert replica.leader_epochs == ((4, 0),)
    (file,) = found.files
    assert (file.kind, file.base_offset, file.size) == ("log", 0, os.path.getsize(file.path))
    assert (found.unread, found.skipped) == ((), ())


def test_every_recording_is_planned_without_leftovers() -> None:
    found = plan([str(recording("06") / "logs")])
    assert found.cluster_id != UNKNOWN_CLUSTER
    assert not found.unread
    assert {one.replica_id for one in found.replicas} >= {one.replica_id for one in found.files}


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (["a"], ["broker-1/orders-0"]),
        (["a", "b"], ["a/broker-1/orders-0", "b/broker-1/orders-0"]),
        (["old/x", "new/x"], ["new/x/broker-1/orders-0", "old/x/broker-1/orders-0"]),
        (["a", "a"], ["broker-1/orders-0"]),
        (["a/broker-1/orders-0", "b/broker-1/orders-0"],
         ["a/broker-1/orders-0", "b/broker-1/orders-0"]),
    ],
)  # fmt: skip
def test_names_of_several_inputs_differ(
    inputs: list[str], names: list[str], tmp_path: Path
) -> None:
    for folder in {one.removesuffix("/broker-1/orders-0") for one in inputs}:
        log_dir(tmp_path / folder)
    found = plan([str(tmp_path / one) for one in inputs])
    assert sorted(one.name for one in found.replicas) == names
    assert sorted(os.path.dirname(one.name) for one in found.files) == names


def test_ids_do_not_depend_on_where_the_copy_lies(tmp_path: Path) -> None:
    log_dir(tmp_path / "a")
    (tmp_path / "a" / "broker-1" / "meta.properties").unlink()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    first, second = plan([str(tmp_path / "a")]), plan([f"file://{tmp_path / 'b'}"])
    assert [one.replica_id for one in first.replicas] == [one.replica_id for one in second.replicas]
    assert [one.segment_id for one in first.files] == [one.segment_id for one in second.files]
    assert first.cluster_id == UNKNOWN_CLUSTER


def test_two_brokers_without_ids_stay_two(tmp_path: Path) -> None:
    for number in (1, 2):
        (log_dir(tmp_path, number) / "meta.properties").unlink()
    assert len({one.replica_id for one in plan([str(tmp_path)]).replicas}) == 2


def test_a_partition_directory_and_a_single_file_are_inputs(tmp_path: Path) -> None:
    partition = log_dir(tmp_path) / "orders-0"
    for given in (partition, partition / segment_name(0)):
        (replica,) = plan([str(given)]).replicas
        assert (replica.topic, replica.partition) == ("orders", 0)
    loose = tmp_path / "loose \x1b[31m" / segment_name(12)
    loose.parent.mkdir()
    shutil.copy(partition / segment_name(0), loose)
    (file,) = plan([str(loose)]).files
    assert (file.topic, file.base_offset) == ("loose \\x1b[31m", 12)


def test_inputs_that_overlap_are_read_once(tmp_path: Path) -> None:
    top = log_dir(tmp_path)
    partition = top / "orders-0"
    file = partition / segment_name(0)
    for inputs in ([tmp_path, top], [partition, tmp_path], [file, tmp_path], [file, file]):
        found = plan([str(one) for one in inputs])
        assert [one.path for one in found.files] == [str(file)]
        assert len(found.replicas) == 1


def test_an_input_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        plan([str(tmp_path / "none")])


def test_an_empty_folder_is_a_plan_without_files(tmp_path: Path) -> None:
    found = plan([str(tmp_path)], cluster_id="given")
    assert (found.files, found.replicas, found.cluster_id) == ((), (), "given")


def test_two_clusters_are_a_usage_error(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, cluster="one")
    log_dir(tmp_path, 2, cluster="other")
    with pytest.raises(UsageError, match="two clusters"):
        plan([str(tmp_path)])


def test_the_same_partition_of_a_broker_twice_makes_copies(tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        log_dir(tmp_path / day, 1, "orders")
        log_dir(tmp_path / day, 2, "events")
    assert copies_of(tmp_path) == {
        "monday/broker-1": 0,
        "monday/broker-2": 0,
        "tuesday/broker-1": 1,
        "tuesday/broker-2": 1,
    }


def test_a_copy_inside_another_is_a_copy_of_its_own(tmp_path: Path) -> None:
    outer = log_dir(tmp_path, 1)
    log_dir(outer / "old", 1)
    assert sorted(copies_of(tmp_path).values()) == [0, 1]


def test_files_that_are_not_current_are_noted_and_not_read(tmp_path: Path) -> None:
    top = log_dir(tmp_path)
    partition = top / "orders-0"
    for suffix in ("deleted", "cleaned", "swap"):
        (partition / f"{segment_name(0)}.{suffix}").write_bytes(b"x")
    shutil.copytree(partition, top / f"old-0.{'b' * 32}-delete")
    (partition / "notes.txt").write_text("hello")
    found = plan([str(tmp_path)])
    assert [one.path for one in found.files] == [str(partition / segment_name(0))]
    reasons = [one.reason for one in found.skipped]
    assert (reasons.count("not_replayed"), reasons.count("foreign")) == (7, 1)


def test_loops_pipes_sockets_and_broken_links_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = log_dir(tmp_path)
    (top / "loop").symlink_to(tmp_path)
    (top / "orders-0" / segment_name(5)).symlink_to(tmp_path / "gone")
    os.mkfifo(top / "orders-0" / segment_name(9))
    monkeypatch.chdir(top)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        found = plan([str(tmp_path)])
    assert [one.base_offset for one in found.files] == [0]
    assert [one.reason for one in found.skipped] == ["foreign"]
    assert {(one.reason, one.name) for one in found.unread} == {
        ("io", f"broker-1/orders-0/{segment_name(number)}") for number in (5, 9)
    }


def test_a_directory_named_like_a_segment_is_a_directory(tmp_path: Path) -> None:
    inner = log_dir(tmp_path) / "orders-0" / segment_name(7)
    inner.mkdir()
    assert [one.base_offset for one in plan([str(tmp_path)]).files] == [0]


def test_folders_too_deep_are_named(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (MAX_DEPTH + 2))
    deep.mkdir(parents=True)
    (one,) = plan([str(tmp_path)]).unread
    assert one.reason == "too_deep"


def test_broken_text_files_are_named_and_empty_ones_say_nothing(tmp_path: Path) -> None:
    top = log_dir(tmp_path)
    (top / "replication-offset-checkpoint").write_text("0\n3\norders 0 1\n")
    (top / "recovery-point-offset-checkpoint").write_bytes(b"")
    (top / "meta.properties").write_text("node.id=²\ncluster.id=c\n")
    found = plan([str(tmp_path)])
    assert [one.name for one in found.unread] == ["broker-1/replication-offset-checkpoint"]
    (one,) = found.log_dirs
    assert (one.broker_id, one.has_checkpoints, one.high_watermarks) == (None, False, {})


def test_a_text_beside_log_directories_is_listed_and_takes_nothing_from_them(
    tmp_path: Path,
) -> None:
    log_dir(tmp_path / "copy", 7)
    alone = plan([str(tmp_path / "copy")])
    text = Path(__file__).parents[1] / "dumps" / "03-open-transaction.txt"
    shutil.copy(text, tmp_path / "copy" / "ticket.txt")
    beside = plan([str(tmp_path / "copy")])
    assert (beside.replicas, beside.unread) == (alone.replicas, alone.unread)
    assert any("give it alone" in one.detail for one in beside.skipped)
    assert [one.source for one in plan([str(text)]).replicas] == ["text"]
    with pytest.raises(UsageError, match="one at a time"):
        plan([str(tmp_path / "copy"), str(text)])
