"""Files of the input by their place: on this machine, inside an archive, or in remote storage.

A place is text that travels to the tasks. A plain path is a local file; others begin with a kind
and a NUL, which no path holds. What is compressed can only be read forwards: of such a file a
window is kept, so that memory is bounded whatever its size.
"""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import IO, Protocol, cast

from pyarrow import ArrowException, fs

from pipeline.wire.errors import WireError
from pipeline.wire.limits import DEFAULT_LIMITS, MIB, Limits

MARK = "\0"
TAR, TAR_GZ, ZIP, REMOTE, TEXT, EXPORT = "tar", "tar.gz", "zip", "remote", "text", "export"
_WINDOW_BYTES = 32 * MIB
_STEP_BYTES = 4 * MIB


class Opened(Protocol):
    """A file that can be read at any position.

    Attributes:
        size: Bytes.
        version: Changes when the file is written to; None where nothing tells.
    """

    size: int

    @property
    def version(self) -> object: ...
    def read_at(self, position: int, length: int) -> bytes:
        """Bytes at a position, fewer only at the end; `OSError` when they cannot be read."""


def place(kind: str, *parts: object) -> str:
    """The text that names a file of this kind."""
    return MARK.join((kind, *map(str, parts)))


def kind_of(path: str) -> str | None:
    """Kind of a place; None for a local file."""
    return path.split(MARK, 1)[0] if MARK in path else None


def is_forward_only(path: str) -> bool:
    """Whether only reading from the beginning is cheap."""
    return kind_of(path) in (TAR_GZ, ZIP)


def stream_of(path: str) -> str | None:
    """What files have to be read together, in the order of their places, to be read once."""
    return path.rsplit(MARK, 1)[1] if kind_of(path) == TAR_GZ else None


def digest_of(path: str) -> str | None:
    """Checksum that the archive, or the listing, gave for a file that is expensive to open."""
    kind = kind_of(path)
    if kind == REMOTE:
        return path.split(MARK)[1]
    return path.split(MARK)[3] if kind in (TAR_GZ, ZIP, EXPORT) else None


@contextmanager
def opened(path: str) -> Iterator[Opened]:
    """Opens a file.

    Raises:
        OSError: It cannot be read, or is not what its place says.
    """
    kind = kind_of(path)
    if kind is None:
        with open(path, "rb", buffering=0) as stream:
            yield _Local(stream.fileno(), 0, None)
        return
    if kind == REMOTE:
        _, _, address, key = path.split(MARK)
        with _remote_errors(), file_system(address)[0].open_input_file(key) as source:
            yield _Remote(source)
        return
    _, offset, size, _, archive = path.split(MARK)
    if kind in (TAR, TEXT):
        with open(archive, "rb", buffering=0) as stream:
            yield _Local(stream.fileno(), int(offset), int(size))
    elif kind == TAR_GZ:
        yield _Forward(cast(IO[bytes], _gzip(archive)), int(offset), int(size))
    else:
        with _member(archive, int(offset)) as member:
            yield _Forward(member, 0, int(size))


def _member(archive: str, number: int) -> IO[bytes]:
    """A member of a zip archive; its local header may say something else than the directory at the end."""
    try:
        return _zip(archive).open(_zip(archive).infolist()[number])
    except (zipfile.BadZipFile, IndexError, NotImplementedError, RuntimeError, zlib.error):
        raise OSError("the archive is damaged here") from None


def read_bounded(path: str, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """All bytes of a small file.

    Raises:
        WireError: `too_large`, before memory is taken for it.
        OSError: it cannot be read.
    """
    limit = limits.max_sidecar_bytes
    with opened(path) as file:
        if file.size > limit:
            raise WireError(f"more than {limit} bytes", "too_large")
        return file.read_at(0, file.size)


class _Local:
    def __init__(self, descriptor: int, start: int, size: int | None) -> None:
        self._descriptor = descriptor
        self._start = start
        self.size = os.fstat(descriptor).st_size if size is None else size

    @property
    def version(self) -> object:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    def read_at(self, position: int, length: int) -> bytes:
        length = max(min(length, self.size - position), 0)
        return os.pread(self._descriptor, length, self._start + position)


class _Remote:
    version = None

    def __init__(self, source: fs.NativeFile) -> None:
        self._source = source
        self.size = source.size()

    def read_at(self, position: int, length: int) -> bytes:
        with _remote_errors():
            length = max(min(length, self.size - position), 0)
            return cast(bytes, self._source.read_at(length, position))


class _Forward:
    """A window over what is decompressed; going back further begins anew, which is slow and right."""

    version = None

    def __init__(self, stream: IO[bytes], start: int, size: int) -> None:
        self._stream = stream
        self._start = start
        self.size = size
        self._window = bytearray()
        self._window_at = 0

    def read_at(self, position: int, length: int) -> bytes:
        end = min(position + length, self.size)
        try:
            if position < self._window_at or position > self._window_at + len(self._window):
                self._window.clear()
                self._window_at = position
            self._fill(position, end)
        except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, NotImplementedError):
            raise OSError("the archive is damaged here") from None
        at = position - self._window_at
        return bytes(self._window[at : at + max(end - position, 0)])

    def _fill(self, position: int, end: int) -> None:
        while (reached := self._window_at + len(self._window)) < end:
            if self._stream.tell() != self._start + reached:
                self._stream.seek(self._start + reached)
            more = self._stream.read(min(_STEP_BYTES, self.size - reached))
            if not more:
                break
            self._window += more
            surplus = min(len(self._window) - _WINDOW_BYTES, position - self._window_at)
            if surplus > 0:
                del self._window[:surplus]
                self._window_at += surplus


@lru_cache(maxsize=2)
def _gzip(path: str) -> gzip.GzipFile:
    """One stream an archive: its files are read in the order in which they lie in it."""
    return gzip.GzipFile(path)


@lru_cache(maxsize=2)
def _zip(path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise OSError(str(error)) from None


@lru_cache(maxsize=8)
def file_system(address: str) -> tuple[fs.FileSystem, str]:
    """The remote file system of an address, and the path in it.

    Raises:
        ArrowException: No address that `pyarrow.fs` knows.
    """
    system, path = fs.FileSystem.from_uri(address)
    return system, path


@contextmanager
def _remote_errors() -> Iterator[None]:
    """Arrow's own errors as `OSError`, without the address: it may hold a secret."""
    try:
        yield
    except ArrowException as error:
        raise OSError(f"{type(error).__name__} of the remote storage") from None
