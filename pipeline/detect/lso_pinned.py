"""`lso_pinned`: an open transaction at which read_committed consumers and the cleaner stop.

Promise: the last stable offset follows the log as transactions end (KIP-98; Kafka: `UnifiedLog.lastStableOffset`).

Rule: the oldest open run of each partition (`pinned`), with the records, bytes and time behind it and, where a cleaner
works, the compaction that it freezes. As severe as the finding of its transaction, else `info`.

Normal: every transaction pins while it is open; a copy of a running broker nearly always shows some.

Refuted by: the marker of the run, in a file that was copied later.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.stated import stated

CODE = "lso_pinned"
NEEDS = ("batch",)
FIXED_IN = "as hanging_transaction: 3.6 (KIP-890 verification), transaction.version 2 in 4.0"
_UNTIL = "Until then what waits behind it grows, and a compacted topic with it."
_ADVICE = {
    "pinned": "Nothing yet: nothing shows that the transaction is over its time. Wait for its deadline "
    "(transaction.timeout.ms) and audit a later copy. " + _UNTIL
}
_CONVICTED = (
    "End the transaction as its finding hanging_transaction of the same offset says. " + _UNTIL
)


def find(*, pinned_offset: DataFrame) -> DataFrame:
    """One finding a partition.

    Args:
        pinned_offset: What `pipeline.replay.pinning` says.
    """
    rows = stated(
        pinned_offset,
        code=CODE,
        advice=_ADVICE,
        refuted_by="the marker of the run, in a file that was copied later",
    )
    is_convicted = F.col("severity") != "info"
    advice = F.when(is_convicted, F.lit(_CONVICTED)).otherwise(F.col("advice"))
    return rows.withColumn("advice", advice)
