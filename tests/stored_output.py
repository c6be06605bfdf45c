"""An output root without Spark: a small run's tables as Parquet files and Delta commits.

One transaction of `payments-1` in two partitions, all in order: every expectation of the gate passes. Tests
change rows, files or the summary and look what the gate says.
"""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.detect import DETECTORS
from pipeline.findings import finding_id
from pipeline.spark.arrow import arrow_schema
from pipeline.version import VERSION
from schemas import bronze, gold, silver
from schemas.table import Table

RUN_ID = "20261126T020000Z-0123abcd"
START_MS = 1_795_658_400_000
REPLICAS = {1: ("orders", 0), 2: ("orders", 1), 3: ("__transaction_state", 0)}
Row = dict[str, Any]
Tables = dict[str, list[Row]]
_PHYSICAL = {
    "entry": bronze.ENTRY,
    "segment": bronze.SEGMENT,
    "replica": silver.REPLICA,
    "coordinator": silver.COORDINATOR,
    "partition_history": silver.PARTITION_HISTORY,
    "sequence_event": silver.SEQUENCE_EVENT,
    "committed_offset": silver.COMMITTED_OFFSET,
    "finding": gold.FINDING,
    "run": gold.RUN,
}


def finding(**changed: Any) -> Row:
    """A critical, proven, new finding."""
    row: Row = {
        "code": "hanging_transaction", "class": "orphan_producer", "severity": "critical",
        "certainty": "proven", "status": "new", "topic": "orders", "partition": 0, "producer_id": 7,
        "producer_epoch": 0, "transactional_id": "payments-1", "group_id": None, "first_offset": 0,
        "last_offset": 1, "first_timestamp_ms": START_MS, "last_timestamp_ms": START_MS + 2000,
        "title": "open transaction pins orders-0", "explanation": "no marker ends it",
        "advice": "kafka-transactions.sh --bootstrap-server <host:port> abort --topic orders --partition 0 "
        "--start-offset 0",
        "refuted_by": "a marker",
        "evidence": [
            {"broker": 1, "file": "b/orders-0/0.log", "position": 0, "offset": 0, "what": "first batch"}
        ],
    } | changed  # fmt: skip
    row["finding_id"] = changed.get("finding_id") or finding_id(row)
    return row


def tables(findings: list[Row] | None = None) -> Tables:
    """Rows of every physical table."""
    rows: Tables = defaultdict(list)
    for number, (topic, partition) in REPLICAS.items():
        count = 3 if topic.startswith("__") else 2
        rows["replica"].append(
            row(
                silver.REPLICA, replica_id=number, topic=topic, partition=partition, broker_id=1,
                log_dir="b", is_replayed=True, is_one_instant=True, is_complete=True,
                log_end_offset=count, high_watermark=count,
            )
        )  # fmt: skip
        rows["segment"].append(
            row(
                bronze.SEGMENT, segment_id=number * 10, replica_id=number,
                file=f"b/{topic}-{partition}/00000000000000000000.log", size_bytes=200,
                readable_bytes=200, first_offset=0, last_offset=count - 1, batch_count=count,
                record_count=count, marker_count=0 if count == 3 else 1,
            )
        )  # fmt: skip
        for offset in range(count):
            rows["entry"].append(_entry(number, offset, count == 3, offset == 1))
    for number, state in enumerate((1, 2, 4)):
        rows["coordinator"].append(
            row(
                silver.COORDINATOR, kind="coordinator_step", copy=0, coordinator_partition=0,
                offset=number, transactional_id="payments-1", append_ms=START_MS + 1000 * number,
                state=state, producer_id=7, producer_epoch=0, cause="init", transaction_version=2,
            )
        )  # fmt: skip
    rows["coordinator"].append(
        row(
            silver.COORDINATOR, kind="transaction", copy=0, coordinator_partition=0,
            transactional_id="payments-1", first_step_offset=0, producer_id=7, producer_epoch=0,
            state=4, outcome=1, cause="client_commit", transaction_version=2, txn_timeout_ms=60000,
            start_ms=START_MS, ongoing_ms=START_MS, prepare_ms=START_MS + 1000,
            complete_ms=START_MS + 2000, has_start=True, partition_count=2,
            partitions=[{"topic": "orders", "partition": n, "added_ms": START_MS} for n in (0, 1)],
        )
    )  # fmt: skip
    rows["coordinator"].append(
        row(
            silver.COORDINATOR, kind="owner", copy=0, producer_id=7, transactional_id="payments-1",
            coordinator_partition=0, is_current=True, state=4, producer_epoch=0,
            transaction_version=2, append_ms=START_MS + 2000, listed_partitions=[],
        )
    )  # fmt: skip
    for partition in (0, 1):
        rows["partition_history"] += _history(partition)
    rows["finding"] = copy.deepcopy(findings or [])
    rows["run"] = []
    return rows


