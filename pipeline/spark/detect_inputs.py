"""What detectors take: the rows of silver that are not plainly in order, and small tables made for them.

Each is evaluated once and held on the driver when it is small, so that the detectors of a clean log cost no Spark job.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.replay.alive import STUCK_LIFE_MS, settled_ms
from pipeline.replay.coverage import NO_COORDINATOR, is_behind
from pipeline.replay.version_bounds import is_fixed, parsed
from pipeline.spark import tables
from pipeline.spark.content_inputs import content_repeats
from pipeline.spark.damage_inputs import damage
from pipeline.spark.divergence_inputs import divergence
from pipeline.spark.gap_inputs import sequence_gaps
from pipeline.spark.health import health
from pipeline.spark.pinned import pinned_offset
from pipeline.spark.race_inputs import early_marker, race_scope, rewound
from pipeline.spark.run import Run
from pipeline.spark.sidecars import sidecar_damage, txn_index
from pipeline.spark.stated import NONE
from pipeline.spark.tables import Held
from pipeline.spark.version_inputs import fixed_coordinators, version_bound
from schemas import bronze, silver

__all__ = [
    "content_repeats",
    "damage",
    "divergence",
    "early_marker",
    "health",
    "pinned_offset",
    "race_scope",
    "rewound",
    "sequence_gaps",
    "sidecar_damage",
    "txn_index",
    "version_bound",
]

_LAST_COMMITTED = (
    "copy int, group_id string, topic string, partition int, committed_offset bigint, "
    "record_offset bigint, offsets_partition int, log_end_offset bigint"
)


PLAIN_ALIGNMENTS = (
    "none",
    "aligned",
    "context",
    "in_flight",
    "not_copied",
    "unreadable",
)
"""Alignments that no detector asks about."""
PLAIN_STATUSES = ("in_flight", "ongoing", "ambiguous", "context", "not_copied")
OWNED_STATUSES = ("ongoing", "in_flight", "ambiguous")
"""Of promises whose transaction may be open legally."""
PREPARED = (2, 3)


def partition_txn(run: Run) -> Held:
    """Runs that were judged, whose marker is not plainly aligned, or whose coordinator epoch goes back."""
    is_judged = F.coalesce("judgement", "outside", "zombie").isNotNull()
    is_odd = ~F.col("alignment").isin(*PLAIN_ALIGNMENTS)
    is_stale = F.col("marker_coordinator_epoch") < F.col("coordinator_epoch_before")
    return tables.localise(run.silver(silver.PARTITION_TXN).filter(is_judged | is_odd | is_stale))


def transaction_partition(run: Run) -> Held:
    """Promises that were not kept, and those of transactions that are still prepared."""
    is_kept = F.col("status") == "present"
    is_odd = ~is_kept & ~F.col("status").isin(*PLAIN_STATUSES)
    return tables.localise(
        run.silver(silver.TRANSACTION_PARTITION).filter(is_odd | F.col("state").isin(*PREPARED))
    )


def kept_promise(run: Run) -> Held:
    """Promises that were kept, of transactions whose marker elsewhere contradicts the decision."""
    key = ["copy", "coordinator_partition", "transactional_id", "transaction_offset"]
    promises = run.silver(silver.TRANSACTION_PARTITION)
    contradicted = tables.localise(
        run.silver(silver.PARTITION_TXN).filter(F.col("alignment") == "wrong_outcome").select(*key)
    )
    if contradicted.is_empty:
        return contradicted
    is_kept = (F.col("status") == "present") & (F.col("marker_type") == F.col("outcome"))
    kept = promises.filter(is_kept).join(
        F.broadcast(contradicted.rows.distinct()), key, how="left_semi"
    )
    return tables.localise(kept.select(*key).distinct())


def coordinator_step(run: Run) -> Held:
    """Steps that offend a rule; one that names a defect is told as its rule where the coordinator has the fix."""
    held = tables.localise(
        run.silver(silver.COORDINATOR_STEP).filter(F.col("violation").isNotNull())
    )
    if held.is_empty:
        return held
    defect = ("coordinator_state", "double_epoch_bump")
    is_other = F.col("violation") == defect[1]
    rows = held.rows
    if not is_fixed(*defect, parsed(run.config.kafka_version)):
        ddl = "copy int, coordinator_partition int, led int, is_fixed boolean"
        leaders = [(*one, True) for one in fixed_coordinators(run, defect)]
        fixed = F.broadcast(tables.local(run.spark, leaders, ddl))
        rows = rows.withColumn("led", F.coalesce("leader_epoch", F.lit(NONE)))
        rows = rows.join(fixed, ["copy", "coordinator_partition", "led"], how="left").drop("led")
        is_other &= F.col("is_fixed")
    told = F.when(is_other, F.lit("epoch_rule")).otherwise(F.col("violation"))
    return held._replace(rows=rows.withColumn("violation", told).drop("is_fixed"))


def shared_producer(run: Run) -> Held:
    """Producer ids that more than one transactional id holds or held."""
    grouped = (
        run.silver(silver.OWNER)
        .groupBy("copy", "producer_id")
        .agg(
            F.count(F.lit(1)).alias("ids"),
            F.min("transactional_id").alias("one"),
            F.max("transactional_id").alias("other"),
            F.min("coordinator_partition").alias("coordinator_partition"),
        )
    )
    return tables.localise(grouped.filter(F.col("one") != F.col("other")))


def sequence_event(run: Run) -> Held:
    """All of them: the table holds irregular steps only."""
    return tables.localise(run.silver(silver.SEQUENCE_EVENT))


def committed_offset(run: Run) -> Held:
    """Commits that went back, wait, or changed between plain and transactional."""
    is_back = F.col("committed_offset") < F.col("previous_committed_offset")
    is_turn = F.col("is_transactional") != F.col("previous_is_transactional")
    is_odd = (F.col("outcome") == "pending") | (
        (F.col("outcome") == "materialised") & (is_back | is_turn)
    )
    return tables.localise(run.silver(silver.COMMITTED_OFFSET).filter(is_odd))


def last_committed(run: Run) -> Held:
    """What each group has committed last and that lies past the log's end, in copies of one instant."""
    if not any(one.is_one_instant for one in run.facts):
        return Held(tables.local(run.spark, [], _LAST_COMMITTED), True)
    counts = F.col("outcome").isin("materialised", "deleted")
    last = (
        run.silver(silver.COMMITTED_OFFSET)
        .filter(counts)
        .groupBy("copy", "group_id", "topic", "partition")
        .agg(
            F.max_by(
                F.struct("committed_offset", "record_offset", "offsets_partition"), "record_offset"
            ).alias("last")
        )
        .select("copy", "group_id", "topic", "partition", "last.*")
    )
    joined = last.join(F.broadcast(log_end(run)), ["copy", "topic", "partition"], how="inner")
    return tables.localise(joined.filter(F.col("committed_offset") > F.col("log_end_offset")))


