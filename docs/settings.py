"""The configuration reference: every setting of `pipeline/config.py`, with the option that overrides it."""

from __future__ import annotations

import re
import typing
from types import UnionType
from typing import Any, Literal

import click
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from jobs import options
from pipeline.config import Config
from pipeline.config_sections import Gate, Health, Report, Rule, Selection
from pipeline.suppressions import Suppression

SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("", Config),
    ("gate", Gate),
    ("gate.rules[]", Rule),
    ("report", Report),
    ("health", Health),
    ("selection", Selection),
)
_NAMES = {int: "whole number", float: "number", str: "text", bool: "true or false"}
_HEAD = """\
# Configuration

Settings stand in a YAML file that is given with `--conf`; without it `conf/audit.yaml` counts, with all defaults.
An option of the command line goes before the file. Unknown keys, wrong types and values out of range are refused with
file and line (exit code 2) before anything is read. Names that end in `_ms` are milliseconds; points in time are
written with an offset or `Z`: `2026-11-26T02:10:00Z`. Shell patterns know `*`, `?` and `[...]`.

```
$ ./spark-submit.sh --conf own.yaml
error: own.yaml:2: unknown setting gate.severty (did you mean 'severity'?)
```

`./spark-submit.sh --help` lists the options. Everything behind `--spark` goes to spark-submit: [clusters](cluster.md).
What counts towards a run's name and its comparison with the run before is everything but `inputs`, `output`,
`run_id`, `keep_runs`, `now_ms`, `stage`, `report` and `max_examples`.
"""
_TAIL = """\
## Suppressions

The file that `suppressions` names, an entry a fault:

| key | meaning |
|---|---|
| `code` | the detector |
| `scope` | at least one of `class`, `topic`, `partition`, `transactional_id`, `group_id`, `producer_id`, `finding_id` |
| `reason` | why it is let through |
| `owner` | who answers for it |
| `expires` | last day; afterwards it takes nothing and is reported |

All five are required. Examples: [CI](ci.md).

## Options without a setting

| option | meaning |
|---|---|
"""


def page() -> str:
    """The page as text.

    Raises:
        ValueError: a setting is not explained in its model's docstring.
    """
    by_name = _options()
    lines = [_HEAD]
    for prefix, model in SECTIONS:
        lines += [f"## {prefix or 'General'}", "", _summary(model), ""]
        lines += ["| setting | values | default | option | meaning |", "|---|---|---|---|---|"]
        meanings = _meanings(model)
        for name, field in model.model_fields.items():
            if name not in meanings:
                raise ValueError(f"{model.__name__}.{name} is not explained in its docstring")
            if _is_section(field):
                continue
            full = f"{prefix}.{name}" if prefix else name
            option = by_name.pop(full.replace(".", "__"), None)
            shown = "" if option is None else f"`{option.opts[0]}`"
            lines.append(
                f"| `{full}` | {_values(field)} | {_default(field)} | {shown} | {meanings[name]} |"
            )
        lines.append("")
    lines.append(_TAIL.rstrip("\n"))
    by_name.pop("suppressions", None)
    lines += [f"| `{one.opts[0]}` | {_plain(one.help or '')} |" for one in by_name.values()]
    return "\n".join(lines) + "\n"


def _options() -> dict[str, click.Option]:
    """Name of the setting, dots as `__` -> the option that overrides it."""
    found: dict[str, click.Option] = {}
    groups = (options.READING, options.SELECTION, options.POLICY, options.PAGE, options.COMMON)
    for decorate in (one for group in groups for one in group):

        def command() -> None:
            """Carries one option."""

        decorate(command)
        for option in getattr(command, "__click_params__", []):
            found[option.name] = option
    return found


def _summary(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """Setting -> its line under `Attributes:`."""
    text = (model.__doc__ or "").partition("Attributes:")[2]
    found = re.findall(r"^        (\w+): (.*(?:\n {12}.*)*)", text, re.MULTILINE)
    return {name: _plain(words) for name, words in found}


def _plain(words: str) -> str:
    """One cell of a table, as somebody writes YAML; without the default that click writes behind the help."""
    text = " ".join(words.partition("[default:")[0].split()).replace("|", "\\|")
    return re.sub(r"\bNone\b", "null", text)


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _values(field: FieldInfo) -> str:
    """What a setting may hold: its type, and its bounds."""
    if any(isinstance(one, BeforeValidator) for one in field.metadata):
        return "time or null"
    words = " or ".join(dict.fromkeys(_type(field.annotation)))
    bounds = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    limits = [
        f"{sign} {getattr(one, name)}"
        for one in field.metadata
        for name, sign in bounds.items()
        if getattr(one, name, None) is not None
    ]
    return ", ".join([words, *limits])


def _type(annotation: Any) -> list[str]:
    if annotation is type(None):
        return ["null"]
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Literal:
        return [f"`{one}`" for one in arguments]
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin is tuple:
        inner = arguments[0]
        if inner is Suppression:
            return ["file"]
        return ["list of rules" if inner is Rule else f"list of {_NAMES[inner]}s"]
    if origin in (typing.Union, UnionType):
        return [word for one in arguments for word in _type(one)]
    return [_NAMES[annotation]]


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is None:
        return "null"
    if value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"`{value}`"
