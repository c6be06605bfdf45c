"""Producer history by window functions: sequences, epochs and runs between markers.

All windows run over (replica, producer id) by offset with frames that end at the current row, so that one sort serves
them and no frame is quadratic; where no sequence can have wrapped, one pass is all. `pipeline.replay.producer` is the
reference that this equals row by row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from schemas.codes import MAX_SEQUENCE, NO_SEQUENCE

WRAP = MAX_SEQUENCE + 1
"""Sequences count modulo 2^31 (Kafka: `DefaultRecordBatch.incrementSequence`)."""

_PRODUCER = ("replica_id", "producer_id")


def _frame(last: int) -> WindowSpec:
    """All rows of the producer in the replica up to the current one (0) or the one before (-1)."""
    by_offset = Window.partitionBy(*_PRODUCER).orderBy("base_offset")
    return by_offset.rowsBetween(Window.unboundedPreceding, last)


def with_history(batches: DataFrame, may_wrap: bool) -> DataFrame:
    """Adds to each batch of a producer what came before it.

    Args:
        batches: Columns of `bronze.batch` plus `is_offsets` (the partition belongs to `__consumer_offsets`, whose
            batches always carry base sequence 0) and `history_start_offset`; only rows with a producer id.
        may_wrap: Some sequence may have gone past 2147483647: two more passes over the windows find out where.
    """
    before = _frame(-1)
    is_data = ~F.col("is_control")
    length = F.col("last_offset") - F.col("base_offset")
    wrapped_last = F.when(F.col("base_sequence") == NO_SEQUENCE, F.lit(None)).otherwise(
        F.pmod(F.col("base_sequence").cast("long") + length, F.lit(WRAP))
    )
    sequenced = batches.select(
        "*",
        F.when(is_data, F.col("base_sequence").cast("long")).alias("seq_first"),
        F.when(is_data, wrapped_last).alias("seq_last"),
    )
    past = [
        F.coalesce(F.sum(F.col("is_control").cast("long")).over(before), F.lit(0)).alias(
            "run_number"
        ),
        F.max("producer_epoch").over(before).alias("max_epoch_before"),
        F.max(F.when(F.col("is_control"), F.col("coordinator_epoch")))
        .over(before)
        .alias("coordinator_epoch_before"),
        F.last(
            F.when(
                is_data,
                F.struct("seq_last", "producer_epoch", "last_offset", "partition_leader_epoch"),
            ),
            ignorenulls=True,
        )
        .over(before)
        .alias("previous"),
    ]
    if may_wrap:
        unwrapped = _unwrapped(sequenced.select("*", *past))
        return unwrapped.select("*", _reached("last_sequence").over(before).alias("reached"))
    return sequenced.select("*", *past, _reached("seq_last").over(before).alias("reached")).select(
        "*", F.col("seq_first").alias("first_sequence"), F.col("seq_last").alias("last_sequence")
    )


def _reached(last_sequence: str) -> Column:
    """Highest epoch with the highest sequence in it."""
    highest = F.struct("producer_epoch", F.col(last_sequence).alias("last_sequence"))
    return F.max(F.when(~F.col("is_control"), highest))


def _unwrapped(first: DataFrame) -> DataFrame:
    """Adds `first_sequence` and `last_sequence`, which go on growing where Kafka's begin at 0 again."""
    before, up_to = _frame(-1), _frame(0)
    wraps_here = F.coalesce(
        (F.col("seq_last") < F.col("seq_first")).cast("long"),
        F.lit(0),
    )
    is_same_epoch = F.col("previous.producer_epoch").eqNullSafe(F.col("producer_epoch"))
    between = _wrap_between(F.col("previous.seq_last"), F.col("seq_first"))
    wraps = first.select(
        "*",
        wraps_here.alias("wraps_here"),
        F.when(is_same_epoch, between).otherwise(F.lit(0)).alias("between"),
    )
    has_wrapped = F.max((F.col("wraps_here") > 0) | (F.col("between") > 0)).over(before)
    wraps = wraps.select("*", F.coalesce(has_wrapped, F.lit(False)).alias("has_wrapped"))
    counted = F.when((F.col("between") > 0) | F.col("has_wrapped"), F.col("between"))
    generation = wraps.select(
        "*",
        F.coalesce(F.sum("wraps_here").over(before), F.lit(0)).alias("inner"),
        F.sum(F.coalesce(counted, F.lit(0))).over(up_to).alias("outer"),
    )
    base = (F.col("inner") + F.col("outer")) * F.lit(WRAP)
    return generation.select(
        "*",
        (F.col("seq_first") + base).alias("first_sequence"),
        (F.col("seq_last") + base + F.col("wraps_here") * F.lit(WRAP)).alias("last_sequence"),
    ).drop("inner", "outer", "wraps_here", "between", "has_wrapped")


