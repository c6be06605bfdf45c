"""Configuration: `conf/audit.yaml` and what the command line overrides."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pipeline import secret, settings_file, suppressions
from pipeline.errors import ConfigError
from pipeline.suppressions import Suppression
from pipeline.text import nearest, sanitise

Severity = Literal["critical", "major", "minor", "info"]
Certainty = Literal["proven", "proven_if_complete", "consistent_with", "suspicion"]
Stage = Literal["ingest", "replay", "detect", "audit"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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


class Rule(_Strict):
    """Other thresholds for some findings; the first rule whose patterns all fit is the one that counts.

    Attributes:
        code: shell pattern of detectors.
        topic: shell pattern of topics; None fits findings without a topic too.
        severity: this or worse fails; `none` never does. None keeps the general threshold.
        certainty: this or surer fails. None keeps the general threshold.
    """

    code: str = Field(default="*", min_length=1)
    topic: str | None = Field(default=None, min_length=1)
    severity: Severity | Literal["none"] | None = None
    certainty: Certainty | None = None


class Gate(_Strict):
    """What fails a run: an unsuppressed new or open finding at or above both thresholds.

    Attributes:
        severity: this or worse fails.
        certainty: this or surer fails.
        require: detectors that must be able to judge; None: those whose inputs are there.
        rules: exceptions by detector and topic.
        max_copy_age_ms: how old the newest broker-stamped time may be; None: any age.
    """

    severity: Severity = "major"
    certainty: Certainty = "proven"
    require: Annotated[tuple[str, ...] | None, Field(strict=False)] = None
    rules: Annotated[tuple[Rule, ...], Field(strict=False)] = ()
    max_copy_age_ms: int | None = Field(default=None, ge=0)


class Report(_Strict):
    """The page: where its style and script stand, and what operators alert on (drawn as lines).

    Attributes:
        html_assets: style and script of the page: in it, or as files beside it (`dir`).
        docs_url: where the folder `docs` can be read; findings then link to the page of their detector.
        timed_out_per_s: transactions that time out, a second.
        ongoing: transactions that are open at once.
        commit_latency_ms: from Prepare* to Complete*.
        coordinator_backlog: records of `__transaction_state` behind the high watermark.
    """

    html_assets: Literal["inline", "dir"] = "inline"
    docs_url: str | None = Field(
        default=None, pattern=r"\Ahttps?://[A-Za-z0-9._~:/-]+[A-Za-z0-9]\z"
    )
    timed_out_per_s: float = Field(default=1.0, gt=0, strict=False)
    ongoing: int = Field(default=10_000, ge=1)
    commit_latency_ms: int = Field(default=5_000, ge=1)
    coordinator_backlog: int = Field(default=1_000, ge=1)


def _pattern(text: str | None) -> str | None:
    """A regular expression that names the application."""
    if text is not None:
        try:
            groups = re.compile(text).groupindex
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        if "application" not in groups:
            raise ValueError("write (?P<application>...) around the application's name")
    return text


class Health(_Strict):
    """From where on the use of transactions is told as a weakness; times in ms.

    Attributes:
        commit_latency_ms: from Prepare* to Complete*.
        long_running_ms: from the first write to the end.
        near_timeout_share: of transaction.timeout.ms.
        storm_fences: InitProducerId requests of one id within `storm_window_ms`.
        storm_window_ms: the time for `storm_fences`.
        reuse_fences: transactions of one id that another instance aborted within `reuse_window_ms`.
        reuse_window_ms: the time for `reuse_fences`.
        forecast_days: producer epochs that will be used up within these days.
        unbounded_ids: ids of one application, most of them used once.
        application_pattern: regular expression on transactional ids, with a group `application`.
    """

    commit_latency_ms: int = Field(default=5_000, ge=1)
    long_running_ms: int = Field(default=60_000, ge=1)
    near_timeout_share: float = Field(default=0.8, gt=0, le=1, strict=False)
    storm_fences: int = Field(default=10, ge=2)
    storm_window_ms: int = Field(default=600_000, ge=1)
    reuse_fences: int = Field(default=3, ge=2)
    reuse_window_ms: int = Field(default=300_000, ge=1)
    forecast_days: int = Field(default=30, ge=1)
    unbounded_ids: int = Field(default=500, ge=2)
    application_pattern: Annotated[str | None, AfterValidator(_pattern)] = None


class Selection(_Strict):
    """What is shown and gated, never what is replayed; patterns are shell globs, times in ms.

    Attributes:
        topics: user partitions of other topics are not looked at.
        transactional_id: these only.
        group: these consumer groups only.
        producer_id: this one only.
        since_ms: what ends at or after this.
        until_ms: what begins before this.
    """

    topics: str | None = None
    transactional_id: str | None = None
    group: str | None = None
    producer_id: int | None = None
    since_ms: TimeMs = None
    until_ms: TimeMs = None


class Config(_Strict):
    """What decides a run's results; times in ms.

    Attributes:
        inputs: what is read.
        output: root of tables and files.
        stage: where the run stops; `audit` is all of it.
        run_id: name of the run; the same name replaces it. None: newest time in the logs and a hash.
        cluster_id: identity of the cluster when the input has no `meta.properties`.
        as_of_ms: the moment the verdict is about. None: the newest time that a broker stamped in any log.
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
            folder of the settings. None: no such faults.
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
        raise ConfigError(_explain(error, path, lines)) from None
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


def _explain(error: ValidationError, path: str | None, lines: dict[str, int]) -> str:
    first = error.errors()[0]
    parts = first["loc"]
    name = ".".join(str(part) for part in parts)
    where = _where(path, parts, lines)
    if first["type"] == "extra_forbidden":
        return f"{where}unknown setting {sanitise(name)}{nearest(str(parts[-1]), _names())}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}{sanitise(name)}: {sanitise(message)}"


def _names() -> list[str]:
    models = (Config, Gate, Rule, Report, Health, Selection)
    return [name for model in models for name in model.model_fields]
