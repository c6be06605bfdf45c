"""What a copy of the model's cluster holds: files, or the tuples that decoding them gives.

A copy has a moment for each broker and partition: one for all after a clean stop or a crash, as
many as there are files when it is taken while the brokers run.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pipeline.wire.batch import Batch, increment_sequence
from tests import builders, log_layout
from tests.property.broker_model import Model
from tests.property.model_cleaning import cleanable, cleaned
from tests.property.model_types import Entry, TopicPartition

Place = tuple[int, TopicPartition]


@dataclass(frozen=True)
class Copy:
    """Moments (model time, ms) at which each broker's partitions were read.

    `is_clean` after an orderly stop of all brokers.
    """

    moments: dict[Place, int]
    is_clean: bool


def places(model: Model) -> list[Place]:
    """Return every replica in a stable order."""
    return sorted(
        (broker, name) for name, part in model.partitions.items() for broker in part.replicas
    )


def at_once(model: Model, when: int | None = None, *, is_clean: bool = True) -> Copy:
    """Return a copy of one instant, the present when not given; not clean is a crash image."""
    return Copy(dict.fromkeys(places(model), when or model.now), is_clean)


def while_running(model: Model, rng: random.Random, spread_ms: int = 60_000) -> Copy:
    """Return a copy whose files were read at random moments up to `spread_ms` apart."""
    first = min((p.entries[0].true_ms for p in model.partitions.values() if p.entries), default=0)
    start = rng.randint(first, max(first, model.now - 1))
    moments = {place: min(model.now, start + rng.randint(0, spread_ms)) for place in places(model)}
    return Copy(moments, is_clean=False)


def entries(model: Model, copy: Copy, place: Place) -> list[tuple[int, Entry]]:
    """Return (base offset, entry) of what a replica's copy holds."""
    part = model.partitions[place[1]]
    out, offset, rows = [], part.base, part.entries
    if place[0] in part.tails:
        count, lost = part.tails[place[0]]
        rows = [*rows[:count], *lost]
    for entry in rows:
        if entry.true_ms > copy.moments[place]:
            break
        out.append((offset, entry))
        offset += entry.count
    return out


def encode(offset: int, entry: Entry) -> bytes:
    """Return the batch's bytes; the codec follows from the producer id."""
    if entry.kind == "marker":
        return builders.marker(
            offset, entry.outcome, producer_id=entry.producer_id, producer_epoch=entry.epoch,
            coordinator_epoch=entry.coordinator_epoch, timestamp_ms=entry.time_ms,
            partition_leader_epoch=entry.leader_epoch,
        )  # fmt: skip
    has_producer = entry.kind in ("data", "commit")
    records: list[builders.Rec]
    if entry.is_emptied:
        records = []
    elif entry.key is not None:
        records = [builders.Rec(entry.key, entry.value)]
    else:
        name = f"{entry.producer_id}/{entry.true_ms}/".encode()
        records = [builders.Rec(b"k%d" % at, name + b"%d" % at) for at in range(entry.count)]
    return builders.batch(
        offset, records, producer_id=entry.producer_id if has_producer else -1,
        producer_epoch=entry.epoch if has_producer else -1, base_sequence=entry.sequence,
        transactional=has_producer and entry.transactional, timestamp_ms=entry.time_ms,
        codec=entry.producer_id % 5 if entry.kind == "data" else builders.NONE,
        partition_leader_epoch=entry.leader_epoch,
        last_offset_delta=entry.count - 1 if entry.is_emptied else None,
    )  # fmt: skip


def batches(model: Model, copy: Copy, place: Place) -> list[Batch]:
    """Return what decoding the replica's one segment has to give."""
    out, position = [], 0
    for offset, entry in entries(model, copy, place):
        data = encode(offset, entry)
        attributes = struct.unpack_from(">h", data, 21)[0]
        crc = struct.unpack_from(">I", data, 17)[0]
        is_marker = entry.kind == "marker"
        has_producer = entry.kind != "txn"
        last = entry.sequence
        if last >= 0:
            last = increment_sequence(entry.sequence, entry.count - 1)
        out.append(Batch(
            position=position, size_bytes=len(data), base_offset=offset,
            last_offset=offset + entry.count - 1,
            partition_leader_epoch=entry.leader_epoch, magic=2,
            crc=crc, attributes=attributes, codec=attributes & 7, timestamp_type=0,
            is_transactional=bool(attributes & 16), is_control=is_marker, delete_horizon_ms=None,
            base_timestamp_ms=entry.time_ms, max_timestamp_ms=entry.time_ms,
            producer_id=entry.producer_id if has_producer else -1,
            producer_epoch=entry.epoch if has_producer else -1, base_sequence=entry.sequence,
            last_sequence=last, records_count=entry.count,
            control_type=entry.outcome if is_marker else None,
            coordinator_epoch=entry.coordinator_epoch if is_marker else None,
        ))  # fmt: skip
        position += len(data)
    return out


def records(model: Model, copy: Copy, place: Place) -> list[tuple[int, bytes, bytes | None]]:
    """Return (offset, key, value) of every record of an internal topic, markers left out."""
    rows = entries(model, copy, place)
    return [(offset, e.key, e.value) for offset, e in rows if e.key is not None]


