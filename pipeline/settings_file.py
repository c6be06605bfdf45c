"""Reading a settings file: strict YAML, and the line of every key for the message that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from pipeline.errors import ConfigError
from pipeline.text import sanitise

MAX_BYTES = 1 << 20


class _Loader(yaml.SafeLoader):
    """Safe YAML without aliases, which expand without bound; dates stay text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(
                None, None, "aliases are not allowed", event.start_mark
            )
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Read a file that holds one mapping.

    Args:
        path: the file.

    Returns:
        Its values, and dotted key -> line number; entries of a list are counted from 0.

    Raises:
        ConfigError: it cannot be read, is no YAML mapping, too large, or sets a key twice.
    """
    shown = sanitise(path)
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ConfigError(f"{shown}: larger than {MAX_BYTES} bytes")
        loader = _Loader(text.decode("utf-8"))
        node = loader.get_single_node()
        lines = _lines(node, "", shown)
        values = loader.construct_document(node) if node is not None else {}
    except (OSError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ConfigError(
            f"{shown}: {getattr(error, 'strerror', None) or sanitise(str(error))}"
        ) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{shown}:{line}: {sanitise(error.problem or 'not YAML')}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{shown}: {sanitise(str(error).splitlines()[0])}") from None
    if values is None:
        return {}, {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{shown}: a mapping of settings is expected")
    return values, lines


def place(path: str, parts: tuple[int | str, ...], lines: dict[str, int]) -> str:
    """`file:line: ` of the nearest key that encloses a place, for a message."""
    names = [str(part) for part in parts]
    line = next(
        (lines[key] for n in range(len(names), 0, -1) if (key := ".".join(names[:n])) in lines),
        None,
    )
    return f"{sanitise(path)}:{line}: " if line else f"{sanitise(path)}: "


def _lines(node: yaml.Node | None, prefix: str, shown: str) -> dict[str, int]:
    """Dotted key -> line number."""
    found: dict[str, int] = {}
    if isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            found[f"{prefix}{index}"] = value.start_mark.line + 1
            found |= _lines(value, f"{prefix}{index}.", shown)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{prefix}{key.value}"
            line = key.start_mark.line + 1
            if name in found:
                raise ConfigError(
                    f"{shown}:{line}: {sanitise(name)} is set twice, first in line {found[name]}"
                )
            found[name] = line
            found |= _lines(value, f"{name}.", shown)
    return found
