"""Offsets of a file ascend: the cross-check of the bytes that no checksum covers.

A batch at or below the end of its predecessor shows that one of the two lies. It is the
predecessor when this batch fits behind it at its true place, or when the next batch sides
with this one.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.wire.batch import Batch


def split_regressions(
    batches: Sequence[Batch], previous_last: int, upcoming: Sequence[int]
) -> tuple[list[Batch], list[Batch]]:
    """Separate the batches whose base offset cannot be right.

    Args:
        batches: in file order.
        previous_last: last offset before them, -1 at the start.
        upcoming: base offsets of up to two batches behind them, as their headers say.

    Returns:
        The batches that ascend, and the others.
    """
    kept: list[Batch] = []
    regressed: list[Batch] = []
    bases = [batch.base_offset for batch in batches] + list(upcoming)
    for index, batch in enumerate(batches):
        last = kept[-1].last_offset if kept else previous_last
        if batch.base_offset > last:
            kept.append(batch)
        elif kept and _is_liar(kept, previous_last, bases[index : index + 2]):
            regressed.append(kept.pop())
            kept.append(batch)
        else:
            regressed.append(batch)
    following = bases[len(batches) : len(batches) + 2]
    is_contradicted = kept and following and following[0] <= kept[-1].last_offset
    if is_contradicted and _is_liar(kept, previous_last, following):
        regressed.append(kept.pop())
    regressed.sort()
    return kept, regressed


def _is_liar(kept: list[Batch], previous_last: int, following: Sequence[int]) -> bool:
    """Whether the last kept batch, not the first of `following`, is out of place."""
    suspect = kept[-1]
    before = kept[-2].last_offset if len(kept) > 1 else previous_last
    if following[0] <= before:
        return False
    width = suspect.last_offset - suspect.base_offset + 1
    if following[0] == before + 1 + width:
        return True
    return len(following) > 1 and before < following[1] <= suspect.last_offset
