"""Runs the commands of `docs/faq.md` and puts what they print below them: `python -m docs.answers`.

A block that begins with `$ ` holds commands and their output. A comment `<!-- lines 1-12, 20 -->` above it says
which lines of the output the page shows; left-out ones are `...`. Tests compare the page with what it would be.
"""

from __future__ import annotations

import io
import re
import shlex
import tempfile
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

from pyspark.sql import SparkSession

from docs import ask
from jobs import show
from pipeline import audit, catalog
from pipeline.config import Config
from pipeline.spark import session

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "faq.md"
BLOCK = re.compile(
    r"(?P<head>(?:<!-- lines (?P<lines>[\d, -]+) -->\n)?```console\n)"
    r"\$ (?P<command>[^\"\n]*(?:\"[^\"]*\")?[^\"\n]*)\n(?P<said>[\s\S]*?)```"
)

PREPARED = re.compile(r"^for each in (.*); do$", re.MULTILINE)
"""Numbers of the recordings that the page audits first."""


class Answers:
    """Runs commands of the page within one session; each audit once.

    Args:
        spark: The session.
        root: Where outputs go in place of the page's `audits`.
    """

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self._spark, self._root = spark, root
        self._opened = ""

    def page(self, text: str) -> str:
        """The page with the output of now."""
        commands = {found["command"] for found in BLOCK.finditer(text)}
        # Those of one output one after the other: its tables are opened once.
        said = {one: self.run(one) for one in sorted(commands)}

        def block(found: re.Match[str]) -> str:
            lines = _chosen(said[found["command"]], found["lines"])
            shown = "".join(f"{line}\n" for line in lines)
            return f"{found['head']}$ {found['command']}\n{shown}```"

        return BLOCK.sub(block, text)

    def run(self, command: str) -> list[str]:
        """What a command prints.

        Raises:
            ValueError: a command of a kind that the page does not use.
        """
        words = [
            str(self._root / one.removeprefix("audits/")) if one.startswith("audits/") else one
            for one in shlex.split(command)
        ]
        options = dict(pairwise(words))
        if words[:2] == ["./spark-submit.sh", "--input"]:
            audit.run(
                self._spark, Config(inputs=(str(ROOT / words[2]),), output=options["--output"])
            )
            return []
        if words[:2] == ["./spark-submit.sh", "show"]:
            printed = io.StringIO()
            with redirect_stdout(printed):
                show.run(words[2], options["--output"])
            return printed.getvalue().splitlines()
        if words[1:3] == ["-m", "docs.ask"]:
            if words[3] != self._opened:
                catalog.open_tables(self._spark, words[3])
                self._opened = words[3]
            known = ask.queries()
            return ask.rows(self._spark, known[int(words[4])] if words[4].isdigit() else words[4])
        raise ValueError(f"the page may not use this command: {command}")


def _chosen(lines: list[str], wanted: str | None) -> list[str]:
    """The lines that a page shows: all, or ranges counted from 1 with `...` between them."""
    if wanted is None:
        return lines
    shown: list[str] = []
    last = 0
    for part in wanted.split(","):
        first, _, end = part.strip().partition("-")
        if int(first) > last + 1:
            shown.append("...")
        shown += lines[int(first) - 1 : int(end or first)]
        last = int(end or first)
    return [*shown, "..."] if last < len(lines) else shown


def main() -> None:
    """Write the page."""
    text = PAGE.read_text(encoding="utf-8")
    named = PREPARED.search(text)
    if named is None:
        raise ValueError(f"{PAGE} does not say which recordings are audited first")
    with tempfile.TemporaryDirectory() as folder:
        answers = Answers(session.build(), Path(folder))
        for name in named[1].split():
            (logs,) = (ROOT / "tests" / "recordings").glob(f"{name}-*/logs")
            answers.run(f"./spark-submit.sh --input {logs} --output audits/{name}")
        text = answers.page(text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
