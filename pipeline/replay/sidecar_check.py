"""What stands beside a log, held against the log itself.

A sidecar may be older or newer than a log that was copied from a running broker, is missing after an unclean stop, and
tells of what the cleaner removed. What is said here holds in spite of all that.

Source: `OffsetIndex`, `TimeIndex`, `LeaderEpochFileCache`, `ProducerStateManager.writeSnapshot`; what brokers since
0.11.0 write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.replay.index_check import IndexProblem
from pipeline.replay.statement import Place, Statement
from pipeline.text import counted
from pipeline.wire.producer_snapshot import SnapshotEntry

_NONE = -1


class LogPlace(NamedTuple):
    """One replica: how far its files can be held against one another.

    Attributes:
        copy: Copy of the cluster.
        topic: Topic.
        partition: Partition.
        broker_id: Broker, where known.
        history_start_offset: Below it history was cut.
        log_start_offset: `log-start-offset-checkpoint`, else 0.
        log_end_offset: Offset behind the last readable batch.
        is_stopped: Its broker was stopped cleanly: all its files are of one instant.
        recovery_point: Below it everything was flushed; None when unknown.
        is_cleaned: A cleaner works on the topic: it replaces segments together with their sidecars.
    """

    copy: int
    topic: str
    partition: int
    broker_id: int | None
    history_start_offset: int
    log_start_offset: int
    log_end_offset: int
    is_stopped: bool
    recovery_point: int | None
    is_cleaned: bool

    @property
    def name(self) -> str:
        """Topic and partition as the folder has them."""
        return f"{self.topic}-{self.partition}"

    def is_settled(self, offset: int) -> bool:
        """Whether log and sidecars have to agree there: a clean stop, or flushed and never replaced."""
        if self.is_stopped:
            return True
        return (
            self.recovery_point is not None and offset < self.recovery_point and not self.is_cleaned
        )


def _said(
    place: LogPlace, label: str, offset: int, title: str, explanation: str, *,
    severity: str = "major", producer_id: int | None = None, proof: str | None = None,
) -> Statement:  # fmt: skip
    is_settled = place.is_settled(offset)
    broker = "" if place.broker_id is None else f" Broker {place.broker_id}."
    why = (
        ""
        if is_settled
        else " Log and sidecar may be of different moments: the broker ran, or crashed."
    )
    return Statement(
        place.copy, label, severity if is_settled else "info", "proven", title,
        f"{explanation}{broker}{why}", topic=place.topic, partition=place.partition,
        producer_id=producer_id, first_offset=offset,
        places=(Place(place.topic, place.partition, offset, proof),) if proof else (),
    )  # fmt: skip


def indexes(place: LogPlace, file: str, problems: Iterable[IndexProblem]) -> list[Statement]:
    """One statement for each index of a segment that has wrong entries.

    Args:
        place: The replica.
        file: Name of the log, fit to be shown.
        problems: Of all parts of the segment.
    """
    found: dict[str, IndexProblem] = {}
    for one in problems:
        known = found.get(one.kind)
        found[one.kind] = (
            one
            if known is None
            else known._replace(entry_count=known.entry_count + one.entry_count)
        )
    said = []
    for kind, one in sorted(found.items()):
        what = (
            f"position {one.value}, where no batch begins that can hold it (the nearest one before "
            f"begins at {one.expected})"
            if kind == "index"
            else f"largest time {one.value}, the batch that holds it says {one.expected}"
        )
        label = "index_mismatch" if kind == "index" else "timeindex_mismatch"
        said.append(_said(
            place, label, one.offset, f".{kind} of {file} does not fit its log",
            f"{counted(one.entry_count, 'entry does', 'entries do')} not fit. The first: "
            f"offset {one.offset} has {what}.",
            severity="major" if kind == "index" else "minor",
        ))  # fmt: skip
    return said


def leader_epochs(
    place: LogPlace, listed: Sequence[tuple[int, int]], starts: Iterable[tuple[int, int]]
) -> Statement | None:
    """The first batch whose leader epoch the file `leader-epoch-checkpoint` does not explain.

    Only batches at or above the greater of the log start and the file's first start are judged: each of their change
    points has to be listed with a start at or before it. A broker that runs writes newer epochs to the log first.

    Args:
        place: The replica.
        listed: (epoch, start offset) of the file.
        starts: (epoch, first offset) wherever the log changes its epoch.
    """
    if not listed:
        return None
    known = dict(listed)
    from_offset = max(place.log_start_offset, min(known.values()))
    for epoch, offset in sorted(starts, key=lambda one: one[1]):
        is_newer = not place.is_stopped and epoch > max(known)
        if offset < from_offset or is_newer or known.get(epoch, offset + 1) <= offset:
            continue
        says = f"starts it at {known[epoch]}" if epoch in known else "does not list it"
        return _said(
            place, "leader_epoch_mismatch", offset,
            f"leader-epoch-checkpoint of {place.name} does not fit its log",
            f"The batch at offset {offset} begins leader epoch {epoch}, and the file {says}. Followers "
            "truncate by this file (KIP-101).",
            proof="first batch of the leader epoch",
        )  # fmt: skip
    return None


class LastData(NamedTuple):
    """A producer's last data batch in front of an offset; the sequence wraps as on disk."""

    base_offset: int
    last_offset: int
    last_sequence: int
    producer_epoch: int
    timestamp_ms: int


