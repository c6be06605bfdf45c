"""`visibility`: aborted records that are shown to read_committed consumers, or committed ones that are hidden.

Promise: isolation.level=read_committed shows what was committed and nothing that was aborted (KIP-98; Kafka:
`TransactionIndex`).

Rule: an ABORT marker of a transaction with data that `.txnindex` does not list (`aborted_exposed`); an entry of
`.txnindex` whose transaction ends with COMMIT (`committed_hidden`); an entry whose first offset or marker the log does
not have (`index_wrong`). Only below the recovery point or after a clean stop, above the cleaner's offset, for
transactions that begin in retained history, and for missing entries only when the copy holds any `.txnindex`.

Normal: entries of empty transactions up to 2.7, entries of transactions that the cleaner removed, a file that is older
or newer than its log in a copy of a running broker.

Refuted by: the `.txnindex` of the same segment in another copy that lists it right.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from pipeline.detect.stated import stated

CODE = "visibility"
NEEDS = ("segment",)
FIXED_IN = {
    "aborted_exposed": "by the cleaner: KAFKA-13727 in 2.8.2, 3.0.2, 3.1.1, 3.2.0",
    "*": "no single cause: a lost or restored .txnindex, a segment copied without it",
}
_REBUILD = (
    "Stop the broker, move the segment's .index, .timeindex and .txnindex away and remove .kafka_cleanshutdown: the "
    "broker makes them anew from the log when it starts. Or delete this replica's partition folder while other "
    "replicas are in sync: it is fetched again."
)
_ADVICE = {
    "aborted_exposed": f"Consumers may have processed aborted records: check downstream. {_REBUILD}",
    "committed_hidden": f"Consumers have skipped committed records: read them again after the repair. {_REBUILD}",
    "index_wrong": _REBUILD,
}


def find(*, txn_index: DataFrame) -> DataFrame:
    """One finding a transaction.

    Args:
        txn_index: What `pipeline.replay.visibility` says.
    """
    return stated(
        txn_index,
        code=CODE,
        advice=_ADVICE,
        refuted_by="the .txnindex of the same segment in another copy that lists it right",
    )
