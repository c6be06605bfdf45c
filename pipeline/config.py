"""Configuration: `conf/audit.yaml` and what the command line overrides."""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from pipeline import secret, settings_file, suppressions
from pipeline.config_sections import Gate, Health, Report, Rule, Selection, Strict, TimeMs
from pipeline.errors import ConfigError
from pipeline.suppressions import Suppression
from pipeline.text import nearest, sanitise

Stage = Literal["ingest", "replay", "detect", "audit"]

_NOT_RESULTS = frozenset(
    {
        "inputs",
        "output",
        "run_id",
        "keep_runs",
        "now_ms",
        "stage",
        "report",
        "max_examples",
        "redact_key_file",
    }
)


class Config(Strict):
    """What decides a run's results; times in ms.

    Attributes:
        inputs: what is read.
        output: root of tables and files.
        stage: where the run stops; `audit` is all of it.
        run_id: name of the run; the same name replaces it. None: newest time in the logs and a hash.
        cluster_id: identity of the cluster when the input has no `meta.properties`.
        as_of_ms: the moment the verdict is about; a later one than the logs' does not make anything older. None: the
            newest time that a broker stamped in any log.
        copy_started_ms: when the copy of running brokers was begun; what is older by more than
            `marker_grace_ms` and `clock_skew_ms` was then on disk.
        kafka_version: version of the brokers, for instance 3.9.1; defects that it has fixed are not looked for.
        now_ms: used instead of the clock.
        marker_grace_ms: how long the coordinator may take to write its markers before a missing one
            means anything.
        clock_skew_ms: how far the clocks of two brokers may differ.
        race_window_ms: a transactional offset commit this soon after the previous transaction's marker
            opens the race of KAFKA-17507.
        transaction_max_timeout_ms: `transaction.max.timeout.ms` of the brokers: no transaction may be
            open for longer.
        late_buffer_ms: this much beyond it, and an open run whose owner is not in the copy counts as hanging.
        abort_scan_ms: `transaction.abort.timed.out.transaction.cleanup.interval.ms` of the brokers: how
            late a timeout is noticed.
        transaction_state_partitions: partitions of `__transaction_state`. None: what the checkpoints show.
        gate: what fails.
        suppressions: file of faults that somebody answers for until a day; a relative path starts at the
            folder of the settings; `conf/audit.yaml` names `conf/suppressions.yaml`. None: no such faults.
        report: the page.
        health: what counts as a weakness.
        selection: what is shown and gated.
        keep_runs: how many runs stay in the output; older ones are removed.
        max_examples: findings of one code and class that people are shown; tables and `findings.jsonl`
            hold all.
        deep: contents of records are compared, by keyed hash: a second pass over the log files.
        redact: ids, hosts and folders as pseudonyms, the same for the same name.
        redact_key_file: file with the key of the pseudonyms, 16 characters or more; the environment variable
            AUDIT_REDACT_KEY goes before it. None and no such variable: a key of this run alone.
    """

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
    gate: Gate = Gate()
    suppressions: Annotated[tuple[Suppression, ...], Field(strict=False)] = ()
    report: Report = Report()
    health: Health = Health()
    selection: Selection = Selection()
    keep_runs: int = Field(default=30, ge=1)
    max_examples: int = Field(default=32, ge=1)
    deep: bool = False
    redact: bool = False
    redact_key_file: str | None = Field(default=None, min_length=1)

    def fingerprint(self) -> str:
        """SHA-256 of what influences results: no place of input or output, no clock."""
        fields = self.model_dump(mode="json", exclude=set(_NOT_RESULTS))
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load(path: str | None, overrides: dict[str, Any], codes: Collection[str] = ()) -> Config:
    """Read a YAML file and apply overrides.

    Args:
        path: the file, or None for the defaults alone. A relative path of suppressions in it starts
            at its folder.
        overrides: values by field name; nested ones with dots (`gate.severity`).
        codes: detectors that exist, which the gate and suppressions may name; any when empty.

    Raises:
        ConfigError: no such file, no YAML mapping, an unknown key or a value out of range; one line
            with the place.
    """
    values, lines = settings_file.read(path) if path is not None else ({}, {})
    listed = values.pop("suppressions", None)
    if isinstance(listed, str) and path is not None:
        listed = str(Path(path).parent / listed)
    for name, value in overrides.items():
        *parents, last = name.split(".")
        target = values
        for parent in parents:
            target[parent] = dict(target.get(parent) or {})
            target = target[parent]
        target[last] = value
    listed = values.pop("suppressions", listed)
    if listed is not None and not isinstance(listed, str):
        raise ConfigError(
            f"{_where(path, ('suppressions',), lines)}suppressions: a file is expected"
        )
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, path, lines, overrides)) from None
    if config.redact:
        secret.read(config.redact_key_file)
    _check_codes(config.gate, codes, path, lines)
    if listed is None:
        return config
    return config.model_copy(update={"suppressions": suppressions.load(listed, codes)})


def _check_codes(
    gate: Gate, codes: Collection[str], path: str | None, lines: dict[str, int]
) -> None:
    """A detector that does not exist would never be missed."""
    named: list[tuple[tuple[int | str, ...], str]] = [
        (("gate", "require", number), code) for number, code in enumerate(gate.require or ())
    ]
    for number, rule in enumerate(gate.rules):
        if not any(fnmatch.fnmatchcase(code, rule.code) for code in codes):
            named.append((("gate", "rules", number, "code"), rule.code))
    for parts, code in named:
        if codes and code not in codes:
            raise ConfigError(
                f"{_where(path, parts, lines)}no detector {sanitise(code)!r}{nearest(code, sorted(codes))}"
            )


def _where(path: str | None, parts: tuple[int | str, ...], lines: dict[str, int]) -> str:
    return "" if path is None or parts[0] not in lines else settings_file.place(path, parts, lines)


def _explain(
    error: ValidationError,
    path: str | None,
    lines: dict[str, int],
    overrides: Collection[str],
) -> str:
    """The first mistake, with the line of the file or the option that holds it."""
    first = error.errors()[0]
    parts = first["loc"]
    name = ".".join(str(part) for part in parts)
    where = _where(path, parts, lines)
    if first["type"] == "extra_forbidden":
        return f"{where}unknown setting {sanitise(name)}{nearest(str(parts[-1]), _names())}"
    if name in overrides:
        where, name = "", "--" + str(parts[-1]).replace("_", "-")
    message = _IN_WORDS.get(str(parts[-1])) if first["type"] == "string_pattern_mismatch" else None
    if first["type"] == "model_type":
        message = "a mapping of settings is expected"
    message = message or first["msg"].removeprefix("Value error, ")
    return f"{where}{sanitise(name)}: {sanitise(message)}"


_IN_WORDS = {
    "run_id": "letters, digits, '_', '.' and '-', 80 at most, beginning with a letter or digit",
    "kafka_version": "no version of Kafka; write it as 3.9.1",
}
"""What is expected where a pattern says it to nobody."""


def _names() -> list[str]:
    models = (Config, Gate, Rule, Report, Health, Selection)
    return [name for model in models for name in model.model_fields]
