"""Who holds the last stable offset at the end of a log, and what waits behind it.

read_committed consumers stop at the first offset of the oldest open transaction, or at the start of the log where
that has passed it; the cleaner and tiered storage stop there too. The runs that began later wait their turn.

Source: `UnifiedLog.lastStableOffset` and `maybeIncrementFirstUnstableOffset`, `LogCleanerManager.cleanableOffsets`;
KIP-98.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pipeline.replay.statement import Place, Statement, span
from pipeline.text import counted, plural
from schemas.codes import OFFSETS_TOPIC

CONVICTED = (
    "orphan_producer", "not_in_transaction", "epoch_mismatch", "prepare_stuck", "past_deadline",
)  # fmt: skip
"""Judgements of `hanging_transaction` that are critical and proven."""
LATE = "owner_not_copied_late"
"""Judgement that is major and consistent_with: nobody can say whose run it is, only that it is too old."""


class OpenRun(NamedTuple):
    """A run without a marker; fields as in `silver.partition_txn`."""

    copy: int
    topic: str
    partition: int
    replica_id: int
    producer_id: int
    max_epoch: int | None
    transactional_id: str | None
    first_offset: int
    first_append_ms: int | None
    after_ms: int | None
    judgement: str | None


class Pinned(NamedTuple):
    """The replica that a run pins.

    Attributes:
        log_end_offset: Offset behind the last batch.
        read_until_ms: Newest time that a broker stamped there; None without one.
        cleaner_offset: How far the cleaner came; None where no cleaner works.
        log_start_offset: `log-start-offset-checkpoint`, else 0.
    """

    log_end_offset: int
    read_until_ms: int | None
    cleaner_offset: int | None
    log_start_offset: int = 0


class Waiting(NamedTuple):
    """Data at and behind the offset at which readers wait.

    Attributes:
        records: Records of applications; of `__consumer_offsets` offset commits.
        size_bytes: Bytes of log, markers included; None where a place there could not be read.
    """

    records: int
    size_bytes: int | None


def oldest(runs: Iterable[OpenRun]) -> list[tuple[OpenRun, int]]:
    """The oldest open run of each replica, with how many younger ones wait behind it."""
    found: dict[int, tuple[OpenRun, int]] = {}
    for run in sorted(runs, key=lambda one: (one.replica_id, one.first_offset)):
        first, younger = found.get(run.replica_id, (run, -1))
        found[run.replica_id] = (first, younger + 1)
    return list(found.values())


def held_at(run: OpenRun, log: Pinned) -> int:
    """The last stable offset while the run is open: DeleteRecords or retention may have passed its beginning."""
    return max(run.first_offset, log.log_start_offset)


def _words(run: OpenRun, log: Pinned, waiting: Waiting) -> tuple[str, str]:
    """Title, and what waits: records that consumers do not get, or commits that groups cannot fetch."""
    name, at = f"{run.topic}-{run.partition}", held_at(run, log)
    size = "" if waiting.size_bytes is None else f" and {counted(waiting.size_bytes, 'byte')}"
    who = (
        f"Producer {run.producer_id} (transactional id {run.transactional_id or 'none'}) holds the last stable offset "
        f"at {at}, the log ends at {log.log_end_offset}"
    )
    if at > run.first_offset:
        who = f"{who} (its transaction began at {run.first_offset}, the log starts at {at})"
    if run.topic == OFFSETS_TOPIC:
        return (
            f"an open transaction holds the last stable offset of {name} at {at}",
            f"{who}: {counted(waiting.records, 'offset commit')}{size} lie there. Offsets that are pending "
            "in it cannot be fetched with requireStable.",
        )
    return (
        f"read_committed consumers of {name} wait at offset {at}",
        f"{who}: {counted(waiting.records, 'record')}{size} cannot be seen by read_committed consumers.",
    )


def statement(run: OpenRun, younger: int, log: Pinned, waiting: Waiting) -> Statement:
    """What one open run holds up; as severe as the finding of its transaction."""
    severity, certainty = "info", "proven"
    if run.judgement in CONVICTED:
        severity = "critical"
    elif run.judgement == LATE:
        severity, certainty = "major", "consistent_with"
    since = run.first_append_ms if run.first_append_ms is not None else run.after_ms
    for_ms = None
    if since is not None and log.read_until_ms is not None:
        for_ms = max(log.read_until_ms - since, 0)
    title, held_up = _words(run, log, waiting)
    said = [held_up]
    if for_ms:
        said.append(f"It is open for at least {span(for_ms)} by the log's own clock.")
    if younger:
        words = plural(younger, "younger transaction is", "younger transactions are")
        said.append(f"{younger} {words} open behind it.")
    if log.cleaner_offset is not None:
        said.append(
            f"Compaction stands: the cleaner came to offset {log.cleaner_offset} and cannot pass {held_at(run, log)}."
        )
    return Statement(
        run.copy, "pinned", severity, certainty,
        title, " ".join(said),
        topic=run.topic, partition=run.partition, producer_id=run.producer_id,
        producer_epoch=run.max_epoch, transactional_id=run.transactional_id,
        first_offset=run.first_offset, last_offset=log.log_end_offset - 1,
        first_timestamp_ms=since, last_timestamp_ms=log.read_until_ms,
        places=(Place(run.topic, run.partition, run.first_offset, "first batch of the open transaction"),),
    )  # fmt: skip
