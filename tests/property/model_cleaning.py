"""What the log cleaner leaves of the model's internal topics."""

from __future__ import annotations

from tests import builders
from tests.property.model_types import OFFSETS_TOPIC, TXN_TOPIC, Entry


def cleaned(rows: list[tuple[int, Entry]], topic: str, until: int) -> list[tuple[int, Entry]]:
    """Return what a log cleaner leaves of an internal topic whose first `until` rows are dirty.

    The newest record of each key stays, aborted data go, markers stay until their delete horizon, and a producer's
    last batch stays, emptied (`Cleaner.cleanInto`).
    """
    dirty = rows[:until]
    aborted = _aborted(dirty) if topic == OFFSETS_TOPIC else set()
    newest = {
        (entry.key, entry.transactional_id): offset
        for offset, entry in dirty
        if entry.key is not None and offset not in aborted
    }
    last = {entry.producer_id: offset for offset, entry in dirty if entry.kind == "commit"}
    kept = []
    for offset, entry in dirty:
        is_newest = newest.get((entry.key, entry.transactional_id)) == offset
        if entry.kind == "marker" or (is_newest and offset not in aborted):
            kept.append((offset, entry))
        elif (
            entry.producer_id >= 0 and entry.kind == "commit" and last[entry.producer_id] == offset
        ):
            kept.append((offset, entry._replace(is_emptied=True)))
    return kept + rows[until:]


def _aborted(rows: list[tuple[int, Entry]]) -> set[int]:
    """Offsets of data that an ABORT marker within the rows ended."""
    open_by: dict[int, list[int]] = {}
    aborted: set[int] = set()
    for offset, entry in rows:
        if entry.kind == "commit" and entry.producer_id >= 0:
            open_by.setdefault(entry.producer_id, []).append(offset)
        elif entry.kind == "marker":
            mine = open_by.pop(entry.producer_id, [])
            if entry.outcome == builders.ABORT:
                aborted |= set(mine)
    return aborted


def cleanable(rows: list[tuple[int, Entry]], topic: str) -> int:
    """Return how many of the rows lie before the first that is not decided yet (the LSO)."""
    open_by: dict[int, int] = {}
    for index, (_, entry) in enumerate(rows):
        if topic == TXN_TOPIC or entry.producer_id < 0:
            continue
        if entry.kind == "marker":
            open_by.pop(entry.producer_id, None)
        elif entry.transactional:
            open_by.setdefault(entry.producer_id, index)
    return min(open_by.values(), default=len(rows))
