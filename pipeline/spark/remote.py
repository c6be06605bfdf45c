"""Listing of log directories in remote storage, by `pyarrow.fs`.

Options are those of its addresses: `s3://bucket/prefix?endpoint_override=host:port&scheme=http&region=r`;
credentials come from the environment, a profile or the instance (`AWS_ACCESS_KEY_ID` and so on).
Credentials in an address work too, and are shown nowhere.
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from pyarrow import ArrowException, fs

from pipeline.errors import UsageError
from pipeline.spark.files import REMOTE, file_system, place
from pipeline.text import redact, sanitise

MAX_FILES = 1_000_000
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SECRET = re.compile(r"(?i)access.?key|denied|forbidden|credential|signature|token")


class RemoteFile(NamedTuple):
    """A file of a listing.

    Attributes:
        folder: Path of its folder below the root; empty for the root itself.
        name: Name in the folder.
        path: Place for `pipeline.spark.files`.
        size: Bytes.
    """

    folder: str
    name: str
    path: str
    size: int


def is_remote(given: str) -> bool:
    """Whether an input is an address, and not a path of this machine."""
    return _SCHEME.match(given) is not None and not given.startswith("file:")


def shown(given: str) -> str:
    """The address as a path: no secret, no options."""
    return redact(given).partition("?")[0].partition("://")[2].rpartition("@")[2].rstrip("/")


def listing(given: str) -> list[RemoteFile]:
    """All files below an address, by path.

    Raises:
        UsageError: An address that cannot be used: unknown scheme, no such bucket or folder, no
            credentials, too many files. The message holds no secret.
    """
    address = sanitise(redact(given))
    scheme = given.split("://", 1)[0]
    try:
        system, root = file_system(given)
    except (ArrowException, OSError, ValueError):
        raise UsageError(
            f"input {address}: {sanitise(scheme)}:// cannot be read here; known are s3:// and what "
            "pyarrow.fs reads (gs://, abfs://, hdfs://), each with its own settings"
        ) from None
    try:
        found = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        if not found:
            found = [system.get_file_info(root)]
    except (ArrowException, OSError) as error:
        raise UsageError(f"input {address}: {_reason(str(error))}") from None
    files = [one for one in found if one.type == fs.FileType.File]
    if not files:
        raise UsageError(f"input {address}: there is no such bucket or folder, or nothing is in it")
    if len(files) > MAX_FILES:
        raise UsageError(f"input {address}: more than {MAX_FILES} files; name a folder below it")
    return sorted(_file(given, root, one) for one in files)


def _file(given: str, root: str, info: fs.FileInfo) -> RemoteFile:
    inside = posixpath.relpath(info.path, root)
    folder, name = ("", info.base_name) if inside == "." else posixpath.split(inside)
    changed = f"{info.size}-{info.mtime_ns}"
    return RemoteFile(folder, name, place(REMOTE, changed, given, info.path), info.size)


def _reason(message: str) -> str:
    """What a person can do about an error of the storage; its own text may hold what was sent."""
    if "NO_SUCH_BUCKET" in message or "NoSuchBucket" in message or "404" in message:
        return "there is no such bucket or folder"
    if _SECRET.search(message):
        return "access was refused: check credentials (AWS_ACCESS_KEY_ID, AWS_PROFILE) and rights"
    if "network" in message.lower() or "connect" in message.lower() or "resolve" in message.lower():
        return "the storage does not answer: check endpoint_override, region and network"
    return "the storage refused the request"