def _wrap_between(last: Column, base: Column) -> Column:
    """1 for a step forward over the wrap, -1 for one back over it, else 0 (`pipeline.replay.producer`)."""
    half = WRAP // 2
    return (
        F.when(last.isNull() | base.isNull() | (base < 0), F.lit(0))
        .when(base == 0, (last == MAX_SEQUENCE).cast("long"))
        .otherwise((last - base > half).cast("long") - (base - last > half).cast("long"))
    )


def event_kind() -> Column:
    """Kind of a step that is not the plain next one, null for a plain one; `exact` and `overlap` are told later."""
    is_sequenced = ~F.col("is_control") & ~F.col("is_offsets") & (F.col("seq_first") >= 0)
    is_known = F.col("base_offset") >= F.col("history_start_offset")
    below_epoch = F.col("producer_epoch") < F.col("max_epoch_before")
    same_epoch = F.col("producer_epoch") == F.col("reached.producer_epoch")
    above_epoch = F.col("producer_epoch") > F.col("reached.producer_epoch")
    is_back = F.col("first_sequence") <= F.col("reached.last_sequence")
    is_gap = F.col("first_sequence") > F.col("reached.last_sequence") + 1
    # A hole between the two batches (damage, cleaning) may hold what seems to be missing.
    is_whole = F.col("previous.last_offset") >= F.col("history_start_offset")
    return (
        F.when(~is_known, F.lit(None))
        .when(~F.col("is_control") & below_epoch, F.lit("epoch_regressed"))
        .when(~is_sequenced, F.lit(None))
        .when(F.col("reached").isNull(), F.when(F.col("seq_first") > 0, F.lit("first")))
        .when(same_epoch & is_back, F.lit("back"))
        .when(same_epoch & is_gap & is_whole, F.lit("gap"))
        .when(above_epoch & (F.col("seq_first") > 0) & is_whole, F.lit("bump_not_zero"))
    )


def sequence_events(batches: DataFrame) -> DataFrame:
    """Irregular steps with `kind`, where `back` is told apart by what it repeats, and with `other_offset`.

    Equals `pipeline.replay.history.SequenceEvent` row by row, lives included.

    Args:
        batches: The result of `with_history` and `event` (`event_kind`).
    """
    batches = _with_lives(batches)
    data = batches.filter(~F.col("is_control")).select(
        "replica_id",
        "producer_id",
        "producer_epoch",
        "life",
        F.col("base_offset").alias("other_offset"),
        F.col("first_sequence").alias("other_first"),
        F.col("last_sequence").alias("other_last"),
        F.col("history_start_offset").alias("other_history_start"),
    )
    events = batches.filter(F.col("event").isNotNull())
    repeats = (
        events.filter(F.col("event").isin("back", "epoch_regressed") & ~F.col("is_offsets"))
        .join(data, ["replica_id", "producer_id", "producer_epoch", "life"], how="inner")
        .filter(
            (F.col("other_offset") < F.col("base_offset"))
            & (F.col("other_offset") >= F.col("other_history_start"))
            & (F.col("other_first") <= F.col("last_sequence"))
            & (F.col("other_last") >= F.col("first_sequence"))
        )
        .groupBy("replica_id", "producer_id", "base_offset")
        .agg(
            F.min("other_offset").alias("other_offset"),
            F.max(
                (F.col("other_first") == F.col("first_sequence"))
                & (F.col("other_last") == F.col("last_sequence"))
            ).alias("is_exact"),
        )
    )
    joined = events.join(repeats, ["replica_id", "producer_id", "base_offset"], how="left")
    repeated = F.when(F.col("is_exact"), F.lit("exact")).otherwise(F.lit("overlap"))
    kind = F.when(
        F.col("event") == "back",
        F.when(F.col("other_offset").isNotNull(), repeated).otherwise(F.lit("reset")),
    ).otherwise(F.col("event"))
    goes_on = (
        (F.col("kind") == "reset")
        & (F.col("life") > 0)
        & (F.col("previous.producer_epoch") == F.col("producer_epoch"))
        & (F.col("seq_first") == F.pmod(F.col("previous.seq_last") + 1, F.lit(WRAP)))
    )
    kinds = joined.withColumn("kind", kind)
    return kinds.filter(~F.coalesce(goes_on, F.lit(False))).drop("life", "zero", "zero_before")


