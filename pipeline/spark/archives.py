"""What is in `.tar`, `.tar.gz` and `.zip`: listed here, streamed by the readers, never extracted.

Only regular members count. A name that leaves the archive, a link or a device is told and left
alone. Members, bytes and the ratio of compression are bounded.
"""

from __future__ import annotations

import gzip
import os
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple, cast

from pipeline.spark.files import TAR, TAR_GZ, ZIP, place
from pipeline.wire.errors import WireError
from pipeline.wire.limits import MIB

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
MAX_MEMBERS = 1_000_000
MAX_BYTES = 4 << 40
MAX_RATIO, RATIO_FROM_BYTES = 200, 16 << 30
"""An archive beyond this size must not unpack to more than this many times its own size."""
_HEADER_BYTES = MIB
_STEP_BYTES = MIB
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_TEXTS = ("meta.properties", "partition.metadata")


class Member(NamedTuple):
    """A member of an archive.

    Attributes:
        name: As the archive says, `./` removed; never leaves the archive when `why` is None.
        path: Place for `pipeline.spark.files`; empty when it is not read.
        size: Bytes.
        why: Why it is not read; None for a regular file.
        data: Content of a small text file, read while passing by: going back is expensive.
    """

    name: str
    path: str
    size: int
    why: str | None
    data: bytes | None = None


def is_archive(name: str) -> bool:
    """Whether the name is one of an archive that can be read."""
    return name.lower().endswith(SUFFIXES)


def members(path: str) -> Iterator[Member]:
    """All members in the order of the archive; directories are left out.

    Raises:
        WireError: Beyond a limit, or not an archive, or damaged: what was listed before stands.
        OSError: It cannot be read.
    """
    lower = path.lower()
    found = _zip(path) if lower.endswith(".zip") else _tar(path, not lower.endswith(".tar"))
    total = count = 0
    packed = os.path.getsize(path)
    try:
        for member in found:
            count += 1
            total += member.size
            if count > MAX_MEMBERS:
                raise WireError(f"more than {MAX_MEMBERS} members", "too_large")
            if total > MAX_BYTES or (total > RATIO_FROM_BYTES and total > packed * MAX_RATIO):
                raise WireError(f"unpacks to more than {total} bytes", "too_large")
            yield member
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise WireError(f"a damaged archive ({type(error).__name__})", "bad_length") from None
    except (OverflowError, UnicodeError, NotImplementedError):
        raise WireError("a damaged archive", "bad_length") from None


class _Info(tarfile.TarInfo):
    """A header that may not ask for much memory: long names and attributes are read whole."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> _Info:
        info = super().frombuf(buf, encoding or "utf-8", errors)
        is_extension = info.type in (
            tarfile.XHDTYPE,
            tarfile.XGLTYPE,
            tarfile.SOLARIS_XHDTYPE,
            tarfile.GNUTYPE_LONGNAME,
            tarfile.GNUTYPE_LONGLINK,
        )
        if is_extension and info.size > _HEADER_BYTES:
            raise WireError("a header of more than 1 MiB", "too_large")
        return info


def _tar(path: str, is_packed: bool) -> Iterator[Member]:
    with open(path, "rb") as raw:
        source = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if is_packed else raw
        mode = "r|" if is_packed else "r:"
        with tarfile.open(fileobj=source, mode=mode, tarinfo=_Info) as archive:  # type: ignore[call-overload]  # one of two literals
            while (info := archive.next()) is not None:
                archive.members = []
                if info.isdir():
                    continue
                name, why = _checked(info.name)
                if why is None and (not info.isreg() or info.issparse()):
                    why = "not a regular file"
                if why is not None:
                    yield Member(name, "", info.size, why)
                    continue
                crc, data = _passed(archive, info) if is_packed else (0, None)
                kind = TAR_GZ if is_packed else TAR
                # Digits of one length: the order of places is the order in the archive.
                at = f"{info.offset_data:020d}"
                where = place(kind, at, info.size, f"{crc:08x}", path)
                yield Member(name, where, info.size, None, data)


def _passed(archive: tarfile.TarFile, info: tarfile.TarInfo) -> tuple[int, bytes | None]:
    """CRC-32 of a member, and its bytes when it is one of the small text files of a log directory."""
    crc = 0
    is_text = "." not in posixpath.basename(info.name)[1:] or info.name.endswith(_TEXTS)
    kept = b"" if is_text and info.size <= _HEADER_BYTES else None
    with cast(IO[bytes], archive.extractfile(info)) as stream:
        while data := stream.read(_STEP_BYTES):
            crc = zlib.crc32(data, crc)
            if kept is not None:
                kept += data
    return crc, kept


def _zip(path: str) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for number, info in enumerate(archive.infolist()):
            if info.is_dir():
                continue
            name, why = _checked(info.filename)
            mode = info.external_attr >> 16
            if why is None and mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
                why = "not a regular file"
            if why is None and info.flag_bits & _ENCRYPTED:
                why = "encrypted"
            if why is None and info.compress_type not in _ZIP_METHODS:
                why = "an unusual compression"
            at = place(ZIP, number, info.file_size, f"{info.CRC:08x}", path) if why is None else ""
            yield Member(name, at, info.file_size, why)


def _checked(name: str) -> tuple[str, str | None]:
    """The name without `./`, and why it must not be used."""
    if name.startswith("/") or "\\" in name or ":" in name.split("/", 1)[0]:
        return name, "an absolute or foreign name"
    if "\0" in name or ".." in name.split("/"):
        return name, "a name that leaves the archive"
    return posixpath.normpath(name), None
