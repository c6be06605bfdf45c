# %% [markdown]
# # From a stuck last stable offset to its culprit
#
# A `read_committed` consumer stands still although records arrive: some transaction is open and pins the last
# stable offset
# (LSO) of the partition. This notebook follows it: partition -> open transaction -> producer id ->
# transactional id -> what its
# coordinator did -> what the audit says about it.

# %%
from pipeline import catalog
from pipeline.spark import session
from schemas.codes import STATE_NAMES

# %% Parameters
OUTPUT = "audit-output/self-check"  # output root of an audit
RUN_ID = None  # a run of it; None takes the newest completed one
TOPIC = "h-topic"
PARTITION = 1

# %%
spark = session.build()
STATES = "array('" + "', '".join(STATE_NAMES.values()) + "')"  # name of a state by its number
run_id = catalog.open_tables(spark, OUTPUT, RUN_ID)
place = {"topic": TOPIC, "partition": PARTITION}

# %% [markdown]
# ## Where the LSO stands
#
# `pinned_to_offset` is null while the transaction still pins. No row: nothing was open at the end of the copied log.

# %%
pins = spark.sql(
    "select l.copy, l.producer_id, l.run_number, r.log_end_offset, "
    "greatest(l.last_stable_offset, r.log_start_offset) as last_stable_offset, "
    "r.log_end_offset - greatest(l.last_stable_offset, r.log_start_offset) as lag "
    "from silver_lso l join silver_replica r using (replica_id) "
    "where l.topic = {topic} and l.partition = {partition} and l.pinned_to_offset is null",
    **place,
)
catalog.show(pins)

# %% [markdown]
# ## What is open
#
# `judgement` is `open` for a transaction that its coordinator still holds: it ends by itself. The other values
# name how it hangs,
# and `reason` says why it was judged so, or why it could not be.

# %%
catalog.show(
    spark.sql(
        "select copy, producer_id, transactional_id, application(transactional_id) as application, "
        "max_epoch, first_offset, last_offset, record_count, "
        "judgement, reason from silver_partition_txn "
        "where topic = {topic} and partition = {partition} and is_open order by copy, first_offset",
        **place,
    )
)

# %% [markdown]
# ## Who holds the producer id
#
# `application` is what the id tells: whom to call. No row: no transactional id in the copied
# `__transaction_state` has or had this producer id.

# %%
catalog.show(
    spark.sql(
        "select o.copy, o.producer_id, o.transactional_id, application(o.transactional_id) as application, "
        "o.is_current, get(" + STATES + ", o.state) as state, "
        "o.producer_epoch, "
        "o.txn_timeout_ms, timestamp_millis(o.append_ms) as last_step, o.listed_partitions "
        "from silver_owner o join silver_partition_txn p using (copy, producer_id) "
        "where p.topic = {topic} and p.partition = {partition} and p.is_open",
        **place,
    )
)

# %% [markdown]
# ## What its coordinator did
#
# The steps of those ids.

# %%
catalog.show(
    spark.sql(
        "select s.transactional_id, s.offset, timestamp_millis(s.append_ms) as at, get("
        + STATES
        + ", s.state) as state, "
        "s.producer_id, "
        "s.producer_epoch, s.cause from silver_coordinator_step s "
        "join (select distinct copy, transactional_id from silver_partition_txn where topic = {topic} "
        "and partition = {partition} and is_open) using (copy, transactional_id) "
        "order by s.copy, s.coordinator_partition, s.offset",
        **place,
    ),
    100,
)

# %% [markdown]
# ## What the audit says
#
# With the advice to follow, and what would prove it wrong. Read `refuted_by` before you abort anything.

# %%
findings = spark.sql(
    "select code, class, certainty, title, advice, refuted_by from gold_finding "
    "where run_id = {run_id} and topic = {topic} and partition = {partition} order by severity, code",
    run_id=run_id,
    **place,
)
catalog.show(findings, is_vertical=True)
