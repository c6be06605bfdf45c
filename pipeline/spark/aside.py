"""Files and folders that are listed instead of read: foreign ones, and those that could not be read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from pipeline.spark.found import File, Partition
from pipeline.spark.inventory import Skipped
from pipeline.wire.errors import WireError
from pipeline.wire.log_dir import parse_file

NO_REASON = "cannot be read"


class Aside:
    """What a walk leaves aside.

    Attributes:
        skipped: What is no file of a log.
        unread: What could not be read, so that what it held is unknown and no audit passes.
    """

    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self.unread: list[Skipped] = []

    def foreign(self, file: File, why: str) -> None:
        """A file that is none of a log."""
        self.skipped.append(Skipped(file.name, "foreign", why, file.size))

    def irregular(self, name: str, base_name: str, why: str, size: int) -> None:
        """What is no regular file; a segment's content is unknown then."""
        parsed = parse_file(base_name)
        if parsed is not None and parsed.kind == "log" and not parsed.suffix:
            self.unread.append(Skipped(name, "io", why, size))
        else:
            self.skipped.append(Skipped(name, "foreign", why, size))

    def partitions(
        self, left: Sequence[Partition], why: str, reason: str, texts: Collection[str]
    ) -> None:
        """Partitions that must not be read; what was doubtful about texts does not matter any more."""
        for one in left:
            for file in one.files.values():
                self.skipped.append(Skipped(file.name, reason, f"{one.source} {why}", file.size))
        self.unread = [one for one in self.unread if one.name not in texts]

    @contextmanager
    def noted(self, name: str, size: int = 0) -> Iterator[None]:
        """Lists a file or folder that cannot be read, and goes on behind the block."""
        try:
            yield
        except WireError as error:
            self.unread.append(Skipped(name, error.reason, str(error), size))
        except OSError as error:
            self.unread.append(Skipped(name, "io", error.strerror or NO_REASON))
