"""Sections of the configuration: gate, page, health and what a run looks at."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pipeline.text import sanitise

Severity = Literal["critical", "major", "minor", "info"]
Certainty = Literal["proven", "proven_if_complete", "consistent_with", "suspicion"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


class Strict(BaseModel):
    """Takes nothing that it does not know, converts nothing and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Rule(Strict):
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


class Gate(Strict):
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


class Report(Strict):
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


class Health(Strict):
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


class Selection(Strict):
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
