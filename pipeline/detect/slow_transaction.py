"""`slow_transaction`: transactions that stay open long, are marked late, or nearly time out.

Promise: none is broken; consumers of committed data wait for the slowest transaction of a partition (KIP-98; Kafka:
`TransactionMetadata`).

Rule: from the first Ongoing to Prepare* more than `health.long_running_ms` (`long_running`), from Prepare* to Complete*
more than `health.commit_latency_ms` (`slow_markers`), ended by the client after more than `health.near_timeout_share`
of transaction.timeout.ms (`near_timeout`). Only between records of one coordinator under one leader epoch: one clock.

Normal: a batch job with few large transactions; a broker that was down while markers were due. Two-phase commit
(KIP-939, a timeout of 2147483647 ms) is never long-running: another system decides when it ends. Where the coordinator
had to append a step again, neither the client nor the marked partitions took that time: it is not told.

Refuted by: a clock of the coordinator's broker that was set in between.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.stated import stated

CODE = "slow_transaction"
NEEDS = ("txn_state",)
FIXED_IN = "no defect: client and broker settings, load, or a broker that was down"
_ADVICE = {
    "long_running": "Commit more often (Kafka Streams: commit.interval.ms; Connect and Flink: checkpoint interval), or "
    "look for an application that hangs between its first send and its commit.",
    "slow_markers": "Look at the brokers that lead the written partitions at that time: markers wait for their "
    "replicas (min.insync.replicas). Many partitions in one transaction make it slower.",
    "near_timeout": "Commit sooner, or raise transaction.timeout.ms of the producer up to the brokers' "
    "transaction.max.timeout.ms: beyond it the coordinator aborts and fences the producer.",
}


def find(*, health: DataFrame) -> DataFrame:
    """One finding a transactional id and class.

    Args:
        health: What `pipeline.replay.slow` says, among others.
    """
    return stated(
        health.filter(F.col("code") == CODE),
        code=CODE,
        advice=_ADVICE,
        refuted_by="a clock of the coordinator's broker that was set in between",
    )
