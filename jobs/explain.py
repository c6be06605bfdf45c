"""`explain CODE`: a detector's page, which is its docstring; nothing is imported for it."""

from __future__ import annotations

import ast
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.text import nearest, sanitise

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
            fixed = f"\n\nFixed in: {constants['FIXED_IN']}" if constants.get("FIXED_IN") else ""
            found[constants["CODE"]] = (ast.get_docstring(module) or "") + fixed
    return found


def run(code: str) -> int:
    """Print the page of one detector.

    Raises:
        UsageError: there is no such detector.
    """
    known = pages()
    name = code.partition("/")[0]
    if name not in known:
        names = ", ".join(sorted(known))
        raise UsageError(f"no detector {sanitise(code)!r}{nearest(name, sorted(known))}: {names}")
    print(known[name])
    return 0
