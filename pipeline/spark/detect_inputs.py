"""What detectors take: the rows of silver that are not plainly in order, and small tables made for them.

Each is evaluated once and held on the driver when it is small, so that the detectors of a clean log cost no Spark job.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.replay.version_bounds import is_fixed
from pipeline.spark import tables
from pipeline.spark.content_inputs import content_repeats
from pipeline.spark.gap_inputs import sequence_gaps
from pipeline.spark.gaps import segment_gaps
from pipeline.spark.health import health
from pipeline.spark.pinned import pinned_offset
from pipeline.spark.race_inputs import early_marker, is_fixed_version, race_scope
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.sidecars import sidecar_damage, txn_index
from pipeline.spark.silver import Run
from pipeline.spark.tables import Held
from pipeline.spark.version_inputs import proven_versions, version_bound
from schemas import bronze, silver

__all__ = [
    "content_repeats",
    "early_marker",
    "health",
    "is_fixed_version",
    "pinned_offset",
    "race_scope",
    "sequence_gaps",
    "sidecar_damage",
    "txn_index",
    "version_bound",
]

TAILS = ("torn_tail", "zero_tail")
_DAMAGE = (
    "copy int, topic string, partition int, broker_id int, file string, base_offset "
    "bigint, position bigint, size_bytes bigint, "
    "label string, explanation string, after_offset bigint, next_offset bigint, is_active boolean"
)
_LAST_COMMITTED = (
    "copy int, group_id string, topic string, partition int, committed_offset bigint, "
    "record_offset bigint, offsets_partition int, log_end_offset bigint"
)
_DIVERGENCE = (
    "copy int, topic string, partition int, broker_id int, other_broker_id int, class string, offset bigint, "
    "last_offset bigint, high_watermark bigint, is_acknowledged boolean, older_epoch int, newer_epoch int"
)


PLAIN_ALIGNMENTS = (
    "none",
    "aligned",
    "context",
    "in_flight",
    "ambiguous",
    "not_copied",
    "unreadable",
)
"""Alignments that no detector asks about."""
PLAIN_STATUSES = ("in_flight", "ongoing", "ambiguous", "context", "not_copied")
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
    """Steps that offend a rule; one that names a defect is told as its rule where the log proves a fixed version."""
    held = tables.localise(
        run.silver(silver.COORDINATOR_STEP).filter(F.col("violation").isNotNull())
    )
    if held.is_empty:
        return held
    fixed = [
        copy
        for copy, version in proven_versions(run).items()
        if is_fixed("coordinator_state", "double_epoch_bump", version)
    ]
    is_other = (F.col("violation") == "double_epoch_bump") & F.col("copy").isin(fixed)
    told = F.when(is_other, F.lit("epoch_rule")).otherwise(F.col("violation"))
    return held._replace(rows=held.rows.withColumn("violation", told))


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


def damage_rows(run: Run) -> list[tuple[Any, ...]]:
    """Unreadable places and overlapping segments, in the columns of `damage`."""
    replicas = {one.replica_id: one for one in run.facts}
    places = {one.replica_id: one for one in run.plan.replicas}
    newest: dict[int, int] = {}
    by_id = {one["segment_id"]: one for one in run.ingested.segments}
    for one in run.ingested.segments:
        newest[one["replica_id"]] = max(newest.get(one["replica_id"], -1), one["base_offset"])
    rows = []
    for row in run.ingested.unreadable:
        place = replicas.get(row["replica_id"]) or places[row["replica_id"]]
        segment = by_id.get(row["segment_id"])
        base = segment["base_offset"] if segment else None
        is_active = segment is None or base == newest[row["replica_id"]]
        rows.append(
            (
                place.copy,
                place.topic,
                place.partition,
                place.broker_id,
                row["file"],
                base,
                row["position"],
                row["size_bytes"],
                _label(row, is_active),
                row["explanation"],
                row["after_offset"],
                row["next_offset"],
                is_active,
            )
        )
    for segment in run.ingested.segments:
        if segment["segment_id"] in run.ingested.keep_from:
            place = places[segment["replica_id"]]
            rows.append(
                (
                    place.copy,
                    place.topic,
                    place.partition,
                    place.broker_id,
                    segment["file"],
                    segment["base_offset"],
                    0,
                    segment["size_bytes"],
                    "segment_overlap",
                    "its offsets lie in the segment before it",
                    None,
                    None,
                    True,
                )
            )
    return rows + _gap_rows(run)


def _gap_rows(run: Run) -> list[tuple[Any, ...]]:
    """Segments that are missing between two others."""
    ingested = run.ingested
    return [
        (
            gap.replica.copy,
            gap.replica.topic,
            gap.replica.partition,
            gap.replica.broker_id,
            gap.segment["file"],
            gap.segment["base_offset"],
            0,
            0,
            "gap_between_segments",
            f"the segment in front of it ends at offset {gap.last_offset}",
            gap.last_offset,
            gap.segment["base_offset"],
            gap.is_running_copy,
        )
        for gap in segment_gaps(run.plan, run.facts, ingested.segments, ingested.unreadable)
    ]


def _label(row: dict[str, Any], is_active: bool) -> str:
    """Class of the damage; a last batch that a crash left half-written may keep its length and fail its checksum."""
    reason: str = row["reason"]
    if reason in TAILS:
        return reason
    if reason == "crc" and row["is_tail"] and is_active:
        return "torn_tail"
    return "crc" if reason == "crc" else "unreadable"


def damage(run: Run) -> Held:
    """Input of `damaged_log`."""
    rows = damage_rows(run)
    return Held(tables.local(run.spark, rows, _DAMAGE), not rows)


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
    places = {one.replica_id: one for one in run.facts}
    rows = [
        (places[replica].copy, places[replica].partition, epoch, ms)
        for replica, epochs in sorted(run.newest.items())
        for epoch, ms in sorted(epochs.items())
        if replica in places
    ]
    ddl = "copy int, coordinator_partition int, leader_epoch int, newest_ms bigint"
    return Held(tables.local(run.spark, rows, ddl), True)


def snapshot_only(run: Run) -> Held:
    """Transactions that the newest snapshot at the log end holds open below the first retained offset."""
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
            rows.append(
                (fact.replica_id, fact.copy, fact.topic, fact.partition, fact.log_end_offset, start)
            )
    place = tables.local(
        run.spark,
        rows,
        "replica_id bigint, copy int, topic string, partition int, log_end_offset bigint, log_start bigint",
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
    return tables.localise(
        joined.filter(is_end & (F.col("current_txn_first_offset") < F.col("log_start")))
    )


def divergence(run: Run) -> Held:
    """First offset at which each other replica differs from the one that is replayed."""
    groups: dict[tuple[int, str, int], list[ReplicaFacts]] = defaultdict(list)
    for one in run.facts:
        groups[one.copy, one.topic, one.partition].append(one)
    pairs = []
    for members in groups.values():
        main = next(one for one in members if one.is_replayed)
        for other in members:
            if other is main or other.topic_id != main.topic_id:
                continue
            floor = max(main.history_start_offset, other.history_start_offset)
            pairs.append(
                (
                    main.replica_id,
                    other.replica_id,
                    main.copy,
                    main.topic,
                    main.partition,
                    main.broker_id,
                    other.broker_id,
                    floor,
                    main.log_end_offset,
                    other.high_watermark or 0,
                    other.max_leader_epoch,
                    main.max_leader_epoch,
                )
            )
    if not pairs:
        return Held(tables.local(run.spark, [], _DIVERGENCE), True)
    return tables.localise(_first_differences(run, pairs))


def _first_differences(run: Run, pairs: list[tuple[Any, ...]]) -> DataFrame:
    pair = F.broadcast(
        tables.local(
            run.spark,
            pairs,
            "main_id bigint, other_id bigint, copy int, topic string, partition int, broker_id "
            "int, other_broker_id int, "
            "floor bigint, main_end bigint, high_watermark bigint, older_epoch int, newer_epoch int",
        )
    )
    ours = (
        "replica_id",
        "base_offset",
        "last_offset",
        "crc",
        "partition_leader_epoch",
        "producer_id",
        "producer_epoch",
        "is_transactional",
        "is_control",
    )
    batches = run.bronze(bronze.BATCH).select(*ours)
    # Records of the internal topics stand for their batches: one row a batch offset is enough.
    for table in (bronze.TXN_STATE, bronze.OFFSET_COMMIT):
        rows = _entry_rows(run, table.name).select(*ours)
        batches = batches.unionByName(rows)
    batches = batches.dropDuplicates(["replica_id", "base_offset"])
    theirs = batches.join(pair, batches["replica_id"] == pair["other_id"], how="inner").filter(
        F.col("base_offset") >= F.col("floor")
    )
    mine = batches.select(
        F.col("replica_id").alias("main_id"),
        "base_offset",
        F.col("crc").alias("main_crc"),
        F.col("partition_leader_epoch").alias("main_epoch"),
    )
    compared = theirs.join(mine, ["main_id", "base_offset"], how="left")
    is_tail = F.col("base_offset") >= F.col("main_end")
    is_other = F.col("main_crc").isNotNull() & (
        (F.col("crc") != F.col("main_crc"))
        | (F.col("partition_leader_epoch") != F.col("main_epoch"))
    )
    differing = compared.filter(is_tail | is_other)
    tail_data = (
        differing.filter(F.col("is_transactional") & ~F.col("is_control"))
        .select(
            "copy",
            "topic",
            "partition",
            "other_id",
            "producer_id",
            F.col("producer_epoch").alias("transaction_epoch"),
        )
        .distinct()
    )
    emptied = (
        run.silver(silver.PARTITION_TXN)
        .filter(
            F.col("first_offset").isNull()
            & (F.col("marker_type") == 1)
            & F.col("alignment").isin("aligned", "resent")
        )
        .select("copy", "topic", "partition", "producer_id", "transaction_epoch")
        .distinct()
    )
    lost = (
        tail_data.join(
            emptied, ["copy", "topic", "partition", "producer_id", "transaction_epoch"], how="inner"
        )
        .select("other_id", F.lit(True).alias("lost_commit"))
        .distinct()
    )
    key = [
        "copy",
        "topic",
        "partition",
        "broker_id",
        "other_broker_id",
        "other_id",
        "high_watermark",
        "older_epoch",
        "newer_epoch",
    ]
    first = (
        differing.groupBy(*key)
        .agg(
            F.min("base_offset").alias("offset"),
            F.max("last_offset").alias("last_offset"),
            F.max(is_other).alias("has_other"),
        )
        .join(F.broadcast(lost), "other_id", how="left")
    )
    is_acknowledged = (F.col("offset") < F.col("high_watermark")) | F.coalesce(
        F.col("lost_commit"), F.lit(False)
    )
    return first.select(
        "copy",
        "topic",
        "partition",
        "broker_id",
        "other_broker_id",
        F.when(F.col("has_other"), F.lit("same_offset_other_bytes"))
        .otherwise(F.lit("lost_tail"))
        .alias("class"),
        "offset",
        "last_offset",
        "high_watermark",
        is_acknowledged.alias("is_acknowledged"),
        "older_epoch",
        "newer_epoch",
    )


def _entry_rows(run: Run, kind: str) -> DataFrame:
    rows = tables.read(run.spark, bronze.ENTRY, run.output, run.run_id).filter(
        F.col("kind") == kind
    )
    return rows.withColumn("is_control", F.lit(False)).withColumn(
        "is_transactional", F.coalesce(F.col("is_transactional"), F.lit(False))
    )
