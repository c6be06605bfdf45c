"""`fencing_storm`: instances of one transactional id that fence each other, and epochs that run out.

Promise: one instance at a time works under a transactional id; a new one fences the old (KIP-98, KIP-360; Kafka:
`TransactionCoordinator.handleInitProducerId`).

Rule: `health.storm_fences` InitProducerId of one id within `health.storm_window_ms` (`storm`);
`health.reuse_fences` transactions that InitProducerId of another instance aborted within `health.reuse_window_ms`
(`id_reuse_race`); producer epochs that at the observed rate reach 32767 within `health.forecast_days` (`epoch_burn`;
transaction.version 2 takes an epoch for each transaction and means it so).

Normal: a rolling restart; a deployment that restarts every instance a few times.

Refuted by: logs of the application that show restarts one after the other, never two instances.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.stated import stated

CODE = "fencing_storm"
NEEDS = ("txn_state",)
FIXED_IN = "no defect: ids shared by instances, or instances that crash in a loop"
_ADVICE = {
    "storm": "Look for an application that restarts in a loop, or for two deployments with the same transactional.id "
    "(Kafka Streams: application.id).",
    "epoch_burn": "Find what calls initTransactions so often. Nothing is lost when the epochs end: the id gets a new "
    "producer id; make sure that no old instance still runs then.",
    "id_reuse_race": "Give every instance a transactional.id of its own, stable over restarts; Kafka Streams does it "
    "by itself unless two clusters of instances share the application.id.",
}


def find(*, health: DataFrame) -> DataFrame:
    """One finding a transactional id and class.

    Args:
        health: What `pipeline.replay.fencing` says, among others.
    """
    return stated(
        health.filter(F.col("code") == CODE),
        code=CODE,
        advice=_ADVICE,
        refuted_by="logs of the application that show restarts one after the other, never two instances",
    )
