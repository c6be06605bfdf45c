"""To what the race of KAFKA-17507 can apply: to nothing that a broker wrote which is proven to have the fix.

That is all behind a value which needs every broker of the copy to have it, and whatever a leader of an offsets
partition wrote that shows it itself (`pipeline.replay.version_bounds`).
"""

from __future__ import annotations

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.replay.coverage import ALWAYS, NEVER
from pipeline.replay.version_bounds import is_fixed, parsed
from pipeline.spark import stored, tables
from pipeline.spark.run import Run
from pipeline.spark.stated import NONE
from pipeline.spark.tables import Held
from schemas import bronze, silver
from schemas.codes import GROUP_RECORDS, OFFSETS_TOPIC, TXN_TOPIC


def race_scope(run: Run) -> Held:
    """Committed offsets behind a marker to which the race can apply."""
    has_race = F.col("is_transactional") & (
        F.col("race_ms").isNotNull() | F.col("is_before_marker")
    )
    committed = run.silver(silver.COMMITTED_OFFSET).filter(has_race)
    if _is_fixed(run, "window"):
        return Held(committed.limit(0), True)
    at = {
        "offset": F.col("record_offset"),
        "ms": F.col("append_ms"),
        "epoch": F.col("leader_epoch"),
    }
    return tables.localise(_exposed(run, committed, **at))


def early_marker(run: Run) -> Held:
    """Markers of `__consumer_offsets` that came after their transaction had been declared complete."""
    is_early = (F.col("topic") == OFFSETS_TOPIC) & (F.col("alignment") == "early_completion")
    markers = run.silver(silver.PARTITION_TXN).filter(is_early)
    if _is_fixed(run, "early_completion"):
        return Held(markers.limit(0), True)
    markers = markers.withColumn("offsets_partition", F.col("partition"))
    at = {
        "offset": F.col("marker_offset"), "ms": F.col("marker_ms"),
        "epoch": F.col("marker_leader_epoch"),
    }  # fmt: skip
    return tables.localise(_exposed(run, markers, **at))


def rewound(run: Run) -> Held:
    """Commits that went back behind a transactional one, with a new generation of their group in between.

    Only a consumer that was assigned anew asks where to go on (OffsetFetch) and can have been answered a stale offset.
    """
    is_lower = F.col("committed_offset") < F.col("previous_committed_offset")
    is_lower &= (F.col("outcome") == "materialised") & F.col("previous_is_transactional")
    committed = run.silver(silver.COMMITTED_OFFSET)
    if _is_fixed(run, "window") or not _goes_back(run):
        none = committed.limit(0).withColumn("generation_offset", F.lit(None).cast("bigint"))
        return Held(none, True)
    lower = tables.localise(committed.filter(is_lower))
    is_generation = F.col("record_type").isin(*GROUP_RECORDS)
    is_generation &= F.col("generation_or_epoch").isNotNull()
    generations = (
        run.bronze(bronze.GROUP_METADATA)
        .filter(is_generation)
        .join(F.broadcast(_offsets_places(run)), "replica_id", how="inner")
        .select("copy", "offsets_partition", "group_id", "base_offset")
    )
    key = ["copy", "offsets_partition", "record_offset"]
    is_between = F.col("base_offset").between(
        F.col("previous_record_offset"), F.col("record_offset")
    )
    between = (
        generations.join(F.broadcast(lower.rows), ["copy", "offsets_partition", "group_id"])
        .filter(is_between)
        .groupBy(*key)
        .agg(F.max("base_offset").alias("generation_offset"))
    )
    return tables.localise(lower.rows.join(between, key, how="inner"))


def _goes_back(run: Run) -> bool:
    """Whether any commit went back, without a Spark job: most nights none does."""
    columns = ("committed_offset", "previous_committed_offset")
    return any(
        pc.any(pc.less(rows[columns[0]], rows[columns[1]])).as_py()
        for rows in stored.pieces(silver.COMMITTED_OFFSET, run.output, run.run_id, columns)
    )


def _offsets_places(run: Run) -> DataFrame:
    rows = [
        (one.replica_id, one.copy, one.partition)
        for one in run.facts
        if one.is_replayed and one.topic == OFFSETS_TOPIC
    ]
    return tables.local(run.spark, rows, "replica_id bigint, copy int, offsets_partition int")


def _is_fixed(run: Run, label: str) -> bool:
    return is_fixed("offset_race", label, parsed(run.config.kafka_version))


def fixed_from_ms(run: Run, first_ms: dict[int, int]) -> dict[int, int]:
    """Copy -> time from which its brokers are 4.0 or later; `ALWAYS` where nothing proves it.

    A value of version 1 in `__transaction_state` needs transaction.version 1, which needs every broker to be 4.0
    (KIP-890, KIP-1022). Where records may have been removed, an earlier one may have been there: then it counts for
    all times.

    Args:
        run: The run.
        first_ms: Replica id -> time of its first such record, as far as it has one.
    """
    result: dict[int, int] = {}
    for one in run.facts:
        if one.topic != TXN_TOPIC or one.replica_id not in first_ms:
            continue
        is_whole = one.is_complete and run.coverage.everything[one.copy].is_read
        ms = first_ms[one.replica_id] - run.config.clock_skew_ms if is_whole else NEVER
        result[one.copy] = min(ms, result.get(one.copy, ALWAYS))
    cut = {one.copy for one in run.facts if one.topic == TXN_TOPIC and not one.is_complete}
    return {copy: NEVER if copy in cut else ms for copy, ms in result.items()}


def _exposed(run: Run, rows: DataFrame, *, offset: Column, ms: Column, epoch: Column) -> DataFrame:
    """Rows of offsets partitions that neither proof covers: of the copy by time, of the leader by its epoch.

    An exported topic has no leader epochs: there a proof covers what stands behind it.
    """
    states = run.bronze(bronze.TXN_STATE).filter(F.col("value_version") >= 1)
    first = states.groupBy("replica_id").agg(F.min("max_timestamp_ms").alias("ms")).collect()
    from_ms = fixed_from_ms(run, {row["replica_id"]: row["ms"] for row in first})
    spark = run.spark
    times = tables.local(spark, sorted(from_ms.items()), "copy int, fixed_ms bigint")
    places = tables.local(
        spark,
        [(one.replica_id, one.copy, one.partition) for one in run.facts],
        "replica_id bigint, copy int, offsets_partition int",
    )
    # Value version 4 is written by brokers of 4.1 or later, by each of them alone.
    fixed = (
        run.bronze(bronze.OFFSET_COMMIT)
        .filter(F.col("value_version") >= 4)
        .join(F.broadcast(places), "replica_id", how="inner")
        .groupBy("copy", "offsets_partition", _known(F.col("partition_leader_epoch")).alias("led"))
        .agg(F.min("base_offset").alias("fixed_from"))
    )
    joined = rows.withColumn("led", _known(epoch))
    joined = joined.join(F.broadcast(fixed), ["copy", "offsets_partition", "led"], how="left")
    joined = joined.join(F.broadcast(times), "copy", how="left")
    is_early = F.col("fixed_ms").isNull() | (ms < F.col("fixed_ms"))
    is_before = epoch.isNull() & (offset < F.col("fixed_from"))
    is_early &= F.col("fixed_from").isNull() | is_before
    return joined.filter(is_early).drop("fixed_from", "fixed_ms", "led")


def _known(epoch: Column) -> Column:
    return F.coalesce(epoch, F.lit(NONE))
