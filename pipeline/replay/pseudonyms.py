"""Pseudonyms of transactional ids, groups, members and folders: the same for the same name and key.

HMAC-SHA256 under a secret key, so that nobody without the key can try likely names. What rules ask of an id stays:
its application is recognised as before, and it belongs to the same partition of `__transaction_state`.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import pairwise, product

from pipeline.replay.application import application_at
from pipeline.wire.log_dir import parse_file, parse_name, partition_for

_SHAPES = re.compile(
    r"(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<hex>[0-9a-f]{32})|(?P<long>\d{5,})|(?P<short>\d{1,4})|(?P<word>[^-_.\d]+)|(?P<mark>[-_.])"
)
_STREAMS_TOPIC = re.compile(
    r"(?P<name>.+)-(?P<what>changelog|repartition|subscription-(?:registration|response)-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic)"
)
"""Topics that Kafka Streams names `<application.id>-...`, and an application.id is a group."""
_PARTITION_FILE = "partition.metadata"
_ENDING = 4
_UUID_CUTS = (0, 8, 12, 16, 20, 32)
_DIGITS, _LETTERS = "0123456789", "ghijklmnopqrstuvwxyz"
_FILES = frozenset(
    {
        "cleaner-offset-checkpoint", "leader-epoch-checkpoint", "log-start-offset-checkpoint",
        "meta.properties", "partition.metadata", "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint", ".kafka_cleanshutdown",
    }
)  # fmt: skip


class Pseudonyms:
    """Gives each name its pseudonym.

    Args:
        key: The secret.
        pattern: `health.application_pattern` of the settings.
        counts: Numbers of partitions of `__transaction_state` that ids are held against.
    """

    def __init__(
        self, key: bytes, pattern: str | None = None, counts: Collection[int] = ()
    ) -> None:
        self._key = key
        self._pattern = pattern
        self.counts = tuple(sorted(set(counts)))
        self.transactional_id = lru_cache(maxsize=1 << 16)(self._transactional_id)
        self.name = lru_cache(maxsize=1 << 16)(self._name)

    def __reduce__(self) -> tuple[type[Pseudonyms], tuple[object, ...]]:
        """Travels to the tasks without its caches."""
        return Pseudonyms, (self._key, self._pattern, self.counts)

    def key_name(self) -> str:
        """What tells two keys apart without telling them."""
        return self._digest("the key itself", 8)

    def number(self, known: int) -> int:
        """Signed 64-bit number in place of a hash that likely names could be tried against."""
        return int.from_bytes(bytes.fromhex(self._digest(str(known), 16)), "big", signed=True)

    def _digest(self, text: str, digits: int) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, data, "sha256").hex()[:digits]

    def _name(self, text: str) -> str:
        """A group, a member or an application."""
        return f"id{self._digest(text, 16)}" if text else ""

    def _transactional_id(self, text: str) -> str:
        """A transactional id: application and the form of what follows it can be recognised."""
        if not text:
            return ""
        found = application_at(text, self._pattern)
        if found is None:
            return self._at_home(text, self.name(text), _LETTERS)
        start, end, is_own = found
        name = self.name(text[start:end])
        if is_own:
            return self._at_home(text, f"{name}-{self._number(text)}", _DIGITS)
        if end == len(text):
            return self._at_home(text, text[:start] + name, _LETTERS)
        rest = "".join(self._shaped(part) for part in _SHAPES.finditer(text, end))
        last = "" if _ends_in_number(text, end) else "."
        return self._at_home(text, text[:start] + name + rest + last, _DIGITS)

    def _number(self, text: str) -> str:
        return str(10**17 + int(self._digest(text, 14), 16))

    def _shaped(self, part: re.Match[str]) -> str:
        kind, text = part.lastgroup, part[0]
        if kind == "uuid":
            digest = self._digest(text, 32)
            cuts = pairwise(_UUID_CUTS)
            return "-".join(digest[start:end] for start, end in cuts)
        if kind == "hex":
            return self._digest(text, 32)
        if kind == "long":
            return self._number(text)
        return f"id{self._digest(text, 8)}" if kind == "word" else text

    def _at_home(self, text: str, pseudonym: str, alphabet: str) -> str:
        """Adds an ending that leaves the id in its partition of `__transaction_state`."""
        homes = [partition_for(text, count) for count in self.counts]
        for ending in _endings(alphabet):
            candidate = pseudonym + ending
            if [partition_for(candidate, count) for count in self.counts] == homes:
                return candidate
        return pseudonym + alphabet[0] * _ENDING

    def topic(self, text: str) -> str:
        """Topics keep their names, but for those that Kafka Streams named after a group."""
        found = _STREAMS_TOPIC.fullmatch(text)
        return f"{self.name(found['name'])}-{found['what']}" if found else text

    def partitions(self, text: str) -> str:
        """A list `topic NUL partition`, joined by 0x01, as `bronze.txn_state` has it."""
        pairs = [one.partition("\x00") for one in text.split("\x01")] if text else []
        return "\x01".join(sorted(f"{self.topic(topic)}\x00{number}" for topic, _, number in pairs))

    def path(self, text: str) -> str:
        """A path of a file or folder below the input: Kafka's own names stay, others may name hosts."""
        parts = re.split(r"([/!])", text)
        after = [*parts[2::2], ""]
        parts[::2] = [
            self.folder(one) if _is_in_partition(following) else self._component(one)
            for one, following in zip(parts[::2], after, strict=True)
        ]
        return "".join(parts)

    def partition_path(self, text: str) -> str:
        """A path of a partition's directory below the input."""
        return self.path(f"{text}/{_PARTITION_FILE}").removesuffix(f"/{_PARTITION_FILE}")

    def folder(self, text: str) -> str:
        """The name of a partition's directory."""
        partition = parse_name(text)
        if partition is None:
            return self._component(text)
        return self.topic(partition.topic) + text[len(partition.topic) :]

    def _component(self, text: str) -> str:
        if text in ("", ".") or text in _FILES or parse_file(text) is not None:
            return text
        return f"d{self._digest(text, 8)}"


def _is_in_partition(file: str) -> bool:
    return file in (_PARTITION_FILE, "leader-epoch-checkpoint") or parse_file(file) is not None


def _endings(alphabet: str) -> Iterator[str]:
    lengths = (_ENDING, _ENDING + 1, _ENDING + 2)
    return ("".join(some) for length in lengths for some in product(alphabet, repeat=length))


def _ends_in_number(text: str, start: int) -> bool:
    """Whether what follows the application ends in a number, and not in a UUID."""
    return [part.lastgroup for part in _SHAPES.finditer(text, start)][-1] in ("long", "short")
