"""Whether a sequence can have wrapped in what was read, so that histories need not look for it."""

from __future__ import annotations

import pyarrow.compute as pc

from pipeline.spark import stored
from schemas import bronze
from schemas.codes import MAX_SEQUENCE, NO_SEQUENCE

_SAFE = MAX_SEQUENCE // 4
"""Below it neither a batch nor the step between two of them comes near the wrap, nor seems to go back over it."""


def may_wrap(output: str, run_id: str) -> bool:
    """Whether a batch of the run has a sequence or a length from which 2147483647 can be passed.

    Args:
        output: Output root.
        run_id: The run.
    """
    columns = ("base_sequence", "base_offset", "last_offset")
    for rows in stored.pieces(bronze.BATCH, output, run_id, columns):
        sequences = pc.min_max(rows["base_sequence"])
        longest = pc.max(pc.subtract(rows["last_offset"], rows["base_offset"])).as_py()
        lowest, highest = sequences["min"].as_py(), sequences["max"].as_py()
        if lowest is None or longest is None:
            continue
        if lowest < NO_SEQUENCE or highest >= _SAFE or longest >= _SAFE:
            return True
    return False
