"""`explain CODE`: a detector's page, which is its docstring; nothing is imported for it."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.text import nearest, sanitise

WIDTH = 80
DETECTORS = Path(__file__).resolve().parents[1] / "pipeline" / "detect"


def pages() -> dict[str, str]:
    """Detector code -> its page."""
    found = {}
    for file in sorted(DETECTORS.glob("*.py")):
        module = ast.parse(file.read_text(encoding="utf-8"))
        constants = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in module.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in ("CODE", "FIXED_IN")
        }
        if "CODE" in constants:
            fixed = f"\n\nFixed in: {_fixed(constants['FIXED_IN'])}"
            found[constants["CODE"]] = (ast.get_docstring(module) or "") + fixed
    return found


def _fixed(versions: str | dict[str, str]) -> str:
    """Versions in words: of the whole detector, or of each class, a line each."""
    if isinstance(versions, str):
        return versions
    classes: dict[str, list[str]] = {}
    for name, words in versions.items():
        classes.setdefault(words, []).append("every other class" if name == "*" else f"`{name}`")
    return "".join(f"\n* {', '.join(names)}: {words}" for words, names in classes.items())


def _hint(name: str, known: dict[str, str]) -> str:
    """What was probably meant: a detector with that word in its name, the one whose class it is, or a typing error."""
    if not name:
        return ""
    word = name.lower()
    meant = [code for code in known if word in code]
    if not meant and re.fullmatch(r"[a-z0-9_]+", word):
        meant = [code for code, page in known.items() if f"`{word}`" in page] or [
            code for code in known if f'"{word}"' in (DETECTORS / f"{code}.py").read_text()
        ]
    return f" (did you mean {meant[0]!r}?)" if meant else nearest(word, sorted(known))


def run(code: str) -> int:
    """Print the page of one detector.

    Raises:
        UsageError: there is no such detector.
    """
    known = pages()
    name = code.partition("/")[0]
    if name not in known:
        raise UsageError(f"no detector {sanitise(code)!r}{_hint(name, known)}: {', '.join(known)}")
    for paragraph in known[name].split("\n\n"):
        first, *items = re.split(r"\n\* ", paragraph)
        print(textwrap.fill(first, WIDTH, break_on_hyphens=False))
        for item in items:
            print(textwrap.fill(f"* {item}", WIDTH, subsequent_indent="  ", break_on_hyphens=False))
        print()
    return 0
