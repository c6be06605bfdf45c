# %% [markdown]
# # What the transaction coordinators did
#
# States, latencies, timeouts and fences, from `__transaction_state`.

# %%
from pathlib import Path

from pipeline import catalog
from pipeline.report import charts
from pipeline.spark import session
from schemas.codes import STATE_NAMES

# %% Parameters
OUTPUT = "audit-output/self-check"  # output root of an audit
RUN_ID = None  # a run of it; None takes the newest completed one
TRANSACTIONAL_ID = "h-ok"  # whose steps are listed
PICTURE = "coordinator_log.html"  # where the plot is written

# %%
spark = session.build()
STATES = "array('" + "', '".join(STATE_NAMES.values()) + "')"  # name of a state by its number
catalog.open_tables(spark, OUTPUT, RUN_ID)

# %% [markdown]
# ## Why the coordinators wrote
#
# One row a cause of `silver.coordinator_step`; `violations` counts steps that no broker may write.

# %%
causes = spark.sql(
    "select cause, count(*) as steps, count(violation) as violations, "
    "count(distinct transactional_id) as ids from silver_coordinator_step group by cause order by steps desc"
)
catalog.show(causes)

# %% [markdown]
# ## How transactions ended, and how long they took
#
# In ms of the coordinator's clock: `client` from the first Ongoing to Prepare, `markers` from there to
# Complete. A null cause: not
# ended in the copied log.

# %%
catalog.show(
    spark.sql(
        "select cause, count(*) as transactions, "
        "percentile_approx(prepare_ms - ongoing_ms, array(0.5, 0.99)) as client, "
        "percentile_approx(complete_ms - prepare_ms, array(0.5, 0.99)) as markers "
        "from silver_transaction group by cause order by transactions desc"
    )
)

# %% [markdown]
# ## Which applications
#
# Ids that belong together, by what they tell of Kafka Streams, Connect, Flink or `health.application_pattern`; an id
# that tells nothing stands for itself.

# %%
applications = spark.sql(
    "select coalesce(application(transactional_id), transactional_id) as application, "
    "count(distinct transactional_id) as ids, count(*) as transactions, "
    "count_if(outcome = 1) as committed, count_if(outcome = 0) as aborted "
    "from silver_transaction group by 1 order by transactions desc, application limit 20"
)
catalog.show(applications)

# %% [markdown]
# ## Who was fenced, who timed out

# %%
catalog.show(
    spark.sql(
        "select transactional_id, application(transactional_id) as application, cause, count(*) as times, "
        "max(timestamp_millis(append_ms)) as last_at "
        "from silver_coordinator_step where cause in ('fence', 'timeout') "
        "group by transactional_id, cause order by times desc limit 20"
    )
)

# %% [markdown]
# ## One id, step by step

# %%
catalog.show(
    spark.sql(
        f"select copy, offset, timestamp_millis(append_ms) as at, get({STATES}, state) as state, "
        f"get({STATES}, previous_state) as previous_state, producer_id, "
        "producer_epoch, cause, violation from silver_coordinator_step "
        "where transactional_id = {id} order by copy, coordinator_partition, offset",
        id=TRANSACTIONAL_ID,
    ),
    100,
)

# %% [markdown]
# ## Latency over time
#
# Each point is a completed transaction: ms from Prepare to Complete at the time of Complete.

# %%
completed = spark.sql(
    "select complete_ms, complete_ms - prepare_ms as took from silver_transaction "
    "where complete_ms is not null and prepare_ms is not null order by complete_ms"
).collect()
points = [(row["complete_ms"], row["took"]) for row in completed]
picture = charts.lines("ms from Prepare to Complete", "ms", {"markers": points})
if picture is not None:
    Path(PICTURE).write_text(picture, encoding="utf-8")
