"""Finding folders and files below the inputs: nothing is written, only regular files are opened."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Sequence
from typing import TypeVar

from pipeline.spark import archives, exports, remote, text_input
from pipeline.spark.aside import NO_REASON, Aside
from pipeline.spark.files import kind_of, read_bounded
from pipeline.spark.found import (
    CHECKPOINTS,
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    File,
    Partition,
    labelled,
)
from pipeline.spark.inventory import EXPORT, LOG, TEXT, Skipped
from pipeline.text import sanitise
from pipeline.wire.log_dir import parse_file, parse_name
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

_FOLDER_FILES = frozenset(
    {*CHECKPOINTS, META_PROPERTIES, CLEAN_SHUTDOWN, ".lock", "bootstrap.checkpoint"}
)
_PARTITION_FILES = frozenset({"partition.metadata", "leader-epoch-checkpoint", "quorum-state"})
MAX_DEPTH = 64
Decoded = TypeVar("Decoded")


class Walk:
    """Collects directories; each is entered once, whatever symbolic links lead to it.

    Attributes:
        folders: Path -> (name, files by name) of directories with files of a whole log directory.
        aside: What is listed instead of read.
    """

    def __init__(self) -> None:
        self._partitions: dict[str, Partition] = {}
        self.folders: dict[str, tuple[str, dict[str, File]]] = {}
        self.aside = Aside()
        self._texts: set[str] = set()
        self._entered: set[tuple[int, int]] = set()
        self._base = ""
        self._root = 0
        self._label = ""

    @property
    def partitions(self) -> list[Partition]:
        """Directories with files of a segment, in the order in which they were found."""
        return list(self._partitions.values())

    def root(self, path: str, number: int, label: str = "") -> None:
        """Walks one input: a tree, a partition directory, or a single file.

        Args:
            path: Where it lies.
            number: Its place among the inputs.
            label: What its names begin with, where there are several inputs.
        """
        self._root = number
        self._label = label
        self._base = path if os.path.isdir(path) else os.path.dirname(path)
        if os.path.isdir(path):
            self._directory(path, 0)
            self._set_misnamed_aside()
            return
        with os.scandir(self._base) as entries:
            chosen = [entry for entry in entries if entry.name == os.path.basename(path)]
        if _identity(self._base) not in self._entered:
            files = [entry for entry in chosen if self._kind(entry) == "file"]
            self._add(self._base, self._listed(files))

    def _set_misnamed_aside(self) -> None:
        """Logs beside partitions in a folder that no broker named (`orders-0.bak`) stay unjudged.

        Whose they are nobody can tell; judged as a topic of their own, everything in them would be accused.
        """
        named = {
            os.path.dirname(one) for one in self._partitions if parse_name(os.path.basename(one))
        }
        for path, one in list(self._partitions.items()):
            is_misnamed = one.source == LOG and parse_name(os.path.basename(path)) is None
            if is_misnamed and os.path.dirname(path) in named:
                del self._partitions[path]
                why = "its name is not TOPIC-PARTITION: take it out, or give it alone"
                size = sum(file.size for file in one.files.values())
                self.aside.unread.append(Skipped(one.name, "io", why, size))

    def _directory(self, path: str, depth: int) -> None:
        try:
            identity = _identity(path)
            with os.scandir(path) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._unread(path, "io", error.strerror or NO_REASON)
            return
        if identity in self._entered:
            return
        self._entered.add(identity)
        kinds = [(entry, self._kind(entry)) for entry in entries]
        self._add(path, self._listed([entry for entry, kind in kinds if kind == "file"]))
        for entry, kind in kinds:
            if kind == "dir" and depth == MAX_DEPTH:
                self._unread(entry.path, "too_deep", f"more than {MAX_DEPTH} folders deep")
            elif kind == "dir" and entry.name != "_delta_log":
                self._directory(entry.path, depth + 1)

    def _kind(self, entry: os.DirEntry[str]) -> str | None:
        """Kind of a file, symbolic links followed; FIFOs, sockets and devices are never opened."""
        try:
            mode = entry.stat().st_mode
        except OSError as error:
            self._unread(entry.path, "io", error.strerror or NO_REASON)
            return None
        if stat.S_ISDIR(mode):
            return "dir"
        if stat.S_ISREG(mode):
            return "file"
        self.aside.irregular(self._name(entry.path), entry.name, "not a regular file", 0)
        return None

    def remote(self, given: str, number: int, label: str = "") -> None:
        """Takes what a listing of remote storage holds, as if it were a tree of this machine."""
        self._root = number
        self._label = label
        self._base = ""
        base = given.partition("?")[0].rstrip("/").rpartition("/")[2] or "remote"
        folders: dict[str, dict[str, File]] = {}
        for one in remote.listing(given):
            name = labelled(label, sanitise(posixpath.join(one.folder, one.name)))
            folders.setdefault(one.folder, {})[one.name] = File(one.path, name, one.size)
        for folder, files in folders.items():
            path = f"{given.partition('://')[0]}!{number}/{base}/{folder}".rstrip("/")
            self._add(path, files, sanitise(folder or base))

    def _add(self, path: str, files: dict[str, File], name: str | None = None) -> None:
        """Takes the files of a directory; it is a partition when one of them is of a segment."""
        wanted: dict[str, File] = {}
        if self._export(path, files):
            files = {one: file for one, file in files.items() if not one.endswith(".parquet")}
        for base_name, file in files.items():
            if parse_file(base_name) is not None or base_name in _PARTITION_FILES:
                wanted[base_name] = file
            elif base_name not in _FOLDER_FILES:
                self._other(path, base_name, file)
        listed = {one: file for one, file in files.items() if one in _FOLDER_FILES}
        if listed:
            known_name, known_files = self.folders.get(
                path, (labelled(self._label, name or self._place(path)), {})
            )
            self.folders[path] = (known_name, known_files | listed)
        if any(parse_file(one) for one in wanted):
            self._partition(path, wanted, name)

    def _partition(
        self, path: str, files: dict[str, File], name: str | None = None, source: str = LOG
    ) -> None:
        parsed = parse_name(os.path.basename(path))
        log_dir = path if parsed is None else os.path.dirname(path)
        log_dir_name = self._place(log_dir) if name is None else ""
        if name is not None:
            log_dir_name = name if parsed is None else os.path.dirname(name) or "."
        topic = parsed.topic if parsed else sanitise(os.path.basename(path)) or "unknown"
        partition, suffix = (parsed.partition, parsed.suffix) if parsed else (0, "")
        known = self._partitions.get(path)
        self._partitions[path] = Partition(
            path,
            self._place(path) if name is None else name,
            self._root,
            log_dir,
            log_dir_name,
            topic,
            partition,
            suffix,
            files if known is None else known.files | files,
            self._label,
            source,
        )

    def _other(self, path: str, base_name: str, file: File) -> None:
        """A file that is none of a log by its name: an archive, a dump, or foreign."""
        if archives.is_archive(base_name):
            if kind_of(file.path) is None:
                self._archive(path, base_name, file)
            else:
                self.aside.foreign(file, "an archive inside an archive or in remote storage")
        elif kind_of(file.path) is None and self._text(path, base_name, file):
            return
        else:
            self.aside.foreign(file, "not a file of a log")

    def leave_out(self, partitions: Sequence[Partition], why: str, reason: str = "foreign") -> None:
        """Lists partitions that must not be read, and forgets what was doubtful about them."""
        for one in partitions:
            del self._partitions[one.path]
        self.aside.partitions(partitions, why, reason, self._texts)

    def _archive(self, path: str, base_name: str, file: File) -> None:
        """Members by folder, as if the archive were one."""
        folders: dict[str, dict[str, File]] = {}
        is_empty = True
        with self.aside.noted(file.name, file.size):
            for one in archives.members(file.path):
                is_empty = False
                name = f"{file.name}/{sanitise(one.name)}"
                folder, base = posixpath.split(one.name)
                if one.why is not None:
                    self.aside.irregular(name, base, one.why, one.size)
                    continue
                folders.setdefault(folder, {})[base] = File(one.path, name, one.size, one.data)
            if is_empty:
                why = "an archive without a file in it: pack it again"
                self.aside.unread.append(Skipped(file.name, "io", why, file.size))
        stem = base_name
        for suffix in archives.SUFFIXES:
            stem = stem.removesuffix(suffix)
        for folder, files in folders.items():
            # Files at the top of an archive are in a folder that has its name.
            inside = folder or stem
            where = self._place(file.path)
            name = f"{where}/{sanitise(folder)}" if folder else where
            self._add(f"{path}/{base_name}!/{inside}", files, name)

    def _text(self, path: str, base_name: str, file: File) -> bool:
        """Takes a text with dumps in it; False when it is none."""
        with self.aside.noted(file.name, file.size):
            sections = text_input.sections(file.path, file.size)
            if sections is not None:
                self._dumps(path, base_name, file, sections)
            return sections is not None
        return True

    def _dumps(self, path: str, base_name: str, file: File, sections: text_input.Sections) -> None:
        self._texts.add(file.name)
        for one in sections.dumps:
            place = f"{path}/{base_name}!{one.number}"
            name = f"{file.name}: {one.partition}/{one.base_name}"
            dumped = File(one.path, name, one.size)
            where = self._place(file.path)
            self._partition(f"{place}/{one.partition}", {one.base_name: dumped}, where, TEXT)
        self.aside.unread += [
            Skipped(file.name, reason, detail, file.size) for reason, detail in sections.doubts
        ]

    def _export(self, path: str, files: dict[str, File]) -> bool:
        """Takes a folder of Parquet files that Spark's Kafka source could have given."""
        first = min((one for one in files if one.endswith(".parquet")), default=None)
        if first is None or kind_of(files[first].path) is not None:
            return False
        where = self._place(path)
        if not exports.is_export(files[first].path):
            return False
        with self.aside.noted(self._name(path)):
            if not {os.path.basename(one) for one in exports.active_files(path)} <= set(files):
                return False  # One file of several was given.
            for topic, number, at, size in exports.partitions(path):
                name = labelled(self._label, f"{where}/{sanitise(topic)}-{number}")
                if topic in (TXN_TOPIC, OFFSETS_TOPIC):
                    exported = {f"{0:020d}.log": File(at, name, size)}
                    self._partition(f"{path}!/{topic}-{number}", exported, where, EXPORT)
                else:
                    self.aside.foreign(
                        File(at, name, 0), "an export of a user topic: values tell nothing"
                    )
        return True

    def _listed(self, entries: list[os.DirEntry[str]]) -> dict[str, File]:
        return {entry.name: self._file(entry) for entry in entries}

    def _file(self, entry: os.DirEntry[str]) -> File:
        return File(entry.path, self._name(entry.path), entry.stat().st_size)

    def _name(self, path: str) -> str:
        return labelled(self._label, self._place(path))

    def _place(self, path: str) -> str:
        return sanitise(os.path.relpath(path, self._base))

    def _unread(self, path: str, reason: str, detail: str) -> None:
        self.aside.unread.append(Skipped(self._name(path), reason, detail))

    def read(self, file: File, decode: Callable[[bytes], Decoded]) -> Decoded | None:
        """Decodes a small file; None, and a note, when that fails; None when it is still empty."""
        with self.aside.noted(file.name):
            data = read_bounded(file.path) if file.data is None else file.data
            return decode(data) if data else None
        return None


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
