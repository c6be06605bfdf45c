"""What to do, in pieces: words, and commands to copy."""

from __future__ import annotations

import re
import shlex

from pipeline.report.causes import Finding
from pipeline.text import sanitise

_COMMAND = re.compile(
    r"kafka-[a-z-]+\.sh(?: (?:<host:port>|[A-Za-z0-9._:/=@-]+))+(?=$|[;.)]|:? [A-Za-z(])"
)
_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]*")


def show(finding: Finding, output: str, *, is_private: bool = False) -> str:
    """The command that prints one finding, whole, for a shell.

    Args:
        finding: The finding.
        output: Output root, as it was given.
        is_private: Names are pseudonyms; the name of a folder is not told either.
    """
    root = "DIR" if is_private else shlex.quote(output)
    return f"./spark-submit.sh show {finding['finding_id'][:12]} --output {root}"


def commands(finding: Finding) -> list[str]:
    """Commands of the advice, to be copied: none where an id holds what a shell, or a reader, could take for more."""
    ids = (finding[name] or "" for name in ("topic", "transactional_id", "group_id"))
    if not all(_PLAIN_ID.fullmatch(one) for one in ids):
        return []
    return [found[0].rstrip(".:") for found in _COMMAND.finditer(finding["advice"])]


def pieces(finding: Finding, *, with_commands: bool) -> list[tuple[bool, str]]:
    """The advice in pieces, commands apart from the words between them.

    Args:
        finding: The finding.
        with_commands: Whether there is still something to do.

    Returns:
        Whether it is a command, and the text, without the punctuation that parted the two.
    """
    found: list[tuple[bool, str]] = []
    rest = sanitise(finding["advice"])
    for command in commands(finding) if with_commands else ():
        words, _, rest = rest.partition(command)
        found += [(False, words), (True, command)]
    found.append((False, rest))
    if len(found) == 1:
        return found
    trimmed = [(is_one, text if is_one else text.strip(" ;.()")) for is_one, text in found]
    return [(is_one, text) for is_one, text in trimmed if text]
