"""Archives are read like directories, never extracted; hostile members are told and left alone."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.spark import archives
from pipeline.spark.archives import members
from pipeline.spark.files import opened
from pipeline.spark.plan import plan
from pipeline.spark.tasks import bins, tasks_of
from pipeline.wire.errors import WireError
from tests import pure_audit
from tests.recordings import recording

KINDS = (".tar", ".tar.gz", ".tgz", ".zip")


def pack(target: Path, source: Path, top: str = "logs") -> Path:
    """An archive of a tree, of the kind that its name says."""
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(source.rglob("*")):
                if file.is_file():
                    archive.write(file, f"{top}/{file.relative_to(source)}")
        return target
    with tarfile.open(target, "w" if target.suffix == ".tar" else "w:gz") as archive:
        archive.add(source, arcname=top)
    return target


def what(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("code", "class", "topic", "partition", "producer_id", "first_offset")
    return sorted((tuple(row.get(name) for name in names) for row in rows), key=str)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["06", "19", "10a"])
def test_an_archive_gives_the_findings_of_its_tree(tmp_path: Path, kind: str, name: str) -> None:
    logs = recording(name) / "logs"
    before = {path: path.stat().st_mtime_ns for path in logs.rglob("*")}
    archive = pack(tmp_path / f"copy{kind}", logs)
    assert what(pure_audit.accusations(archive)) == what(pure_audit.accusations(logs))
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]
    assert {path: path.stat().st_mtime_ns for path in logs.rglob("*")} == before


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_of_a_member_is_read_from_anywhere(tmp_path: Path, kind: str) -> None:
    content = bytes(range(256)) * 4000
    source = tmp_path / "t-0"
    source.mkdir()
    for number in range(3):
        (source / f"{number:020d}.log").write_bytes(content[number:])
    found = {one.name: one for one in members(str(pack(tmp_path / f"a{kind}", source, "t-0")))}
    assert len(found) == 3
    for number in (2, 0, 1):
        with opened(found[f"t-0/{number:020d}.log"].path) as file:
            assert file.size == len(content) - number
            for position, length in ((500_000, 300), (10, 5), (1_023_000, 9_999), (0, 2_000_000)):
                assert file.read_at(position, length) == content[number:][position:][:length]


def test_files_of_a_compressed_archive_stay_together_in_order(tmp_path: Path) -> None:
    logs = recording("06") / "logs"
    one = pack(tmp_path / "a.tar.gz", logs)
    two = pack(tmp_path / "b.tgz", logs, "more")
    shares = bins(tasks_of(plan([str(one), str(two)])), 4)
    assert len(shares) == 2
    for share in shares:
        paths = [task.path for task in share]
        assert paths == sorted(paths)


def hostile(kind: str, path: Path) -> None:
    if kind == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name in (
                "../../evil-0/00000000000000000000.log",
                "/abs-0/00000000000000000000.log",
            ):
                archive.writestr(name, b"x")
            link = zipfile.ZipInfo("t-0/00000000000000000000.log")
            link.external_attr = 0o120777 << 16
            archive.writestr(link, "/etc/passwd")
            archive.writestr("ok-0/00000000000000000000.log", b"")
            archive.writestr("inner.zip", b"PK")
        return
    with tarfile.open(path, "w" if kind == ".tar" else "w:gz") as archive:
        for name, form in (
            ("../../evil-0/00000000000000000000.log", tarfile.REGTYPE),
            ("/abs-0/00000000000000000000.log", tarfile.REGTYPE),
            ("t-0/00000000000000000000.log", tarfile.SYMTYPE),
            ("t-0/00000000000000000001.log", tarfile.LNKTYPE),
            ("t-0/00000000000000000002.log", tarfile.CHRTYPE),
            ("t-0/00000000000000000003.log", tarfile.FIFOTYPE),
            ("ok-0/00000000000000000000.log", tarfile.REGTYPE),
            ("inner.zip", tarfile.REGTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = form, "/etc/passwd"
            archive.addfile(info, io.BytesIO())


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_members_are_told_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "in" / f"hostile{kind}"
    path.parent.mkdir()
    hostile(kind, path)
    planned = plan([str(path.parent)])
    assert [(one.topic, one.partition) for one in planned.replicas] == [("ok", 0)]
    assert [(one.name.rsplit("/")[-1], one.reason) for one in planned.skipped] == [
        ("inner.zip", "foreign")
    ]
    assert len(planned.unread) == (3 if kind == ".zip" else 6)
    assert {one.reason for one in planned.unread} == {"io"}
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == [path.name]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_segment_stored_as_a_sparse_member_is_unread(tmp_path: Path, form: int) -> None:
    """As `tar -S` stores segments whose end is preallocated."""
    info = tarfile.TarInfo("copy/t-0/00000000000000000000.log")
    data = b"x" * 4096
    if form == tarfile.GNU_FORMAT:
        info.type = tarfile.GNUTYPE_SPARSE
    else:
        info.pax_headers = {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.name": info.name,
            "GNU.sparse.realsize": str(8 << 20),
        }
        data = b"1\n0\n4096\n".ljust(512, b"\0") + data
    info.size = len(data)
    packed = tmp_path / "copy.tar"
    with tarfile.open(packed, "w", format=form) as archive:
        archive.addfile(info, io.BytesIO(data))
    planned = plan([str(packed)])
    assert [(one.reason, one.detail) for one in planned.unread] == [("io", "not a regular file")]


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_without_a_file_is_unread(tmp_path: Path, kind: str) -> None:
    """Packing that failed leaves one; beside other files nobody would miss what it should hold."""
    (tmp_path / "source" / "t-0").mkdir(parents=True)
    packed = pack(tmp_path / f"copy{kind}", tmp_path / "source")
    planned = plan([str(packed)])
    assert [(one.reason, one.detail) for one in planned.unread] == [
        ("io", "an archive without a file in it: pack it again")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_cut_archives_are_read_as_far_as_they_go(tmp_path: Path, kind: str) -> None:
    whole = pack(tmp_path / f"a{kind}", recording("06") / "logs").read_bytes()
    for share in (0, 10, len(whole) // 3, len(whole) // 2, len(whole) - 3):
        cut = tmp_path / f"cut{kind}"
        cut.write_bytes(whole[:share])
        planned = plan([str(cut)])
        assert planned.unread or planned.files or not planned.replicas


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(tmp_path / "many.tar", "w") as archive:
        for number in range(20):
            archive.addfile(tarfile.TarInfo(f"t-{number}/{0:020d}.log"))
    monkeypatch.setattr(archives, "MAX_MEMBERS", 10)
    (unread,) = plan([str(tmp_path / "many.tar")]).unread
    assert unread.reason == "too_large"
    bomb = tmp_path / "bomb.tar.gz"
    with tarfile.open(bomb, "w:gz") as archive:
        info = tarfile.TarInfo("t-0/00000000000000000000.log")
        info.size = 50 << 20
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    monkeypatch.setattr(archives, "RATIO_FROM_BYTES", 1 << 20)
    with pytest.raises(WireError, match="unpacks to more"):
        list(members(str(bomb)))


def test_a_header_may_not_ask_for_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(WireError, match="a header of more"):
        list(members(str(path)))


def test_archives_of_two_nights_are_two_copies(tmp_path: Path) -> None:
    logs = recording("06") / "logs"
    for night in ("monday", "tuesday"):
        pack(tmp_path / f"{night}.tar.gz", logs)
    planned = plan([str(tmp_path)])
    assert {one.copy for one in planned.replicas} == {0, 1}
    names = {one.copy: one.name.partition("/")[0] for one in planned.replicas}
    assert names == {0: "monday.tar.gz", 1: "tuesday.tar.gz"}


def test_a_member_whose_local_header_is_damaged_is_told(tmp_path: Path) -> None:
    packed = tmp_path / "logs.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("orders-0/00000000000000000000.log", b"x" * 100)
    data = bytearray(packed.read_bytes())
    data[:4] = b"\0\0\0\0"
    packed.write_bytes(data)
    (one,) = members(str(packed))
    with pytest.raises(OSError, match="archive is damaged"), opened(one.path):
        pass
