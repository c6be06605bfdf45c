"""`version_inferred`: what the formats in the log prove about the versions that wrote it.

Promise: none is broken; no broker is accused of a defect that its proven version has fixed (Kafka:
`TransactionLogValue`, `OffsetCommitValue`; KIP-890, KIP-848, KIP-1022).

Rule: transaction.version of the transactions (`transaction_version`); the greatest lower bound of all brokers' version
with the record that proves it, and a greater one that is proven of the leader of one leader epoch (`broker_version`);
offset commits that only the newer group coordinator writes (`group_coordinator`).

Normal: always; a log without such records proves nothing, which does not mean that it is old.

Refuted by: nothing but another log in the place of this one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from pipeline.detect.stated import stated

CODE = "version_inferred"
NEEDS = ("segment",)
FIXED_IN = "no defect"
_ADVICE = {
    "transaction_version": "Nothing where all are of version 2. Where some are below it and all brokers and clients "
    "are 4.0 or later: kafka-features.sh --bootstrap-server <host:port> upgrade --feature transaction.version=2.",
    "broker_version": "Give --kafka-version where the brokers are newer than this proves.",
    "group_coordinator": "Nothing to do.",
}


def find(*, version_bound: DataFrame) -> DataFrame:
    """One finding a class and copy.

    Args:
        version_bound: What `pipeline.replay.version_bounds` says.
    """
    return stated(
        version_bound,
        code=CODE,
        advice=_ADVICE,
        refuted_by="nothing but another log in the place of this one",
    )
