"""What a run could and could not judge, in words and counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from pyspark.sql import functions as F

from pipeline.detect import DETECTORS
from pipeline.replay.version_bounds import FIXES, is_fixed, parsed
from pipeline.spark import coverage as covered
from pipeline.spark import stored
from pipeline.spark.damage_inputs import damage_rows
from pipeline.spark.inventory import EXPORT, LOG, Skipped
from pipeline.spark.run import Run
from pipeline.spark.trust import TEXT_REASONS
from pipeline.text import counted, plural
from schemas import silver
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

NAMED = 20
"""Files left aside that are named, for each reason."""
_NEEDS = {
    "batch": "a data partition's .log files",
    "txn_state": f"a partition of {TXN_TOPIC}",
    "offset_commit": f"a partition of {OFFSETS_TOPIC}",
    "replica": "the same partition from two brokers",
    "segment": "any .log file",
    "record": "a data partition's .log files",
    "deep": "deep: true",
}


def attempted(run: Run) -> dict[str, str | None]:
    """Detector code -> None when its inputs are there, else what it needs."""
    topics = {one.topic for one in run.facts}
    exported = {one.replica_id for one in run.plan.replicas if one.source == EXPORT}
    headers = {one.topic for one in run.facts if one.replica_id not in exported}
    replicas = Counter((one.copy, one.topic, one.partition) for one in run.facts)
    has = {
        "batch": bool(headers - {TXN_TOPIC}),
        "txn_state": TXN_TOPIC in topics,
        "offset_commit": OFFSETS_TOPIC in topics,
        "replica": any(count > 1 for count in replicas.values()),
        "segment": bool(headers),
        "record": any(one.source == LOG for one in run.plan.replicas),
        "deep": run.config.deep,
    }
    result: dict[str, str | None] = {}
    for detector in DETECTORS:
        missing = [_NEEDS[need] for need in detector.NEEDS if not has[need]]
        result[detector.CODE] = f"not attempted: needs {' and '.join(missing)}" if missing else None
    version = parsed(run.config.kafka_version)
    is_safe = all(is_fixed(code, label, version) for code, label in FIXES if code == "offset_race")
    if is_safe and result["offset_race"] is None:
        result["offset_race"] = (
            f"not attempted: Kafka {run.config.kafka_version} has the fixes of KAFKA-17507 and KAFKA-17877"
        )
    return result


def doubts(run: Run) -> list[str]:
    """Why a verdict of `passed` would be too much; empty when nothing stands against it."""
    reasons = []
    if not run.facts:
        reasons.append("no Kafka log files were found")
    elif not any(one["batch_count"] for one in run.ingested.segments) and any(
        one["size_bytes"] for one in run.ingested.segments
    ):
        reasons.append("no batch could be read from any file")
    for absent in covered.absent_partitions(run.plan):
        if absent.topic != OFFSETS_TOPIC or _is_listed(run, absent):
            reasons.append(
                f"{absent.topic}-{absent.partition} is not in the copy although its checkpoint names it "
                f"(high watermark {absent.high_watermark})"
            )
    for one in covered.cut_short(run.plan, run.facts):
        reasons.append(
            f"{one.topic}-{one.partition} ends at {one.log_end_offset}, below its high watermark "
            f"{one.high_watermark}: a segment is missing"
        )
    damages: Counter[tuple[str, int, str]] = Counter()
    for row in damage_rows(run):
        label, is_active = row[8], row[12]
        if label == "segment_overlap" or (label in ("torn_tail", "zero_tail") and is_active):
            continue
        damages[row[1], row[2], label] += 1
    for (topic, partition, label), count in sorted(damages.items()):
        reasons.append(f"{topic}-{partition}: {count} damaged {plural(count, 'place')} ({label})")
    reasons += _untimed(run)
    for path in run.plan.unread:
        verb = "holds" if path.reason in TEXT_REASONS else "could not be read:"
        reasons.append(f"{path.name} {verb} {path.detail}")
    return reasons


def _untimed(run: Run) -> list[str]:
    """Topics whose markers nobody could hold against the coordinator, because the clocks were too far apart."""
    only = {"alignment": ("other_clock",)}
    untimed: Counter[str] = Counter()
    for rows in stored.pieces(silver.PARTITION_TXN, run.output, run.run_id, ("topic",), only):
        untimed.update(rows["topic"].to_pylist())
    return [
        f"{counted(count, 'marker')} of {topic} not judged: "
        "the brokers' clocks differ by more than clock_skew_ms"
        for topic, count in sorted(untimed.items())
    ]


def _is_listed(run: Run, absent: covered.Absent) -> bool:
    """Whether transactions name the partition; offsets of plain groups alone are nothing to audit here."""
    name = f"{absent.topic}\x00{absent.partition}"
    listed = run.silver(silver.TRANSACTION).filter(
        F.exists(
            "partitions",
            lambda one: (
                F.concat(one["topic"], F.lit("\x00"), one["partition"].cast("string")) == name
            ),
        )
    )
    return not listed.isEmpty()


def counts(findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Findings by severity, code, certainty and status."""
    open_ones = [one for one in findings if one["status"] in ("new", "open")]
    return {
        "by_severity": dict(Counter(one["severity"] for one in open_ones)),
        "by_certainty": dict(Counter(one["certainty"] for one in open_ones)),
        "by_class": dict(Counter(f"{one['code']}/{one['class']}" for one in open_ones)),
        "by_status": dict(Counter(one["status"] for one in findings)),
    }