def summary(**changed: Any) -> Row:
    """What `summary.json` says of the run."""
    plain: Row = {
        "run_id": RUN_ID, "version": VERSION, "cluster_id": "c1", "verdict": "passed", "exit_code": 0,
        "gate": {"severity": "major", "certainty": "proven", "require": None, "rules": [],
                 "max_copy_age_ms": None, "failing": 0},
        "counts": {"by_severity": {}, "by_certainty": {}, "by_class": {}, "by_status": {}},
        "could_not_judge": [],
        "detectors": {one.CODE: "judged" for one in DETECTORS},
        "coverage": {
            "brokers": [1], "copies": 1, "partitions": 3, "replicas": 3, "segments": 3, "bytes": 600,
            "readable_bytes": 600, "batches": 7, "records": 7, "markers": 2,
            "first_broker_ms": START_MS, "last_broker_ms": START_MS + 2000, "is_one_instant": True,
            "coordinator_partitions": {"0": "all read"}, "skipped_files": 0, "skipped": [],
            "damaged_places": 0,
        },
        "configuration": "c" * 64, "input": {"paths": ["/copies"], "fingerprint": "f" * 64},
        "previous_run": None, "command_line": ["spark-submit.sh"],
        "expectations": [{"name": "gate.findings", "promise": "none", "outcome": "passed",
                          "offences": 0, "evidence": []}],
        "suppressions": [], "timing": {"elapsed_s": 1.0, "stages": {}, "now_ms": START_MS},
    }  # fmt: skip
    return plain | changed


def write(root: Path, rows: Tables, about: Row, sequence: int = 1, run_id: str = RUN_ID) -> str:
    """Writes an output root.

    Args:
        root: Its folder.
        rows: Rows of the physical tables.
        about: The run's summary.
        sequence: Of the run.
        run_id: The run.

    Returns:
        The root as text.
    """
    held = dict(rows)
    held["run"] = [
        {
            "run_id": run_id, "sequence": sequence, "cluster_id": about["cluster_id"],
            "verdict": about["verdict"], "exit_code": about["exit_code"],
            "as_of_ms": about["coverage"]["last_broker_ms"], "is_completed": True,
            "summary": json.dumps(about, sort_keys=True),
        }
    ]  # fmt: skip
    for name, table in _PHYSICAL.items():
        write_table(root, table, held.get(name, []), run_id, sequence)
    return str(root)


def write_table(root: Path, table: Table, rows: list[Row], run_id: str, version: int) -> None:
    """One commit of a table: a Parquet file a partition, and the log's JSON lines."""
    folder = root / table.layer / table.name
    by_kind: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        by_kind[row["kind"] if table is bronze.ENTRY else None].append(row)
    fields = [{"name": name} for name in {"run_id": None, **dict.fromkeys(table.names)}]
    made = {"metaData": {"schemaString": json.dumps({"fields": fields})}}
    actions: list[Row] = [{"commitInfo": {"operation": "WRITE"}}, made]
    for kind, mine in by_kind.items():
        values = {"run_id": run_id} | ({"kind": kind} if kind else {})
        place = "/".join(f"{key}={value}" for key, value in values.items())
        file = f"{place}/part-0-{version}.parquet"
        (folder / place).mkdir(parents=True, exist_ok=True)
        schema = pa.schema([field for field in arrow_schema(table) if field.name not in values])
        arrays = [pa.array([row.get(one.name) for row in mine], one.type) for one in schema]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), folder / file)
        actions.append({"add": {"path": file, "partitionValues": values, "dataChange": True}})
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{version - 1:020d}.json").write_text(lines)


def _entry(replica: int, offset: int, is_coordinator: bool, is_marker: bool) -> Row:
    plain = row(
        bronze.ENTRY, kind="txn_state" if is_coordinator else "batch", segment_id=replica * 10,
        replica_id=replica, position=100 * offset, base_offset=offset, producer_id=7,
        producer_epoch=0, max_timestamp_ms=START_MS + 500 * offset,
    )  # fmt: skip
    if is_coordinator:
        return plain | {"state": (1, 2, 4)[offset], "transactional_id": "payments-1"}
    return plain | {
        "last_offset": offset, "magic": 2, "codec": 0, "timestamp_type": 0, "records_count": 1,
        "is_transactional": True, "is_control": is_marker,
    }  # fmt: skip


def _history(partition: int) -> list[Row]:
    place = {"copy": 0, "topic": "orders", "partition": partition, "producer_id": 7}
    run = row(
        silver.PARTITION_HISTORY, kind="partition_txn", replica_id=partition + 1, run_number=0,
        is_transactional=True, is_open=False, first_offset=0, last_offset=0, batch_count=1,
        record_count=1, size_bytes=100, min_epoch=0, max_epoch=0, irregular_count=0,
        marker_offset=1, marker_type=1, marker_epoch=0, marker_ms=START_MS + 1500,
        transactional_id="payments-1", alignment="exact", **place,
    )  # fmt: skip
    promise = row(
        silver.PARTITION_HISTORY, kind="transaction_partition", coordinator_partition=0,
        transactional_id="payments-1", transaction_offset=0, producer_epoch=0, state=4, outcome=1,
        transaction_version=2, marker_count=1, status="present", **place,
    )  # fmt: skip
    return [run, promise]


def row(table: Table, **given: Any) -> Row:
    """Given values; null where it is allowed, else 0, empty or false."""
    plain = {"long": 0, "int": 0, "string": "", "boolean": False}
    row = {one.name: None if one.nullable else plain.get(one.type, []) for one in table.columns}
    unknown = set(given) - set(row)
    assert not unknown, unknown
    return row | given
