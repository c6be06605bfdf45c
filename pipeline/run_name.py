"""A run's name: the newest time at the ends of the logs, and a hash of input and configuration.

The name is needed before anything is read, because all rows carry it. So it takes the newest time that a
broker stamped into the last batches of the newest segments; where records are out of order, the moment that
the verdict is about (`as_of_ms` of the summary) may be a little later. Texts and compressed archives have no end to
look at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from pipeline.config import Config
from pipeline.spark.files import EXPORT, TEXT, is_forward_only, kind_of, opened
from pipeline.spark.plan import Plan, SourceFile
from pipeline.wire.batch import Damage
from pipeline.wire.limits import DEFAULT_LIMITS
from pipeline.wire.scan import scan
from schemas.codes import METADATA_TOPIC, OFFSETS_TOPIC, TXN_TOPIC

TAIL_BYTES = 64 << 10
"""How much of a segment's end is looked at."""
MAX_FILES = 500
"""Segments whose ends are looked at: those of internal topics first, all of whose batches brokers stamp."""
_INTERNAL = (TXN_TOPIC, OFFSETS_TOPIC, METADATA_TOPIC)
_LOG_APPEND_TIME = 1


def run_name(plan: Plan, config: Config) -> str:
    """`20261126T235428Z-31038f20`; `run-31038f20` where no log ends with a time that a broker stamped."""
    digest = hashlib.sha256((plan.fingerprint() + config.fingerprint()).encode()).hexdigest()[:8]
    as_of_ms = config.as_of_ms if config.as_of_ms is not None else newest_ms(plan.files)
    try:
        moment = datetime.fromtimestamp((as_of_ms or -1) / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"run-{digest}"
    return f"{moment:%Y%m%dT%H%M%SZ}-{digest}" if as_of_ms is not None else f"run-{digest}"


def newest_ms(files: Iterable[SourceFile]) -> int | None:
    """Newest broker-stamped time in the tails of each partition's last segment, in ms; None where there is none."""
    last: dict[int, SourceFile] = {}
    for file in files:
        known = last.get(file.replica_id)
        if file.kind == "log" and (known is None or file.base_offset >= known.base_offset):
            last[file.replica_id] = file
    chosen = sorted(last.values(), key=lambda one: (one.topic not in _INTERNAL, one.name))
    times = [time for file in chosen[:MAX_FILES] for time in _times(file)]
    return max(times, default=None)


def _times(file: SourceFile) -> Iterator[int]:
    if kind_of(file.path) in (TEXT, EXPORT) or is_forward_only(file.path):
        return  # Text has no batches to look at, and of a compressed file the end is as far as the whole.
    try:
        with opened(file.path) as source:
            start = max(source.size - TAIL_BYTES, 0)
            tail = source.read_at(start, min(TAIL_BYTES, source.size))
    except OSError:
        return  # The ingest reads the file too, and says what is wrong with it.

    def read_at(position: int, length: int) -> bytes:
        return tail[position : position + length]

    for found in scan(read_at, len(tail), limits=DEFAULT_LIMITS):
        if isinstance(found, Damage):
            continue
        arrays = found.arrays
        is_stamped = (arrays.timestamp_type == _LOG_APPEND_TIME) | (
            arrays.is_control & (arrays.producer_id >= 0)
        )
        if file.topic in _INTERNAL:
            is_stamped = is_stamped | True
        stamped = arrays.max_timestamp_ms[is_stamped & (arrays.max_timestamp_ms >= 0)]
        if len(stamped):
            yield int(stamped.max())
