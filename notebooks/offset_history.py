# %% [markdown]
# # What a group had committed, and how it got there
#
# From `__consumer_offsets` as the log tells it: a transactional commit counts from its COMMIT marker on, an
# aborted one never.

# %%
from pathlib import Path

from pipeline import catalog
from pipeline.report import charts
from pipeline.spark import session

# %% Parameters
OUTPUT = "audit-output"  # output root of an audit
RUN_ID = None  # a run of it; None takes the newest completed one
GROUP_ID = "g-simple"
AT = "2100-01-01 00:00:00"  # moment in UTC; one behind the end of the log means its end
PICTURE = "offset_history.html"  # where the plot is written

# %%
spark = session.build()
run_id = catalog.open_tables(spark, OUTPUT, RUN_ID)
spark.sql("set time zone 'UTC'")

# %% [markdown]
# ## Every record of the group
#
# `materialised`: it was in force. `pending`: its transaction is open, so a fetch of stable offsets waits.
# `superseded`: a newer one
# took its place before it counted. `deleted`: a tombstone (no offset), or swept away by one. `undecided`: its
# marker is unreadable.

# %%
history = spark.sql(
    "select copy, topic, partition, record_offset, committed_offset, previous_committed_offset, "
    "timestamp_millis(append_ms) as written, is_transactional, producer_id, outcome, marker_offset "
    "from silver_committed_offset where group_id = {group} "
    "order by copy, topic, partition, record_offset",
    group=GROUP_ID,
)
catalog.show(history, 200)

# %% [markdown]
# ## What was in force, from when on
#
# The time of a transactional commit is that of its marker.

# %%
in_force = spark.sql(
    "with marker as (select r.copy, r.partition, b.base_offset, b.max_timestamp_ms as marker_ms "
    "from bronze_batch b join silver_replica r using (replica_id) where b.run_id = {run_id} "
    "and r.topic = '__consumer_offsets' and r.is_replayed and b.is_control) "
    "select c.copy, c.topic, c.partition, c.committed_offset, c.record_offset, "
    "coalesce(c.marker_offset, c.record_offset) as decided_at, "
    "if(c.marker_offset is null, c.append_ms, m.marker_ms) as from_ms "
    "from silver_committed_offset c left join marker m on m.copy = c.copy "
    "and m.partition = c.offsets_partition and m.base_offset = c.marker_offset "
    "where c.group_id = {group} and (c.outcome = 'materialised' "
    "or (c.outcome = 'deleted' and c.committed_offset is null))",
    run_id=run_id,
    group=GROUP_ID,
)
in_force.createOrReplaceTempView("in_force")

# %% [markdown]
# ## At that moment
#
# A null offset: deleted by then. No row: nothing was committed yet, or it was cleaned away.

# %%
at_moment = spark.sql(
    "select copy, topic, partition, max_by(committed_offset, decided_at) as committed_offset, "
    "max_by(record_offset, decided_at) as record_offset, timestamp_millis(max_by(from_ms, decided_at)) as since "
    "from in_force where timestamp_millis(from_ms) <= to_timestamp({at}) "
    "group by copy, topic, partition order by copy, topic, partition",
    at=AT,
)
catalog.show(at_moment, 200)

# %% [markdown]
# ## The way there

# %%
series: dict[str, list[tuple[float, float]]] = {}
for row in (
    in_force.filter("committed_offset is not null and from_ms is not null")
    .orderBy("decided_at")
    .collect()
):
    name = f"{row['topic']}-{row['partition']}"
    series.setdefault(name, []).append((row["from_ms"], row["committed_offset"]))
picture = charts.lines(f"committed offsets of {GROUP_ID}", "offset", series, is_level=True)
if picture is not None:
    Path(PICTURE).write_text(picture, encoding="utf-8")