def detectors(attempts: dict[str, str | None]) -> dict[str, str]:
    """Detector code -> `judged`, or why it was not attempted."""
    return {code: reason or "judged" for code, reason in attempts.items()}


def as_of_ms(run: Run) -> int | None:
    """Newest broker-stamped time in any log, or what the user gave."""
    if run.config.as_of_ms is not None:
        return run.config.as_of_ms
    return max(
        (one.read_until_ms for one in run.facts if one.read_until_ms is not None), default=None
    )


def coverage(run: Run) -> dict[str, Any]:
    """What was read: brokers, partitions, files, bytes, times, and what was left aside."""
    segments = run.ingested.segments
    return {
        "brokers": sorted({one.broker_id for one in run.facts if one.broker_id is not None}),
        "copies": len({one.copy for one in run.facts}),
        "partitions": len({(one.copy, one.topic, one.partition) for one in run.facts}),
        "replicas": len(run.facts),
        "sources": dict(sorted(Counter(one.source for one in run.plan.replicas).items())),
        "segments": len(segments),
        "bytes": sum(one["size_bytes"] for one in segments),
        "readable_bytes": sum(one["readable_bytes"] for one in segments),
        "batches": sum(one["batch_count"] for one in segments),
        "records": sum(one["record_count"] for one in segments),
        "markers": sum(one["marker_count"] for one in segments),
        "first_broker_ms": min(
            (one.first_broker_ms for one in run.facts if one.first_broker_ms), default=None
        ),
        "last_broker_ms": as_of_ms(run),
        "is_one_instant": all(one.is_one_instant for one in run.facts) if run.facts else False,
        "coordinator_partitions": {
            str(copy): ("all read" if everything.is_read else "not all read")
            for copy, everything in sorted(run.coverage.everything.items())
        },
        "skipped_files": len(run.plan.skipped),
        "skipped": left_aside(run.plan.skipped),
        "damaged_places": len(run.ingested.unreadable),
    }


def left_aside(skipped: Iterable[Skipped]) -> list[str]:
    """Files that were not read: a line for each reason, with how many and the first of their names."""
    names: dict[str, list[str]] = defaultdict(list)
    for one in skipped:
        names[f"{one.reason}: {one.detail}"].append(one.name)
    lines = []
    for reason, held in sorted(names.items()):
        more = f", ... and {len(held) - NAMED:,} more" if len(held) > NAMED else ""
        lines.append(
            f"{reason} ({counted(len(held), 'file')}): {', '.join(sorted(held)[:NAMED])}{more}"
        )
    return lines
