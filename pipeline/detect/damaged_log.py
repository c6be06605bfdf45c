"""`damaged_log`: bytes that cannot be what a broker wrote.

Promise: a log holds whole batches whose CRC is right, in offset order (Kafka: `DefaultRecordBatch.ensureValid`,
`LogValidator`).

Rule: a wrong CRC (`crc`), bytes that are no batch (`unreadable`), a cut last batch (`torn_tail`),
a zeroed tail (`zero_tail`), a
segment whose offsets lie in the one before it (`segment_overlap`), a segment that is missing
between two others
although nothing of its topic was ever cleaned (`gap_between_segments`). Sidecars that do not fit
the log: an entry of `.index` that points into a batch or behind its offset (`index_mismatch`), of
`.timeindex` whose time is not the largest of its batch (`timeindex_mismatch`), of `.snapshot` that
the batches before it contradict (`snapshot_mismatch`), a leader epoch that
`leader-epoch-checkpoint` does not start (`leader_epoch_mismatch`).

Normal: a torn or zeroed tail at the end of the newest segment of a copy taken from a running or
killed broker; a segment that the
cleaner merged into another, or that retention removed, while the copy was taken. A sidecar of a running or killed
broker may be older or newer than its log; what brokers of different versions write differently is accepted.

Refuted by: another copy of the same file that reads well.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.detect.finding import findings, on
from pipeline.detect.stated import stated

CODE = "damaged_log"
NEEDS = ("segment",)
FIXED_IN = "no single cause: disk, copy, or a crash"
_TAILS = ("torn_tail", "zero_tail")


_REBUILD = (
    "Stop the broker, move this file away and remove .kafka_cleanshutdown: the broker makes it anew "
    "from the log when it starts."
)
_ADVICE = {
    "index_mismatch": f"Fetches may begin at the wrong place. {_REBUILD}",
    "timeindex_mismatch": f"Look-ups by time and retention may be wrong. {_REBUILD}",
    "snapshot_mismatch": "A start from it may let duplicates in or refuse good batches. Stop the broker, move all "
    ".snapshot files of the partition away: the broker replays the log when it starts.",
    "leader_epoch_mismatch": "Followers may truncate at the wrong offset. Compare with the other "
    "replicas' files; fetch this replica again from one that is right.",
}


def find(*, damage: DataFrame, sidecar_damage: DataFrame) -> DataFrame:
    """One finding a damaged place, or a sidecar that does not fit its log.

    Args:
        damage: `bronze.unreadable` joined with its replica, with `label` (the class), `is_active`
        (newest segment of the replica; of a gap: the copy was taken from a running broker) and
            `evidence_file`.
        sidecar_damage: What `pipeline.replay.sidecar_check` says.
    """
    beside = stated(
        sidecar_damage,
        code=CODE,
        advice=_ADVICE,
        refuted_by="another copy of the same files in which they fit",
    )
    return _bytes(damage).unionByName(beside)


def _bytes(damage: DataFrame) -> DataFrame:
    is_normal = (F.col("label").isin(*_TAILS, "gap_between_segments") & F.col("is_active")) | (
        F.col("label") == "segment_overlap"
    )
    return findings(
        damage,
        code=CODE,
        class_=F.col("label"),
        severity=F.when(is_normal, F.lit("info")).otherwise(F.lit("major")),
        certainty="proven",
        **on(topic="topic", partition="partition"),
        first_offset=F.coalesce(F.col("after_offset") + 1, F.col("base_offset")),
        last_offset=F.col("next_offset") - 1,
        title="{label} in {file} at byte {position}",
        explanation="{size_bytes:byte|bytes} of {file} ({topic}-{partition}) from byte {position} on were not "
        "used: {explanation}. Broker {broker_id}.",
        advice=F.when(
            is_normal, F.lit("Nothing to do: normal for a copy taken while the broker ran.")
        ).otherwise(
            F.lit(
                "Copy the file again and compare (kafka-dump-log.sh --files reads it too). Where the broker has it so "
                "and other replicas are in sync, stop that broker and move the partition's folder away: it is "
                "fetched again. Verdicts that need these bytes say so."
            )
        ),
        refuted_by="another copy of the same file that reads well",
        evidence=[],
    )