class LastMarker(NamedTuple):
    """A producer's last marker in front of an offset."""

    offset: int
    producer_epoch: int
    coordinator_epoch: int
    timestamp_ms: int


def snapshot(
    place: LogPlace,
    end_offset: int,
    entry: SnapshotEntry,
    data: LastData | None,
    marker: LastMarker | None,
    open_from: int | None,
) -> Statement | None:
    """What an entry of a producer snapshot says otherwise than the log.

    Epoch, last sequence and start of the open transaction equal the replay. The last offset is the data's or the
    marker's, the delta the batch's or 0, the time the data's, the marker's or none, the coordinator epoch the
    replay's or none: brokers of different versions write them differently. What rests on batches that are no longer
    in the log is context; a producer that is not in the file has expired.

    Args:
        place: The replica.
        end_offset: The snapshot's offset: it holds what lies before it.
        entry: The entry.
        data: Last data batch in front of the snapshot's offset.
        marker: Last marker in front of it.
        open_from: First offset of the transaction that was open there, from the log; None when none was.
    """
    start = place.history_start_offset
    if end_offset > place.log_end_offset or end_offset <= start:
        return None
    rests_on = [] if data is None else [data.base_offset]
    rests_on += [entry.last_offset] if entry.last_offset != _NONE else []
    rests_on += [] if marker is None else [marker.offset]
    if not rests_on or min(rests_on) < start:
        return None
    wrong = _difference(entry, data, marker)
    is_known = entry.current_txn_first_offset == _NONE or entry.current_txn_first_offset >= start
    if wrong is None and is_known and (open_from is None or open_from >= start):
        held = _NONE if open_from is None else open_from
        if held != entry.current_txn_first_offset:
            wrong = f"open transaction from {_text(entry.current_txn_first_offset)}, the log {_text(held)}"
    if wrong is None:
        return None
    return _said(
        place, "snapshot_mismatch", end_offset,
        f"producer snapshot {end_offset} of {place.name} does not fit its log",
        f"Producer {entry.producer_id}: the snapshot says {wrong}. A broker that starts from it refuses or "
        "accepts the wrong batches.",
        producer_id=entry.producer_id,
    )  # fmt: skip


def _text(value: int) -> str:
    return "none" if value == _NONE else str(value)


def _difference(
    entry: SnapshotEntry, data: LastData | None, marker: LastMarker | None
) -> str | None:
    """The first field that no broker version explains."""
    is_ended = marker is not None and (data is None or marker.offset > data.last_offset)
    epoch = marker.producer_epoch if marker is not None and is_ended else _NONE
    if data is not None and not is_ended:
        epoch = data.producer_epoch
    if entry.producer_epoch != epoch:
        return f"epoch {entry.producer_epoch}, the log {epoch}"
    # A marker of a higher epoch empties what the broker keeps of the producer's batches.
    kept = data if data is not None and data.producer_epoch == epoch else None
    ends = {_NONE if kept is None else kept.last_offset}
    times = {_NONE} | (set() if data is None else {data.timestamp_ms})
    if marker is not None:
        ends |= {marker.offset} if is_ended else set()
        times |= {marker.timestamp_ms}
        if entry.coordinator_epoch not in (_NONE, marker.coordinator_epoch):
            return (
                f"coordinator epoch {entry.coordinator_epoch}, the log {marker.coordinator_epoch}"
            )
    sequence = _NONE if kept is None else kept.last_sequence
    delta = 0 if kept is None else kept.last_offset - kept.base_offset
    for what, found, known in (
        ("last offset", entry.last_offset, ends),
        ("last sequence", entry.last_sequence, {sequence}),
        ("delta", entry.offset_delta, {0, delta}),
        ("time", entry.timestamp_ms, times),
    ):
        if found not in known:
            return f"{what} {found}, the log {_text(max(known))}"
    return None
