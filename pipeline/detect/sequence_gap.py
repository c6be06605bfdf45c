"""`sequence_gap`: sequence numbers that are missing inside one epoch, or that start anew.

Promise: a producer's sequence numbers follow one another in a partition (KIP-98; Kafka:
`ProducerAppendInfo.checkSequence`).

Rule: a batch of the same producer epoch that begins above the number after the last one (`lost`),
in history that is complete there; a restart that repeats no batch (`reset`). Each with its probable
cause: epoch bump, producer expiry (a snapshot in between does not name the producer), leader change,
the first request of a new partition, or unexplained. A gap at a leader change, after an expiry or
without explanation is `major`.

Normal: wraparound at 2147483647; a new epoch that begins at 0; the first batch of a producer in retained history;
whatever the cleaner, retention or DeleteRecords removed: history begins behind it.

Refuted by: a batch with the missing numbers in a segment that is not in the copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from pipeline.detect.stated import stated

CODE = "sequence_gap"
NEEDS = ("batch",)
FIXED_IN = "depends on the cause: producer expiry (KIP-854, 3.4), unclean election (configuration)"
_ADVICE = {
    "lost": "Look for delivery errors in the producer's log at that time, and send what is missing again. "
    "At a leader change: unclean.leader.election.enable=false, min.insync.replicas=2, acks=all. After an expiry: "
    "producer.id.expiration.ms above the longest pause of a producer (before 3.4: transactional.id.expiration.ms).",
    "reset": "Nothing to do, unless the producer's log shows delivery errors at that time.",
}


def find(*, sequence_gaps: DataFrame) -> DataFrame:
    """One finding a batch behind a gap.

    Args:
        sequence_gaps: What `pipeline.replay.gap_cause` says.
    """
    return stated(
        sequence_gaps,
        code=CODE,
        advice=_ADVICE,
        refuted_by="a batch with the missing numbers in a segment that is not in the copy",
    )