def log_end(run: Run) -> DataFrame:
    """Largest log end of any replica, for partitions of a copy of one instant; tombstones tell re-creations."""
    ends: dict[tuple[int, str, int], int] = {}
    for one in run.facts:
        if one.is_one_instant:
            key = (one.copy, one.topic, one.partition)
            ends[key] = max(ends.get(key, 0), one.log_end_offset)
    rows = [(*key, end) for key, end in sorted(ends.items())]
    return tables.local(
        run.spark, rows, "copy int, topic string, partition int, log_end_offset bigint"
    )


def coordinator_newest(run: Run) -> Held:
    """Newest record by coordinator partition and epoch; only joined to others, so it counts as empty."""
    places = {one.replica_id: (one.copy, one.partition) for one in run.facts}
    rows = [
        (*places[replica], epoch, one.newest_ms, settled_ms(one, STUCK_LIFE_MS))
        for replica, epochs in sorted(run.newest.items())
        for epoch, one in sorted(epochs.items())
        if replica in places
    ]
    ddl = (
        "copy int, coordinator_partition int, leader_epoch int, newest_ms bigint, settled_ms bigint"
    )
    return Held(tables.local(run.spark, rows, ddl), True)


def snapshot_only(run: Run) -> Held:
    """Transactions that the snapshot at the log end holds open below the first retained offset, and nobody owns.

    `is_judged` is false where the coordinators were not read to a point behind the replica's end: one may own it.
    """
    first: dict[int, int] = {}
    for one in run.ingested.segments:
        if one["first_offset"] is not None:
            first[one["replica_id"]] = min(
                first.get(one["replica_id"], one["first_offset"]), one["first_offset"]
            )
    rows = []
    for fact in run.facts:
        if fact.is_replayed:
            start = max(first.get(fact.replica_id, fact.log_end_offset), fact.log_start_offset or 0)
            covered = run.coverage.partitions[fact.copy, fact.topic, fact.partition]
            everything = run.coverage.everything.get(fact.copy, NO_COORDINATOR)
            rows.append(
                (fact.replica_id, fact.copy, fact.topic, fact.partition, fact.log_end_offset, start,
                 is_behind(fact.read_until_ms, covered, everything, run.coverage.tolerances))
            )  # fmt: skip
    place = tables.local(
        run.spark,
        rows,
        "replica_id bigint, copy int, topic string, partition int, log_end_offset bigint, log_start bigint, "
        "is_judged boolean",
    )
    entries = (
        run.bronze(bronze.SIDECAR)
        .filter(
            (F.col("entry_kind") == "producer_snapshot")
            & F.col("current_txn_first_offset").isNotNull()
        )
        .drop("topic", "partition")
    )
    joined = entries.join(F.broadcast(place), "replica_id", how="inner")
    is_end = F.col("end_offset") == F.col("log_end_offset")
    ghosts = tables.localise(
        joined.filter(is_end & (F.col("current_txn_first_offset") < F.col("log_start")))
    )
    if ghosts.is_empty:
        return ghosts
    key = ["copy", "topic", "partition", "producer_id"]
    is_owned = F.col("status").isin(*OWNED_STATUSES)
    owned = run.silver(silver.TRANSACTION_PARTITION).filter(is_owned).select(key)
    left = run.silver(silver.PARTITION_TXN).filter("is_open").select(key)
    rest = ghosts.rows.join(owned.unionByName(left), key, how="left_anti")
    return tables.localise(rest)
