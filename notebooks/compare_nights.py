# %% [markdown]
# # Two nights beside each other
#
# What two runs of one output root found, what one of them could not judge, and how much each of them read.

# %%
from pipeline import catalog
from pipeline.spark import session

# %% Parameters
OUTPUT = "audit-output"  # output root with at least two runs
BEFORE = None  # a run of it; None takes the one before NOW
NOW = None  # a run of it; None takes the newest completed one

# %%
spark = session.build()
now = catalog.open_tables(spark, OUTPUT, NOW)
runs = catalog.completed_runs(OUTPUT, *([BEFORE] if BEFORE else []))
earlier = runs[: runs.index(now)] if now in runs else []
if now is None or not (BEFORE or earlier):
    raise SystemExit(
        f"{OUTPUT} holds no two completed runs to compare: {', '.join(runs) or 'none'}"
    )
nights = {"before": BEFORE or earlier[-1], "now": now}

# %% [markdown]
# ## The runs
#
# Compare coverage first: a finding can also be missing because its partition was not copied.

# %%
catalog.show(
    spark.sql(
        "select run_id, verdict, timestamp_millis(as_of_ms) as as_of, "
        "get_json_object(summary, '$.coverage.partitions') as partitions, "
        "get_json_object(summary, '$.coverage.records') as records, "
        "get_json_object(summary, '$.coverage.is_one_instant') as one_instant, "
        "get_json_object(summary, '$.could_not_judge') as could_not_judge "
        "from gold_run where run_id in ({before}, {now}) order by sequence",
        **nights,
    )
)

# %% [markdown]
# ## What differs
#
# A finding keeps its `finding_id`. The audit's own word is `status_now`: `resolved` was looked for and is gone,
# `not_seen` could not
# be looked for. A finding without a row in a run has no status there. What was new and is open is left out.

# %%
differences = spark.sql(
    "select coalesce(n.code, b.code) as code, coalesce(n.class, b.class) as class, "
    "coalesce(n.severity, b.severity) as severity, b.status as status_before, n.status as status_now, "
    "coalesce(n.title, b.title) as title "
    "from (select * from gold_finding where run_id = {before}) b "
    "full join (select * from gold_finding where run_id = {now}) n using (finding_id) "
    "where not (b.status <=> n.status) and not (b.status <=> 'new' and n.status <=> 'open') "
    "order by status_now, code, title",
    **nights,
)
catalog.show(differences, 200)

# %% [markdown]
# ## Counts by class

# %%
catalog.show(
    spark.sql(
        "select code, class, count_if(run_id = {before}) as before, count_if(run_id = {now}) as now "
        "from gold_finding where run_id in ({before}, {now}) and status in ('new', 'open', 'suppressed') "
        "group by code, class order by code, class",
        **nights,
    ),
    200,
)
