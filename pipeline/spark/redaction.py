"""`redact: true`: names become pseudonyms at the one door between reading and everything else.

Every row that is read passes `redacted` before it is written, and what the driver knows of the input passes
`redacted_plan`. So tables, files, pages, logs and messages are made of pseudonyms and nothing else.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import secret
from pipeline.config import Config
from pipeline.errors import AuditError, ConfigError, UsageError
from pipeline.replay.pseudonyms import Pseudonyms
from pipeline.spark import coverage
from pipeline.spark.inventory import LogDir, Offsets, Plan, Skipped
from schemas.codes import TXN_TOPIC

Row = dict[str, Any]
NOTE = "bronze/_names"
"""Below the output root: how names are written in it."""
AS_THEY_ARE, PSEUDONYMS = "as they are", "as pseudonyms (redact: true)"
KEY_NAME, COUNTS = "key_name", "transaction_state_partitions"
_PATTERN = re.compile(r"[*?\[]")
_PSEUDONYM = re.compile(r"(?:connect-cluster-)?id[0-9a-f]{16}\S*")
_DETAIL_NAMES = ("group_id", "member_id")


class Redaction(NamedTuple):
    """How a run hides names.

    Attributes:
        names: Gives pseudonyms.
        is_given: The key was given: pseudonyms are the same in every run with it.
    """

    names: Pseudonyms
    is_given: bool

    def said(self) -> dict[str, Any]:
        """What the summary tells of it."""
        text = (
            "ids are pseudonyms, the same in every run with this key"
            if self.is_given
            else "ids are pseudonyms of this run alone: they do not compare over nights"
        )
        return {"text": text, KEY_NAME: self.names.key_name(), COUNTS: list(self.names.counts)}


def redaction(config: Config, plan: Plan) -> Redaction | None:
    """How names are hidden; None where they are written as they are."""
    if not config.redact:
        return None
    given = secret.read(config.redact_key_file)
    counts = {
        coverage.partition_count(plan, copy, TXN_TOPIC, config.transaction_state_partitions)
        for copy in {one.copy for one in plan.log_dirs}
    }
    known = [count for count in counts if count]
    names = Pseudonyms(given or secret.fresh(), config.health.application_pattern, known)
    return Redaction(names, given is not None)


def redacted_settings(config: Config, names: Pseudonyms, plan: Plan) -> Config:
    """The settings as they hold for pseudonyms.

    Raises:
        UsageError: `--topics` fits a topic whose name is a pseudonym.
    """
    glob = config.selection.topics
    for topic in sorted({one.topic for one in plan.replicas}):
        if glob is not None and fnmatch.fnmatchcase(topic, glob) and names.topic(topic) != topic:
            raise UsageError(
                "redact: true writes pseudonyms of topics that Kafka Streams named after an application, and "
                "--topics fits one of them: leave out one of the two"
            )
    hidden = redacted_policy(config, names)
    health = config.health.model_copy(update={"application_pattern": None})
    return hidden.model_copy(update={"health": health})


def redacted_policy(config: Config, names: Pseudonyms) -> Config:
    """Selection and suppressions with pseudonyms in place of ids.

    Raises:
        ConfigError: A pattern for ids, which cannot be held against pseudonyms.
    """
    selection = config.selection
    selection = selection.model_copy(
        update={
            "transactional_id": _exact(selection.transactional_id, names.transactional_id),
            "group": _exact(selection.group, names.name),
        }
    )
    suppressions = []
    for one in config.suppressions:
        scope = one.scope.model_copy(
            update={
                "transactional_id": _exact(one.scope.transactional_id, names.transactional_id),
                "group_id": _exact(one.scope.group_id, names.name),
            }
        )
        suppressions.append(one.model_copy(update={"scope": scope}))
    return config.model_copy(update={"selection": selection, "suppressions": tuple(suppressions)})


def redacted_again(config: Config, summary: dict[str, Any]) -> Config:
    """The policy for a run that is judged again, whose names are pseudonyms where its summary says so.

    Raises:
        ConfigError: Selection or suppressions name ids, and the key of the run is not at hand.
    """
    held = summary.get("redaction")
    if held is None:
        return config
    key = secret.read(config.redact_key_file)
    names = Pseudonyms(key or secret.fresh(), config.health.application_pattern, held[COUNTS])
    hidden = redacted_policy(config, names)
    if hidden != config and names.key_name() != held[KEY_NAME]:
        raise ConfigError(
            f"the run's ids are pseudonyms under another key: give {secret.VARIABLE} or redact_key_file as then, or "
            "pseudonyms in place of ids"
        )
    return hidden


def claim(output: str, one: Redaction | None) -> None:
    """Notes how names are written in an output root before the first of them is.

    Jobs that stop early and killed runs leave tables, too.

    Args:
        output: Output root.
        one: This run's redaction.

    Raises:
        UsageError: The output root holds names as they are beside pseudonyms.
    """
    note = Path(output, NOTE)
    mine = AS_THEY_ARE if one is None else PSEUDONYMS
    if not note.exists():
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(mine, encoding="utf-8")
    held = note.read_text(encoding="utf-8")
    if held != mine:
        raise UsageError(f"the output root holds runs with names {held}: use another --output")


def comparable(history: Sequence[Row], one: Redaction | None) -> list[Row]:
    """Earlier runs whose pseudonyms are of this run's key; all where names are written as they are."""
    key_name = None if one is None else one.names.key_name()
    found = []
    for row in history:
        held = json.loads(row["summary"]).get("redaction")
        if held is None or held[KEY_NAME] == key_name:
            found.append(row)
    return found


