"""Gold: what people act on."""

from __future__ import annotations

from schemas.table import Column, Table

SEVERITIES = ("critical", "major", "minor", "info")
CERTAINTIES = ("proven", "proven_if_complete", "consistent_with", "suspicion")
STATUSES = ("new", "open", "resolved", "not_seen", "suppressed")

EVIDENCE_TYPE = "array<struct<broker:int,file:string,position:long,offset:long,what:string>>"

FINDING = Table(
    "gold",
    "finding",
    "One finding: one offending batch, marker or record, or one transaction and partition.",
    (
        Column("run_id", "string", "Run that reports it."),
        Column(
            "finding_id",
            "string",
            "SHA-256 of the fault's identity: the same every night, from every replica.",
        ),
        Column("code", "string", "Detector."),
        Column("class", "string", "Class within the detector."),
        Column("severity", "string", "critical, major, minor or info."),
        Column("certainty", "string", "proven, proven_if_complete, consistent_with or suspicion."),
        Column("status", "string", "new, open, resolved, not_seen or suppressed."),
        Column("topic", "string", "Topic.", True),
        Column("partition", "int", "Partition.", True),
        Column("producer_id", "long", "Producer id.", True),
        Column("producer_epoch", "int", "Producer epoch.", True),
        Column("transactional_id", "string", "Transactional id.", True),
        Column("group_id", "string", "Consumer group.", True),
        Column("first_offset", "long", "First offset concerned.", True),
        Column("last_offset", "long", "Last offset concerned, inclusive.", True),
        Column(
            "first_timestamp_ms",
            "long",
            "First time concerned, a broker's clock where there is one.",
            True,
        ),
        Column("last_timestamp_ms", "long", "Last time concerned.", True),
        Column("title", "string", "What is wrong, in one line."),
        Column("explanation", "string", "What happened, in plain words with figures."),
        Column("advice", "string", "What to do, with the command where there is a safe one."),
        Column("refuted_by", "string", "What evidence would prove this finding wrong."),
        Column("evidence", EVIDENCE_TYPE, "Where it stands in the files."),
    ),
    ("run_id", "finding_id"),
)

RUN = Table(
    "gold",
    "run",
    "One audit run: verdict, coverage and provenance, the same as `summary.json`.",
    (
        Column("run_id", "string", "Given, or as-of with a hash of input and configuration."),
        Column("sequence", "int", "Order of the runs of this output root."),
        Column("cluster_id", "string", "Cluster, or `unknown`."),
        Column("verdict", "string", "passed, failed or unknown."),
        Column("exit_code", "int", "As in the command's contract."),
        Column("as_of_ms", "long", "Newest broker-stamped time in any log.", True),
        Column("is_completed", "boolean", "The run ended and its files were written."),
        Column("summary", "string", "JSON: counts, coverage, detectors, inputs, versions."),
    ),
    ("run_id",),
)

METRIC = Table(
    "gold",
    "metric",
    "A figure of transactions over time, by application: what operators draw. Names are `transactions_begun`, "
    "`transactions_ongoing`, `transactions_committed`, `transactions_aborted`, `transactions_timed_out`, "
    "`transactions_fenced`, `commit_latency`, `marker_latency` and `epochs_burnt` (`pipeline.replay.metrics`).",
    (
        Column("run_id", "string", "Run that counted."),
        Column("copy", "int", "Copy of the cluster."),
        Column("name", "string", "What was counted or measured."),
        Column(
            "application",
            "string",
            "Application, as its transactional ids tell; `(other)` beyond 200.",
        ),
        Column("quantile", "int", "50, 95 or 99 of a latency; null for counts.", True),
        Column("bucket_start_ms", "long", "Beginning of the hour or day, in UTC."),
        Column("bucket_ms", "long", "Its length: 3600000 or 86400000."),
        Column("value", "double", "The figure."),
        Column("unit", "string", "transactions, epochs or ms."),
    ),
    ("run_id", "copy", "name", "application", "quantile", "bucket_start_ms"),
)

TABLES = (FINDING, RUN, METRIC)
