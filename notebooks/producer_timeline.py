# %% [markdown]
# # One producer through time, over all partitions
#
# Data, markers and coordinator records of one producer id or transactional id in one table.

# %%
from pipeline import catalog
from pipeline.spark import session
from schemas.codes import STATE_NAMES

# %% Parameters
OUTPUT = "audit-output/self-check"  # output root of an audit
RUN_ID = None  # a run of it; None takes the newest completed one
TRANSACTIONAL_ID = "h-late"  # or None, and
PRODUCER_ID = None  # a producer id instead

# %%
spark = session.build()
STATES = "array('" + "', '".join(STATE_NAMES.values()) + "')"  # name of a state by its number
catalog.open_tables(spark, OUTPUT, RUN_ID)

# %% [markdown]
# ## The producer ids
#
# A transactional id gets a new producer id when its epoch is used up or it comes back after expiry.

# %%
owned = spark.sql(
    "select distinct copy, producer_id, transactional_id from silver_owner "
    "where transactional_id = {id} or producer_id = {producer} union "
    "select distinct copy, producer_id, transactional_id from silver_partition_txn "
    "where producer_id = {producer}",
    id=TRANSACTIONAL_ID or "",
    producer=-1 if PRODUCER_ID is None else PRODUCER_ID,
)
owned.createOrReplaceTempView("owned")
catalog.show(spark.sql("select *, application(transactional_id) as application from owned"))

# %% [markdown]
# ## What it did
#
# Sorted by time where there is one. The time of data is null under CreateTime, whose clock is the client's;
# such rows stand at the
# time of their marker, or last. Inside one log the offsets give the order, whatever the clocks say.

# %%
timeline = spark.sql(
    "with ids as (select distinct copy, producer_id from owned), "
    "data as (select p.* from silver_partition_txn p join ids using (copy, producer_id)) "
    "select copy, coalesce(first_append_ms, marker_ms, 9223372036854775807) as order_ms, 0 as rank, producer_id, "
    "concat(topic, '-', partition) as log, first_offset as offset, "
    "concat_ws(' to ', if(min_epoch < max_epoch, min_epoch, null), max_epoch) as epoch, "
    "concat(record_count, if(record_count = 1, ' record', ' records'), "
    "if(is_open, ', open: ' || judgement, '')) as what, first_append_ms as at_ms "
    "from data where record_count > 0 union all "
    "select copy, marker_ms, 1, producer_id, concat(topic, '-', partition), marker_offset, string(marker_epoch), "
    "if(marker_type = 1, 'COMMIT marker', 'ABORT marker'), marker_ms "
    "from data where marker_offset is not null union all "
    "select s.copy, s.append_ms, 2, s.producer_id, concat('__transaction_state-', s.coordinator_partition), s.offset, "
    f"string(s.producer_epoch), concat(s.cause, ' -> ', coalesce(get({STATES}, s.state), 'removed')), s.append_ms "
    "from silver_coordinator_step s join ids using (copy, producer_id)"
)
catalog.show(
    timeline.orderBy("copy", "order_ms", "rank", "log", "offset").selectExpr(
        "timestamp_millis(at_ms) as at", "producer_id", "epoch", "log", "offset", "what"
    ),
    500,
)

# %% [markdown]
# ## Batches that were not the plain next one
#
# `kind` says what is irregular: a duplicate, a gap, an epoch that went back. The first batch of an epoch is
# listed too.

# %%
catalog.show(
    spark.sql(
        "select topic, partition, offset, kind, producer_epoch, first_sequence, previous_epoch, "
        "previous_sequence, other_offset from silver_sequence_event "
        "join (select distinct copy, producer_id from owned) using (copy, producer_id) "
        "order by topic, partition, offset"
    ),
    200,
)
