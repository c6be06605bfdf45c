"""The tables of a run as sorted text, read without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipeline.spark import tables
from schemas import bronze, gold, silver

PHYSICAL = (
    bronze.ENTRY, bronze.SEGMENT, silver.REPLICA, silver.COORDINATOR, silver.PARTITION_HISTORY,
    silver.COMMITTED_OFFSET, gold.FINDING, gold.METRIC, gold.RUN,
)  # fmt: skip

OF_THE_RUN = ("timing", "command_line")
"""Fields of the summary that tell how it was made, not what it says."""


def stored(output: Path, run_id: str) -> dict[str, list[str]]:
    """Rows of every physical table of a run that ended, without what clocks and command lines say."""
    held: dict[str, list[str]] = {}
    for table in PHYSICAL:
        rows: list[str] = []
        for path, values in tables.files(table, str(output), run_id):
            for row in pq.ParquetFile(path).read().to_pylist():
                rows.append(json.dumps(_plain(row) | values, sort_keys=True, default=str))
        held[f"{table.layer}.{table.name}"] = sorted(rows)
    assert len(held["gold.run"]) == 1, (output, run_id, len(held["gold.run"]))
    assert held["bronze.entry"], (output, run_id)
    return held


def versions(output: Path) -> dict[str, list[int]]:
    """Numbers of the commits of every table that exists."""
    return {
        f"{table.layer}.{table.name}": sorted(
            int(file.stem)
            for file in Path(tables.path(table, str(output)), "_delta_log").glob("*.json")
        )
        for table in PHYSICAL
        if tables.exists(table, str(output))
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    if "summary" in row:
        summary = {k: v for k, v in json.loads(row["summary"]).items() if k not in OF_THE_RUN}
        row = row | {"summary": json.dumps(summary, sort_keys=True)}
    return row
