"""What the lines of a dump tell only together: quoted lines, versions and sizes."""

from __future__ import annotations

from pipeline.wire import dump_text_keyed as keyed
from pipeline.wire.batch import Batch
from pipeline.wire.dump_text_keyed import Entry
from pipeline.wire.group_offsets import OffsetCommit
from pipeline.wire.txn_state import TxnEntry

_QUOTED_MOST = 64
"""How far back the batch may lie that a true one follows."""


def has_wrong_key_size(entry: Entry, printed: int | None) -> bool:
    if printed is None:
        return False
    if isinstance(entry, TxnEntry):
        return printed != 4 + len(entry.transactional_id.encode("utf-8", "replace"))
    if isinstance(entry, OffsetCommit):
        names = entry.group_id + entry.topic
        return printed != 10 + len(names.encode("utf-8", "replace"))
    return False


def without_quoted(
    batches: list[Batch], entries: list[tuple[int, int, Entry]]
) -> tuple[list[Batch], list[tuple[int, int, Entry]], list[Batch]]:
    """Drops batch lines that stand inside a payload: the true ones meet around them, to the byte."""
    kept: list[int] = []
    for index, batch in enumerate(batches):
        for back in range(1, min(len(kept), _QUOTED_MOST) + 1):
            before = batches[kept[-back]]
            if before.size_bytes > 0 and before.position + before.size_bytes == batch.position:
                if back > 1 and before.last_offset < batch.base_offset:
                    del kept[-back + 1 :]
                break
        kept.append(index)
    if len(kept) == len(batches):
        return batches, entries, []
    place = {index: at for at, index in enumerate(kept)}
    quoted = [batch for index, batch in enumerate(batches) if index not in place]
    moved = [(place[index], offset, entry) for index, offset, entry in entries if index in place]
    return [batches[index] for index in kept], moved, quoted


def with_versions(entries: list[tuple[int, int, Entry]]) -> list[tuple[int, int, Entry]]:
    """The transaction version, which decoders before 4.1 do not print.

    Under version 2 (KIP-890) each commit has an epoch of its own, and under none before: an id that
    once prepares a commit with the epoch behind that of its transaction has version 2.
    """
    ongoing: dict[str, tuple[int, int]] = {}
    second: set[str] = set()
    for _, _, one in entries:
        if not isinstance(one, TxnEntry) or one.value_version != 0:
            continue
        name, state = one.transactional_id, keyed.STATES[one.state]
        if state == "Ongoing":
            ongoing[name] = (one.producer_id, one.producer_epoch)
        elif state == "PrepareCommit" and (
            ongoing.get(name) == (one.producer_id, one.producer_epoch - 1)
        ):
            second.add(name)
    if not second:
        return entries
    return [
        (index, offset, one._replace(value_version=1, client_transaction_version=2))
        if isinstance(one, TxnEntry) and one.value_version == 0 and one.transactional_id in second
        else (index, offset, one)
        for index, offset, one in entries
    ]


def with_sizes(batches: list[Batch]) -> list[Batch]:
    """Sizes that are not printed, from where the next batch begins."""
    sized = list(batches)
    for at, batch in enumerate(sized[:-1]):
        gap = sized[at + 1].position - batch.position
        if batch.size_bytes == 0 and 0 < gap < 1 << 31:
            sized[at] = batch._replace(size_bytes=gap)
    return sized
