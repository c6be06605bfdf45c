"""Audits within the shared session, and their tables as plain rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pipeline import audit
from pipeline.audit import AuditResult
from pipeline.config import Config
from pipeline.spark import silver_views, tables
from schemas import bronze, gold
from schemas import silver as declared
from schemas.table import Table
from tests.score import Finding, findings_of

TABLES = (
    bronze.ENTRY, bronze.SEGMENT, declared.REPLICA, declared.COORDINATOR, declared.PARTITION_HISTORY,
    declared.SEQUENCE_EVENT, declared.COMMITTED_OFFSET, gold.FINDING, gold.RUN,
)  # fmt: skip
Rows = list[tuple[str, ...]]


def audited(spark: SparkSession, source: Path, output: Path, **settings: Any) -> AuditResult:
    """Audits a tree of log directories.

    Args:
        spark: The shared session.
        source: The tree.
        output: Output root.
        **settings: Fields of `Config`.
    """
    return audit.run(spark, Config(inputs=(str(source),), output=str(output), **settings))


def found(result: AuditResult) -> list[Finding]:
    """What `findings.jsonl` says."""
    return findings_of(Path(result.output_dir))


def rows_of(spark: SparkSession, table: Table, output: Path, run_id: str) -> list[dict[str, Any]]:
    """Rows of a silver table of one run."""
    view = silver_views.view(spark, table, str(output), run_id)
    return [row.asDict(recursive=True) for row in view.collect()]


def content(spark: SparkSession, output: Path, run_id: str) -> dict[str, Rows]:
    """Every physical table of a run as sorted text, without what a clock or the caller's path says."""
    held = {}
    for table in TABLES:
        if tables.exists(table, str(output)):
            rows = tables.read(spark, table, str(output), run_id).toArrow().to_pylist()
            held[table.name] = sorted(tuple(_text(name, row[name]) for name in row) for row in rows)
    return held


def _text(name: str, value: Any) -> str:
    if name == "summary":
        value = {key: part for key, part in json.loads(value).items() if key != "timing"}
    return json.dumps(value, sort_keys=True, default=str)


def laid_out(folders: dict[str, Path], root: Path) -> Path:
    """Several `logs` folders side by side as copies of one cluster, so that one audit takes all.

    Args:
        folders: Name of each copy -> its log directories.
        root: Where they are laid out.
    """
    for name, folder in folders.items():
        shutil.copytree(folder, root / name)
    for file in root.glob("*/*/meta.properties"):
        lines = file.read_text().splitlines()
        kept = [line for line in lines if not line.startswith(("cluster.id=", "directory.id="))]
        # Copies of one disk bear one id; two ids would be two disks of one copy.
        same = ["cluster.id=side-by-side", f"directory.id={file.parent.name}"]
        file.write_text("\n".join([*kept, *same, ""]))
    return root
