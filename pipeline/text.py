r"""The one sanitiser between text that a stranger controls and every sink.

Transactional, group and client ids, host names, file names and checkpoint text come out of copied
files and may hold terminal escapes, line breaks or characters that reorder what a person reads.
Here they become visible ``\xNN`` text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

_SAFE_ASCII = re.compile(r"[\x20-\x7e]*")
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SECRET_PARAMETER = re.compile(
    r"(?i)\b([\w.-]*(?:secret|token|password|passwd|credential|access[._-]?key)[\w.-]*)=[^\s&]+"
)


@lru_cache(maxsize=4096)
def _visible(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE_CATEGORIES:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def sanitise(text: str) -> str:
    r"""Make every character that a terminal, log or page could act on visible.

    Control characters (C0, DEL, C1), format and bidirectional characters, line and paragraph
    separators, private and unassigned code points and lone surrogates become ``\xNN`` of their
    UTF-8 bytes. A backslash stays as it is, so sanitising twice changes nothing.

    Args:
        text: anything.

    Returns:
        Text that holds printable characters only.
    """
    if _SAFE_ASCII.fullmatch(text):
        return text
    return "".join(_visible(character) for character in text)


def redact(text: str) -> str:
    """Remove secrets from an address or a command line argument.

    Args:
        text: for instance ``s3://key:secret@bucket/path`` or ``fs.s3a.secret.key=abc``.

    Returns:
        The same with user information and the values of secret-looking parameters replaced by
        ``***``.
    """
    without_values = _SECRET_PARAMETER.sub(r"\1=***", text)
    scheme, separator, rest = without_values.partition("://")
    if not separator or "@" not in rest.partition("/")[0]:
        return without_values
    parts = urlsplit(without_values)
    return (
        urlunsplit(parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]))
        if scheme
        else without_values
    )


def typed(words: Sequence[str], *, is_private: bool = False) -> list[str]:
    """A command line, fit to be shown.

    Args:
        words: what was typed behind the program.
        is_private: values of options and paths are hidden as well.
    """
    if not is_private:
        return ["spark-submit.sh", *map(redact, words)]
    shown = [
        word.partition("=")[0] + ("=***" if "=" in word else "") if word.startswith("--") else "***"
        for word in words
    ]
    return ["spark-submit.sh", *shown]


def plural(count: int, one: str, many: str = "") -> str:
    """The word that fits a number.

    Args:
        count: how many.
        one: the word for one.
        many: the word for any other number; default `one` with an s.
    """
    return one if count == 1 else many or f"{one}s"


def counted(count: int, one: str, many: str = "") -> str:
    """A number with the word that fits it: `1 batch`, `2,000 batches`."""
    return f"{count:,} {plural(count, one, many)}"


def nearest(word: str, known: list[str]) -> str:
    """Suggest the known name that a mistyped one probably meant.

    Args:
        word: what was written.
        known: the names that exist.

    Returns:
        ``" (did you mean 'x'?)"``, or nothing when no name is close.
    """
    import difflib

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