def _exact(given: str | None, name: Callable[[str], str]) -> str | None:
    if given is None or _PSEUDONYM.fullmatch(given):
        return given
    if _PATTERN.search(given):
        raise ConfigError(
            "redact: true knows transactional ids and groups by pseudonyms: give one id, or a pseudonym of an earlier "
            "run with the same key, and no pattern"
        )
    return name(given)


def redacted_plan(plan: Plan, names: Pseudonyms) -> Plan:
    """The plan with pseudonyms in all that is shown; where files are read from stays."""
    return replace(
        plan,
        roots=tuple(f"input {number}" for number in range(1, len(plan.roots) + 1)),
        log_dirs=tuple(_log_dir(one, names) for one in plan.log_dirs),
        replicas=tuple(
            replace(
                one,
                replica_id=names.number(one.replica_id),
                topic=names.topic(one.topic),
                name=names.partition_path(one.name),
                log_dir_path=names.path(one.log_dir_path),
            )
            for one in plan.replicas
        ),
        files=tuple(
            replace(
                one,
                replica_id=names.number(one.replica_id),
                segment_id=names.number(one.segment_id),
                topic=names.topic(one.topic),
                name=names.path(one.name),
            )
            for one in plan.files
        ),
        skipped=tuple(_skipped(one, names) for one in plan.skipped),
        unread=tuple(_skipped(one, names) for one in plan.unread),
    )


def _log_dir(one: LogDir, names: Pseudonyms) -> LogDir:
    def offsets(known: Offsets) -> Offsets:
        return {(names.topic(topic), number): at for (topic, number), at in known.items()}

    return replace(
        one,
        path=names.path(one.path),
        name=names.path(one.name),
        high_watermarks=offsets(one.high_watermarks),
        log_starts=offsets(one.log_starts),
        cleaner_offsets=offsets(one.cleaner_offsets),
        recovery_points=offsets(one.recovery_points),
    )


def _skipped(one: Skipped, names: Pseudonyms) -> Skipped:
    return replace(one, name=names.path(one.name))


def guarded(
    batches: Iterator[pa.RecordBatch], names: Pseudonyms | None
) -> Iterator[pa.RecordBatch]:
    """Rows as they may be written.

    Raises:
        AuditError: Reading failed; the words of the failure could hold names, so its kind alone is told.
    """
    if names is None:
        yield from batches
        return
    try:
        for batch in batches:
            yield redacted(batch, names)
    except Exception as error:
        raise AuditError(f"{type(error).__name__} while a file was read") from None


def redacted(batch: pa.RecordBatch, names: Pseudonyms) -> pa.RecordBatch:
    """A batch of `bronze.ENTRY` with pseudonyms."""
    changed: dict[str, Callable[[str], str]] = {
        "transactional_id": names.transactional_id,
        "group_id": names.name,
        "topic": names.topic,
        "partitions": names.partitions,
        "detail": lambda text: _detail(text, names),
    }
    columns = [
        _mapped(batch.column(field.name), changed[field.name])
        if field.name in changed
        else batch.column(field.name)
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _mapped(column: pa.Array, name: Callable[[str], str]) -> pa.Array:
    if column.null_count == len(column):
        return column
    coded = pc.dictionary_encode(column)
    values = [None if text is None else name(text) for text in coded.dictionary.to_pylist()]
    return pa.array(values, column.type).take(coded.indices)


def _detail(text: str, names: Pseudonyms) -> str:
    row = json.loads(text)
    for field in _DETAIL_NAMES:
        if row.get(field):
            row[field] = names.name(row[field])
    if row.get("topic"):
        row["topic"] = names.topic(row["topic"])
    return json.dumps(row)