def _with_lives(batches: DataFrame) -> DataFrame:
    """Adds `life`: how often the epoch began at 0 anew before (`pipeline.replay.history.Lives`)."""
    by_offset = Window.partitionBy(*_PRODUCER, "producer_epoch").orderBy("base_offset")
    before = by_offset.rowsBetween(Window.unboundedPreceding, -1)
    is_zero = ~F.col("is_control") & (F.col("seq_first") == 0)
    zeros = batches.withColumn(
        "zero", F.when(is_zero, F.struct("first_sequence", "last_sequence", "crc"))
    )
    zeros = zeros.withColumn("zero_before", F.last("zero", ignorenulls=True).over(before))
    begins = (F.col("event") == "back") & F.col("zero").isNotNull()
    begins &= ~F.col("zero").eqNullSafe(F.col("zero_before"))
    life = F.sum(F.coalesce(begins, F.lit(False)).cast("long")).over(
        by_offset.rowsBetween(Window.unboundedPreceding, 0)
    )
    return zeros.withColumn("life", life)


def runs(history: DataFrame) -> DataFrame:
    """One row per producer and run: its data and the marker that closed it, not yet judged.

    Args:
        history: The result of `with_history`.
    """
    is_data = ~F.col("is_control")
    has_records = is_data & (F.col("records_count") > 0)
    is_txn_data = has_records & F.col("is_transactional")
    is_marker = F.col("is_control")
    is_log_append = F.col("timestamp_type") == 1

    def of(condition: Column, name: str) -> Column:
        return F.when(condition, F.col(name))

    grouped = history.groupBy(*_PRODUCER, "run_number").agg(
        F.coalesce(F.max(is_txn_data), F.lit(False)).alias("is_transactional"),
        F.coalesce(F.max(is_marker), F.lit(False)).alias("has_marker"),
        F.min(of(is_txn_data, "base_offset")).alias("txn_first_offset"),
        F.min(of(has_records, "base_offset")).alias("data_first_offset"),
        F.max(of(has_records, "last_offset")).alias("last_offset"),
        F.count(of(has_records, "base_offset")).alias("batch_count"),
        F.coalesce(F.sum(of(is_data, "records_count")), F.lit(0))
        .cast("long")
        .alias("record_count"),
        F.coalesce(F.sum(of(has_records, "size_bytes")), F.lit(0)).cast("long").alias("size_bytes"),
        F.min(of(has_records, "producer_epoch")).alias("min_epoch"),
        F.max(of(has_records, "producer_epoch")).alias("max_epoch"),
        F.nullif(F.min(F.coalesce("max_epoch_before", F.lit(-1))), F.lit(-1)).alias(
            "max_epoch_before"
        ),
        F.min(of(is_data, "seq_first")).cast("int").alias("first_sequence"),
        F.min(of(has_records & is_log_append, "max_timestamp_ms")).alias("first_append_ms"),
        F.count(F.col("event")).alias("irregular_count"),
        F.max(of(is_marker, "base_offset")).alias("marker_offset"),
        F.max(of(is_marker, "control_type")).alias("marker_type"),
        F.max(of(is_marker, "producer_epoch")).alias("marker_epoch"),
        F.max(of(is_marker, "coordinator_epoch")).alias("marker_coordinator_epoch"),
        F.max(of(is_marker, "partition_leader_epoch")).alias("marker_leader_epoch"),
        F.max(of(is_marker, "max_timestamp_ms")).alias("marker_ms"),
        F.max(of(is_marker, "coordinator_epoch_before")).alias("coordinator_epoch_before"),
    )
    return grouped.select(
        "*",
        F.coalesce("txn_first_offset", "data_first_offset").alias("first_offset"),
        (F.col("is_transactional") & ~F.col("has_marker")).alias("is_open"),
    ).drop("txn_first_offset", "data_first_offset", "has_marker")
