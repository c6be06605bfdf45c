"""Whether a copy is whole: archives and trees say the same, what cannot be told is never clean."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs import doctor
from pipeline.errors import UsageError
from pipeline.report.completeness import CHECKPOINT, PROPERTIES, Gap, Untold, gaps
from pipeline.spark.exports import COLUMNS
from pipeline.spark.plan import plan
from tests.recordings import recording
from tests.unit.test_archives import KINDS, pack

DUMPS = Path(__file__).resolve().parent.parent / "dumps"


def told(path: Path) -> list[Gap]:
    found = gaps(str(path))
    assert isinstance(found, list)
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A whole copy that a test may spoil."""
    return Path(shutil.copytree(recording("06") / "logs", tmp_path / "logs"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_says_what_its_tree_says(copy: Path, tmp_path: Path, kind: str) -> None:
    assert told(pack(tmp_path / f"whole{kind}", copy)) == told(copy) == []
    for partition in copy.rglob("h-topic-1"):
        shutil.rmtree(partition)
    for checkpoint in copy.rglob(PROPERTIES):
        checkpoint.unlink()
    from_tree, packed = told(copy), told(pack(tmp_path / f"poor{kind}", copy))
    assert [one[1:] for one in packed] == [one[1:] for one in from_tree]
    said = " ".join(one.what for one in packed)
    assert "h-topic-1 is absent, its high watermark is" in said
    assert f"no {PROPERTIES}" in said
    assert packed[0].folder.startswith(str(tmp_path / f"poor{kind}"))


def test_what_cannot_be_read_is_named_once(copy: Path) -> None:
    for checkpoint in copy.rglob(CHECKPOINT):
        checkpoint.write_bytes(b"\xff\xff")
    (only,) = told(copy)
    assert only.folder.endswith(CHECKPOINT)
    assert only.what.startswith("it cannot be read (")


def test_a_copy_without_any_coordinator(copy: Path) -> None:
    for partition in [*copy.rglob("__transaction_state-*")]:
        shutil.rmtree(partition)
    assert "no partition of __transaction_state" in told(copy)[-1].what


def export(folder: Path) -> Path:
    folder.mkdir()
    values = {name: pa.array([b"x"]) for name in ("key", "value")}
    values |= {"topic": pa.array(["__transaction_state"]), "partition": pa.array([0], pa.int32())}
    values |= {"offset": pa.array([0]), "timestamp": pa.array([0], pa.timestamp("ms"))}
    pq.write_table(pa.table({name: values[name] for name in COLUMNS}), folder / "part-0.parquet")
    return folder


def test_texts_and_exports_cannot_be_looked_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (DUMPS / "01-commit.txt", export(tmp_path / "export")):
        found = gaps(str(path))
        assert isinstance(found, Untold)
        assert doctor.run([str(path)], str(tmp_path / "out")) in (2, 3), "never clean"
        assert re.search(
            r"unsure copy .*: cannot be looked over before the run: an? ", capsys.readouterr().out
        )


def test_the_plan_tells_the_bytes_of_each_input(copy: Path, tmp_path: Path) -> None:
    small = recording("07") / "logs"
    both = plan([str(copy), str(small)])
    assert both.input_bytes == (*plan([str(copy)]).input_bytes, *plan([str(small)]).input_bytes)
    assert sum(both.input_bytes) == sum(one.size for one in both.files)


def test_an_input_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        gaps(str(tmp_path / "nothing"))
