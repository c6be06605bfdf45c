"""`content_duplicate`: records whose key, value and headers stand in their partition before, under other sequences.

Promise: an idempotent producer's record is written once (KIP-98); the broker keeps it by sequence number, within one
producer epoch only (Kafka: `ProducerStateEntry`, `ProducerAppendInfo`).

Rule: with `deep: true`, records of one partition that can be read, compared by a keyed hash of key,
value and headers. `resent`: equal CreateTime, and another producer id or epoch (without producer id:
another batch; minor, nothing was promised). `repeated`: the content stands there exactly twice,
written by two sessions at two times. Transactions of one producer id
are one session, whatever their epochs. One finding a batch.

Normal: an application that says the same twice; results that Kafka Streams writes again with the time of their
event; records of an aborted transaction that are sent again (not compared); constant contents and tombstones
(not compared).

Refuted by: the application's own account that it meant both records.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from pipeline.detect.stated import stated

CODE = "content_duplicate"
NEEDS = ("record", "deep")
FIXED_IN = "depends on the client: librdkafka #4953 is open; the Java client raises its epoch too (KIP-360)"
_ADVICE = {
    "resent": "Look for an epoch bump, an expired batch or a restart in the producer's log at that time. "
    "Idempotence ends with the session: delivery.timeout.ms above the longest failover, or transactions where a "
    "record must not come twice.",
    "repeated": "Ask the application whether it sent the record again after a restart. Where it must not: commit what "
    "it read together with what it writes (transactional.id, sendOffsetsToTransaction; Kafka Streams: "
    "processing.guarantee=exactly_once_v2).",
}


def find(*, content_repeats: DataFrame) -> DataFrame:
    """One finding a class and batch.

    Args:
        content_repeats: What `pipeline.replay.repeats` says.
    """
    return stated(
        content_repeats,
        code=CODE,
        advice=_ADVICE,
        refuted_by="the application's own account that it meant both records",
    )