def producer_state(
    rows: list[tuple[int, Entry]],
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return snapshot entries at the end of `rows` and the `.txnindex` entries within."""
    state: dict[int, list[int]] = {}
    aborted: list[tuple[int, ...]] = []
    for offset, entry in rows:
        if entry.producer_id < 0 or entry.kind == "txn":
            continue
        mine = state.setdefault(
            entry.producer_id, [entry.producer_id, entry.epoch, -1, -1, 0, -1, -1, -1]
        )
        if mine[1] != entry.epoch:
            mine[1:5] = [entry.epoch, -1, -1, 0]
        mine[5] = entry.time_ms
        if entry.kind == "marker":
            first, mine[6], mine[7] = mine[7], entry.coordinator_epoch, -1
            if first >= 0 and entry.outcome == builders.ABORT:
                still_open = [other[7] for other in state.values() if other[7] >= 0]
                stable = min(still_open, default=offset + 1)
                aborted.append((entry.producer_id, first, offset, stable))
            continue
        mine[2:5] = [
            increment_sequence(entry.sequence, entry.count - 1),
            offset + entry.count - 1,
            entry.count - 1,
        ]
        if entry.transactional and mine[7] < 0:
            mine[7] = offset
    return [tuple(mine) for mine in state.values()], aborted


def write(model: Model, copy: Copy, root: Path, *, rng: random.Random | None = None) -> Path:
    """Write the copy's log directories under `root`.

    Args:
        rng: rolls segments at random places, those of the internal topics often shortly before their end, and leaves
            torn tails and old checkpoints in copies that are not clean; None writes one whole segment a partition.
    """
    dirs = {number: log_layout.LogDir(root, number) for number in range(1, model.brokers + 1)}
    for place in places(model):
        rows = entries(model, copy, place)
        log_dir, (topic, partition) = dirs[place[0]], place[1]
        log_dir.partition(topic, partition)
        log_dir.log_ends.setdefault((topic, partition), 0)
        rolls = [0, len(rows)]
        if rng is not None and len(rows) > 8:
            rolls[1:1] = sorted(rng.sample(range(1, len(rows)), k=rng.randint(0, 2)))
            if topic.startswith("__") and rng.random() < 0.3:
                rolls = sorted({*rolls, max(1, len(rows) - rng.randint(2, 12))})
        _write_segments(model, log_dir, place, rows, rolls, is_live=not copy.is_clean)
        if copy.is_clean and rows:
            data = log_layout.snapshot(producer_state(rows)[0])
            end_offset = rows[-1][0] + rows[-1][1].count
            log_dir.sidecar(topic, partition, end_offset, "snapshot", data)
        if rng is not None and not copy.is_clean and rows and rng.random() < 0.5:
            _tear(log_dir, place[1], rows[rolls[-2]][0], encode(*rows[-1]), rng)
    for log_dir in dirs.values():
        old = {} if copy.is_clean or rng is None else {
            name: rng.randint(0, end) for name, end in log_dir.log_ends.items()
        }  # fmt: skip
        acknowledged = {
            place[1]: _end(model, place)
            for place in places(model)
            if dirs[place[0]] is log_dir and place[0] in model.partitions[place[1]].tails
        }
        log_dir.finish(clean=copy.is_clean, high_watermarks=old | acknowledged)
    return root


def _end(model: Model, place: Place) -> int:
    """Offset behind the last batch that a dead leader's followers had as well."""
    part = model.partitions[place[1]]
    return part.base + sum(entry.count for entry in part.entries[: part.tails[place[0]][0]])


def _write_segments(
    model: Model,
    log_dir: log_layout.LogDir,
    place: Place,
    rows: list[tuple[int, Entry]],
    rolls: list[int],
    *,
    is_live: bool,
) -> None:
    """Write what cleaner and retention left of the rows, in the segments that begin at `rolls`.

    A live copy may hold the first segment as it was, while the cleaner merged the next ones into it and removed them.
    """
    (topic, partition), closed = place[1], rolls[-2]
    rng = random.Random(f"{place}{len(rows)}")
    kept, lost = dict(rows), range(0)
    if topic.startswith("__") and rng.random() < model.cleaning:
        dirty = min(closed, cleanable(rows, topic))
        if is_live and dirty == closed and len(rolls) > 3 and rng.random() < 0.4:
            dirty, lost = rolls[1], range(rolls[1], closed)
        kept = dict(cleaned(rows, topic, dirty))
        if dirty:
            known = rng.choice([dirty, lost.stop or dirty])
            end = rows[known][0] if known < len(rows) else rows[-1][0] + rows[-1][1].count
            log_dir.cleaner_offsets[topic, partition] = end
    elif closed and not topic.startswith("__") and rng.random() < model.deleting:
        log_dir.log_starts[topic, partition] = rows[rng.randint(1, closed)][0]
    for start, end in pairwise(rolls):
        if start not in lost:
            part = [(offset, kept[offset]) for offset, _ in rows[start:end] if offset in kept]
            _write_segment(log_dir, place[1], rows, start, end, part)


def _write_segment(
    log_dir: log_layout.LogDir,
    name: TopicPartition,
    rows: list[tuple[int, Entry]],
    start: int,
    end: int,
    part: list[tuple[int, Entry]],
) -> None:
    base = rows[start][0] if rows else 0
    log_dir.segment(*name, [encode(offset, entry) for offset, entry in part], base_offset=base)
    if start:
        data = log_layout.snapshot(producer_state(rows[:start])[0])
        log_dir.sidecar(*name, base, "snapshot", data)
    aborted = [entry for entry in producer_state(rows[:end])[1] if entry[2] >= base]
    if aborted:
        log_dir.sidecar(*name, base, "txnindex", log_layout.txn_index(aborted))


def _tear(
    log_dir: log_layout.LogDir, name: TopicPartition, base: int, last: bytes, rng: random.Random
) -> None:
    file = log_dir.partition(*name) / log_layout.segment_name(base)
    with file.open("ab") as log:
        log.write(last[: rng.randint(1, len(last) - 1)])
