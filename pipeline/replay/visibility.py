"""Whether `.txnindex` hides exactly what was aborted.

A read_committed consumer gets the entries of `.txnindex` with each answer: from an entry's first offset on it skips
the producer's batches, up to the producer's ABORT marker. An aborted transaction that is not listed is shown; a listed
one that was committed is hidden.

Source: `TransactionIndex`, `UnifiedLog.collectAbortedTransactions`, `CompletedFetch` of the consumer; KIP-98.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.replay.sidecar_check import LogPlace
from pipeline.replay.statement import Place, Statement

ABORT, COMMIT = 0, 1


class Ended(NamedTuple):
    """A run that a marker ended; `first_offset` is None without transactional data."""

    producer_id: int
    first_offset: int | None
    marker_offset: int
    marker_type: int | None
    producer_epoch: int | None = None


class Listed(NamedTuple):
    """An entry of `.txnindex`; its last stable offset, which may lie before it, tells nothing of the log."""

    producer_id: int
    first_offset: int
    last_offset: int


def unmatched(aborted: Iterable[Ended], listed: Iterable[Listed]) -> list[Listed]:
    """Entries that name no ABORT marker of their producer: `judge` needs the other runs of theirs."""
    known = {(one.producer_id, one.marker_offset) for one in aborted}
    return [one for one in listed if (one.producer_id, one.last_offset) not in known]


def judge(
    place: LogPlace,
    aborted: Sequence[Ended],
    listed: Sequence[Listed],
    others: Mapping[int, Sequence[Ended]],
    *,
    has_index: bool,
) -> list[Statement]:
    """What readers of committed data see otherwise than they should.

    Only where log and sidecars have to agree, in complete history, and for transactions that begin there.

    Args:
        place: The replica.
        aborted: Its runs that an ABORT ended.
        listed: All entries of its `.txnindex` files.
        others: Producer id -> its runs with another marker, for the producers of `unmatched`.
        has_index: The copy holds `.txnindex` files at all, so one that is missing is empty.
    """
    said = []
    start = place.history_start_offset
    aborts = {(one.producer_id, one.marker_offset) for one in aborted}
    names = {(one.producer_id, one.last_offset): one for one in listed}
    for run in aborted:
        first = run.first_offset
        if first is None or first < start or not place.is_settled(run.marker_offset):
            continue
        entry = names.get((run.producer_id, run.marker_offset))
        if entry is None:
            if has_index:
                said.append(_exposed(place, run, first))
        elif entry.first_offset != first and entry.first_offset >= start:
            said.append(_wrong(
                place, entry, f"it begins at offset {entry.first_offset}, the transaction at {first}"
            ))  # fmt: skip
    for entry in listed:
        is_known = entry.first_offset >= start and entry.last_offset < place.log_end_offset
        if not is_known or not place.is_settled(entry.last_offset):
            continue
        if (entry.producer_id, entry.last_offset) not in aborts:
            said.append(_without_abort(place, entry, others.get(entry.producer_id, ())))
    return said


def _exposed(place: LogPlace, run: Ended, first: int) -> Statement:
    return _said(
        place, "aborted_exposed", run.producer_id, first, run.marker_offset,
        f"aborted records of {place.name} from offset {first} are shown to read_committed consumers",
        f"The ABORT marker at offset {run.marker_offset} ends a transaction of producer {run.producer_id} that "
        f"began at {first}, and no .txnindex lists it.",
        run.producer_epoch,
    )  # fmt: skip


def _without_abort(place: LogPlace, entry: Listed, runs: Sequence[Ended]) -> Statement:
    hidden = [
        one
        for one in runs
        if one.marker_type == COMMIT
        and one.first_offset is not None
        and entry.first_offset <= one.marker_offset
        and one.first_offset <= entry.last_offset
    ]
    if not hidden:
        return _wrong(place, entry, f"no ABORT marker is at offset {entry.last_offset}")
    one = hidden[0]
    return _said(
        place, "committed_hidden", entry.producer_id, entry.first_offset, entry.last_offset,
        f"committed records of {place.name} from offset {one.first_offset} are hidden",
        f".txnindex lists offsets {entry.first_offset} to {entry.last_offset} of producer {entry.producer_id} as "
        f"aborted; the marker at {one.marker_offset} is a COMMIT.",
    )  # fmt: skip


def _wrong(place: LogPlace, entry: Listed, why: str) -> Statement:
    return _said(
        place, "index_wrong", entry.producer_id, entry.first_offset, entry.last_offset,
        f"an entry of .txnindex of {place.name} does not fit its log",
        f"Producer {entry.producer_id}, aborted up to offset {entry.last_offset}: {why}. read_committed consumers "
        "skip too much or too little.",
    )  # fmt: skip


def _said(
    place: LogPlace, label: str, producer_id: int, first: int, last: int, title: str,
    explanation: str, epoch: int | None = None,
) -> Statement:  # fmt: skip
    return Statement(
        place.copy, label, "critical", "proven", title, explanation, topic=place.topic,
        partition=place.partition, producer_id=producer_id, producer_epoch=epoch,
        first_offset=first, last_offset=last,
        places=(
            Place(place.topic, place.partition, first, "first batch"),
            Place(place.topic, place.partition, last, "marker"),
        ),
    )  # fmt: skip
