"""Configuration: `conf/audit.yaml` and what the command line overrides."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pipeline.errors import ConfigError
from pipeline.text import nearest, sanitise

MAX_CONFIG_BYTES = 1 << 20
Severity = Literal["critical", "major", "minor", "info"]
Certainty = Literal["proven", "proven_if_complete", "consistent_with", "suspicion"]
Stage = Literal["ingest", "replay", "detect", "audit"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_RESULTS = frozenset({"inputs", "output", "run_id", "keep_runs", "now_ms", "stage"})


def parse_time(text: str) -> int:
    """Read a point in time.

    Args:
        text: ISO 8601 with an offset or ``Z``, for instance ``2026-11-26T02:10:00Z``.

    Returns:
        Milliseconds since 1970-01-01 UTC.

    Raises:
        ValueError: not a time, or one without offset (it would mean another moment on another
            machine).
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"not a time: {sanitise(text)!r}; write it as 2026-11-26T02:10:00Z"
        ) from None
    if moment.tzinfo is None:
        raise ValueError(f"a time needs an offset or Z: {sanitise(text)!r}")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _time(value: Any) -> Any:
    return parse_time(value) if isinstance(value, str) else value


TimeMs = Annotated[int | None, BeforeValidator(_time)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Gate(_Strict):
    """What fails a run: an unsuppressed new or open finding at or above both thresholds."""

    severity: Severity = "major"
    certainty: Certainty = "proven"
    require: Annotated[tuple[str, ...] | None, Field(strict=False)] = None


class Selection(_Strict):
    """What is shown and gated, never what is replayed; patterns are shell globs, times in ms."""

    topics: str | None = None
    transactional_id: str | None = None
    group: str | None = None
    producer_id: int | None = None
    since_ms: TimeMs = None
    until_ms: TimeMs = None


class Config(_Strict):
    """What decides a run's results; `conf/audit.yaml` explains each field."""

    inputs: Annotated[tuple[str, ...], Field(strict=False)] = ()
    output: str = "./audit-output"
    stage: Stage = "audit"
    run_id: str | None = Field(default=None, pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,79}\z")
    cluster_id: str | None = Field(default=None, min_length=1, max_length=249)
    as_of_ms: TimeMs = None
    copy_started_ms: TimeMs = None
    kafka_version: str | None = Field(default=None, pattern=r"\A\d+\.\d+(\.\d+){0,2}\z")
    now_ms: TimeMs = None
    marker_grace_ms: int = Field(default=30_000, ge=0)
    clock_skew_ms: int = Field(default=1_000, ge=0, le=60_000)
    race_window_ms: int = Field(default=250, ge=0)
    transaction_max_timeout_ms: int = Field(default=900_000, ge=0)
    late_buffer_ms: int = Field(default=300_000, ge=0)
    abort_scan_ms: int = Field(default=10_000, ge=0)
    transaction_state_partitions: int | None = Field(default=None, ge=1)
    offsets_partitions: int | None = Field(default=None, ge=1)
    gate: Gate = Gate()
    selection: Selection = Selection()
    keep_runs: int = Field(default=30, ge=1)
    max_examples: int = Field(default=32, ge=1)
    redact: bool = False

    def fingerprint(self) -> str:
        """SHA-256 of what influences results: no place of input or output, no clock."""
        fields = self.model_dump(mode="json", exclude=set(_NOT_RESULTS))
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load(path: str | None, overrides: dict[str, Any]) -> Config:
    """Read a YAML file and apply overrides.

    Args:
        path: the file, or None for the defaults alone.
        overrides: values by field name; nested ones with dots (`gate.severity`).

    Raises:
        ConfigError: no such file, no YAML mapping, an unknown key or a value out of range; one line
            with the place.
    """
    values, lines = _read(path) if path is not None else ({}, {})
    for name, value in overrides.items():
        *parents, last = name.split(".")
        target = values
        for parent in parents:
            target[parent] = dict(target.get(parent) or {})
            target = target[parent]
        target[last] = value
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, path, lines)) from None
    if config.redact:
        raise ConfigError("redact: true is not available in this version; nothing was read")
    return config


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


def _read(path: str) -> tuple[dict[str, Any], dict[str, int]]:
    shown = sanitise(path)
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES + 1)
        if len(text) > MAX_CONFIG_BYTES:
            raise ConfigError(f"{shown}: larger than {MAX_CONFIG_BYTES} bytes")
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


def _lines(node: yaml.Node | None, prefix: str, shown: str) -> dict[str, int]:
    """Dotted key -> line number."""
    found: dict[str, int] = {}
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


def _explain(error: ValidationError, path: str | None, lines: dict[str, int]) -> str:
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    name = ".".join(parts)
    line = next(
        (lines[key] for n in range(len(parts), 0, -1) if (key := ".".join(parts[:n])) in lines),
        None,
    )
    where = f"{sanitise(path)}:{line}: " if path and line else ""
    if first["type"] == "extra_forbidden":
        return f"{where}unknown setting {sanitise(name)}{nearest(parts[-1], _names())}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}{sanitise(name)}: {sanitise(message)}"


def _names() -> list[str]:
    return [*Config.model_fields, *Gate.model_fields, *Selection.model_fields]
