"""Suppressions: faults that somebody has looked at and answers for, until a day.

A file lists them under `suppressions`, each with the detector, where it holds, why, who answers for
it and until when:

    suppressions:
      - code: zombie_write
        scope: {class: tv1_window, topic: "audit-*"}
        reason: known since the upgrade, consumers deduplicate (TICKET-812)
        owner: payments
        expires: 2027-01-31

The first entry that fits a finding takes it. One that is past its day holds nothing; one that fits
nothing, or only what entries before it took, is reported, so that the list does not rot.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from pipeline import settings_file
from pipeline.errors import ConfigError
from pipeline.text import nearest, sanitise

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATTERNS = ("topic", "transactional_id", "group_id")
_VALUES = ("partition", "producer_id")
Text = Annotated[str, Field(min_length=1, max_length=1000)]


def _end_of_day(value: Any) -> Any:
    """A date as the first millisecond after it in UTC."""
    if not isinstance(value, str):
        raise ValueError("a date is expected: 2027-01-31")
    try:
        day = datetime.strptime(value.strip(), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f"not a date: {sanitise(value)!r}; write it as 2027-01-31") from None
    return (day + timedelta(days=1) - _EPOCH) // timedelta(milliseconds=1)


class _Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, str_strip_whitespace=True, populate_by_name=True
    )


class Scope(_Strict):
    """Where a suppression holds: everything that is given has to fit; at least one thing is given.

    Attributes:
        class_: class of the detector (`class` in the file).
        topic: shell pattern.
        partition: partition.
        transactional_id: shell pattern.
        group_id: shell pattern.
        producer_id: producer id.
        finding_id: a finding's id, or its first 12 characters or more.
    """

    class_: Text | None = Field(default=None, alias="class")
    topic: Text | None = None
    partition: int | None = Field(default=None, ge=0)
    transactional_id: Text | None = None
    group_id: Text | None = None
    producer_id: int | None = None
    finding_id: str | None = Field(default=None, pattern=r"\A[0-9a-f]{12,64}\z")

    @model_validator(mode="after")
    def _is_not_empty(self) -> Scope:
        if not self.model_fields_set:
            raise ValueError("an empty scope would take every finding of the detector")
        return self

    def fits(self, finding: dict[str, Any]) -> bool:
        """Whether a finding lies in it."""
        if self.class_ is not None and finding["class"] != self.class_:
            return False
        if self.finding_id is not None and not finding["finding_id"].startswith(self.finding_id):
            return False
        wanted = {name: getattr(self, name) for name in (*_PATTERNS, *_VALUES)}
        return all(
            value is None
            or (
                fnmatch.fnmatchcase(finding[name] or "", value)
                if name in _PATTERNS
                else finding[name] == value
            )
            for name, value in wanted.items()
        )


class Suppression(_Strict):
    """One entry.

    Attributes:
        code: the detector.
        scope: where it holds.
        reason: why it is no trouble.
        owner: who answers for it.
        expires_ms: first millisecond in which it no longer holds (`expires`, the last day, in the file).
        line: line of the entry in the file.
    """

    code: Text
    scope: Scope
    reason: Text
    owner: Text
    expires_ms: Annotated[int, BeforeValidator(_end_of_day)] = Field(alias="expires")
    line: int = 0

    def fits(self, finding: dict[str, Any]) -> bool:
        """Whether it is about a finding, expired or not."""
        return bool(finding["code"] == self.code) and self.scope.fits(finding)

    def is_expired(self, now_ms: int | None) -> bool:
        """Whether its day is over; without a clock nobody can say that it is not."""
        return now_ms is None or now_ms >= self.expires_ms


def load(path: str, codes: Collection[str] = ()) -> tuple[Suppression, ...]:
    """Read a file of suppressions.

    Args:
        path: the file.
        codes: detectors that exist; any when empty.

    Raises:
        ConfigError: a wrong entry, in one line with the file's line number.
    """
    values, lines = settings_file.read(path)
    unknown = next((name for name in values if name != "suppressions"), None)
    if unknown is not None:
        where = settings_file.place(path, (unknown,), lines)
        raise ConfigError(
            f"{where}unknown setting {sanitise(unknown)} (did you mean 'suppressions'?)"
        )
    entries = values.get("suppressions") or []
    if not isinstance(entries, list):
        where = settings_file.place(path, ("suppressions",), lines)
        raise ConfigError(f"{where}a list of suppressions is expected")
    return tuple(_entry(path, number, one, lines, codes) for number, one in enumerate(entries))


def _entry(
    path: str, number: int, given: Any, lines: dict[str, int], codes: Collection[str]
) -> Suppression:
    place: tuple[int | str, ...] = ("suppressions", number)
    line = lines.get(f"suppressions.{number}", 0)
    if isinstance(given, dict) and "line" in given:
        raise ConfigError(
            f"{settings_file.place(path, (*place, 'line'), lines)}unknown setting line"
        )
    try:
        entry = Suppression.model_validate(
            {**given, "line": line} if isinstance(given, dict) else given
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = settings_file.place(path, (*place, *first["loc"]), lines)
        name = ".".join(str(part) for part in first["loc"]) or "suppression"
        if first["type"] == "extra_forbidden":
            known = [*Suppression.model_fields, *Scope.model_fields, "expires", "class"]
            shown = nearest(str(first["loc"][-1]), [one for one in known if one != "expires_ms"])
            raise ConfigError(f"{where}unknown setting {sanitise(name)}{shown}") from None
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{where}{sanitise(name)}: {sanitise(message)}") from None
    if codes and entry.code not in codes:
        where = settings_file.place(path, (*place, "code"), lines)
        raise ConfigError(
            f"{where}no detector {sanitise(entry.code)!r}{nearest(entry.code, sorted(codes))}"
        )
    return entry
