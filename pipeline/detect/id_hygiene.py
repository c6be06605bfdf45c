"""`id_hygiene`: transactional ids that are used in a way that weakens their protection.

Promise: an id is stable over restarts, so that a new instance fences the old one (KIP-98, KIP-447; Kafka:
`TransactionStateManager`).

Rule: at least `health.unbounded_ids` ids of one application, nine of ten with a single transaction (`unbounded_ids`);
ids that expired and came back (`idle_expired`); timeouts above `transaction_max_timeout_ms` (`timeout_above_max`); two
producer ids of one id that wrote to one partition in turn (`interleaved_producers`).

Normal: many ids in a short copy that happens to hold one transaction of each.

Refuted by: the application's configuration of transactional.id and transaction.timeout.ms.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.stated import stated

CODE = "id_hygiene"
NEEDS = ("txn_state",)
FIXED_IN = "no defect: how applications choose their ids"
_ADVICE = {
    "unbounded_ids": "Derive transactional.id from something stable (partition, task, instance number), never from a "
    "value made anew. Flink makes new ids for each checkpoint unless its transaction naming strategy is POOLING.",
    "idle_expired": "Raise transactional.id.expiration.ms of the brokers above the longest pause, or make the producer "
    "anew after one.",
    "timeout_above_max": "Compare transaction.max.timeout.ms of the brokers; set transaction_max_timeout_ms of this "
    "audit to it. Lower the producers' transaction.timeout.ms: so long a crashed one holds consumers up.",
    "interleaved_producers": "Stop the older instance: it works under a producer id that nobody fences any more. An id "
    "gets another producer id when it expires: transactional.id.expiration.ms above the longest pause.",
}


def find(*, health: DataFrame) -> DataFrame:
    """One finding an application, id or copy, by class.

    Args:
        health: What `pipeline.replay.ids` says, among others.
    """
    return stated(
        health.filter(F.col("code") == CODE),
        code=CODE,
        advice=_ADVICE,
        refuted_by="the application's configuration of transactional.id and transaction.timeout.ms",
    )
