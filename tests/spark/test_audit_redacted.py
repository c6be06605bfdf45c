"""`redact: true`: no id in any output, and the same findings."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from pipeline import rejudge, secret
from pipeline.audit import AuditResult
from pipeline.config import Config
from pipeline.config_sections import Selection
from pipeline.errors import ConfigError, UsageError
from pipeline.report import terminal
from schemas import bronze, silver
from tests.plant import plant
from tests.recordings import recording
from tests.spark.audited import audited, found, laid_out, rows_of

pytestmark = pytest.mark.spark
KEY = "a key of the tests, long enough"
SAME = (
    "code", "class", "severity", "certainty", "topic", "partition", "producer_id",
    "producer_epoch", "first_offset", "last_offset", "status",
)  # fmt: skip
PLANTED = ("storm", "idle_expired", "regressed", "producer_id_shared", "wrong_partition")


def names_in(spark: SparkSession, result: AuditResult, output: Path) -> set[str]:
    """Every id of the tables, and the folders of the input."""
    steps = rows_of(spark, silver.COORDINATOR_STEP, output, result.run_id)
    commits = rows_of(spark, silver.COMMITTED_OFFSET, output, result.run_id)
    ids = {row["transactional_id"] for row in steps} | {row["group_id"] for row in commits}
    for row in rows_of_bronze(output):
        ids |= {row.get("group_id"), row.get("transactional_id")}
    return {one for one in ids if one} | {"first-host", *map(host, PLANTED)}


def host(fault: str) -> str:
    """A folder's name that is no word of ours, as the class of a fault is."""
    return f"host-of-{fault}"


def rows_of_bronze(output: Path) -> list[dict[str, Any]]:
    files = output.glob(f"{bronze.ENTRY.layer}/{bronze.ENTRY.name}/**/*.parquet")
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def everything(output: Path) -> str:
    """Text of all files of an output root, Parquet decoded."""
    texts = []
    for file in sorted(output.glob("**/*")):
        if file.suffix == ".parquet":
            texts.append(str(pq.ParquetFile(file).read().to_pydict()))
        elif file.is_file():
            texts.append(file.read_bytes().decode("utf-8", "replace"))
        texts.append(file.name)
    return "\n".join(texts)


def screen(result: AuditResult) -> str:
    out = io.StringIO()
    terminal.render(result, Console(file=out, width=400))
    return out.getvalue()


def comparable(result: AuditResult) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(one[name] for name in SAME) for one in found(result))


def test_no_name_leaves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {host(name): tmp_path / "planted" / name for name in PLANTED}
    for name in PLANTED:
        plant(name, recording("02") / "logs", folders[host(name)])
    tree = laid_out(
        folders | {"first-host": recording("16a") / "logs"}, tmp_path / "tree-of-host-7"
    )
    plain = audited(spark, tree, tmp_path / "plain", deep=True)
    ids = names_in(spark, plain, tmp_path / "plain") | {"tree-of-host-7"}
    assert len(ids) > 10
    assert all(one in everything(tmp_path / "plain") for one in ids)
    monkeypatch.setenv(secret.VARIABLE, KEY)
    monkeypatch.setattr("sys.argv", ["audit", "--input", str(tree), "--group=g"])
    hidden = audited(spark, tree, tmp_path / "hidden", deep=True, redact=True)
    text = everything(tmp_path / "hidden") + screen(hidden)
    assert [one for one in sorted(ids) if one in text] == []
    assert KEY not in text
    assert "the same in every run with this key" in screen(hidden)
    assert hidden.summary["command_line"] == ["spark-submit.sh", "--input", "***", "--group=***"]
    assert comparable(plain) == comparable(hidden)
    assert (plain.verdict, plain.exit_code) == (hidden.verdict, hidden.exit_code)
    with pytest.raises(UsageError, match="names as they are: use another --output"):
        audited(spark, tree, tmp_path / "plain", redact=True)
    one = next(row["transactional_id"] for row in found(hidden) if row["transactional_id"])
    told = Config(output=str(tmp_path / "hidden"), selection=Selection(transactional_id=one))
    assert {row["transactional_id"] for row in rejudge.report(told).examples} == {one}
    monkeypatch.delenv(secret.VARIABLE)
    with pytest.raises(ConfigError, match="another key"):
        rejudge.report(told.model_copy(update={"selection": Selection(group="orders")}))


def test_without_a_key_runs_do_not_compare(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(secret.VARIABLE, raising=False)
    source, output = recording("08a") / "logs", tmp_path / "out"
    first = audited(spark, source, output, redact=True, run_id="first")
    second = audited(spark, source, output, redact=True, run_id="second")
    assert "do not compare over nights" in screen(second)
    assert first.summary["redaction"]["key_name"] != second.summary["redaction"]["key_name"]
    assert {one["status"] for one in found(second)} == {"new"}
