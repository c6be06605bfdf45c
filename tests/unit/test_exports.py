"""Exports of the internal topics: the same states and commits as the bytes, and no more findings."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.spark import trust
from pipeline.spark.plan import plan
from pipeline.wire import record, segment
from pipeline.wire.batch import Batch
from pipeline.wire.log_dir import parse_name
from tests import pure_audit
from tests.recordings import recording

TXN_TOPIC, OFFSETS_TOPIC = "__transaction_state", "__consumer_offsets"


def exported(logs: Path, topic: str) -> list[dict[str, object]]:
    """Rows as Spark's Kafka source gives them: no markers, no headers."""
    rows: list[dict[str, object]] = []
    for path in sorted(logs.rglob("*.log")):
        place = parse_name(path.parent.name)
        if place is None or place.topic != topic or place.suffix:
            continue
        data = path.read_bytes()
        for batch in segment.iterate(data):
            if isinstance(batch, Batch) and not batch.is_control:
                rows += [
                    {
                        "key": item.key, "value": item.value, "topic": topic,
                        "partition": place.partition, "offset": item.offset,
                        "timestamp": item.timestamp_ms * 1000, "timestampType": 0,
                    }
                    for item in record.records(data[batch.position :][: batch.size_bytes])
                ]  # fmt: skip
    return rows


SCHEMA = pa.schema(
    [
        ("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string()),
        ("partition", pa.int32()), ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")), ("timestampType", pa.int32()),
    ]
)  # fmt: skip


def write(folder: Path, rows: list[dict[str, object]], parts: int = 2) -> None:
    folder.mkdir(parents=True)
    for number in range(parts):
        table = pa.Table.from_pylist(rows[number::parts], schema=SCHEMA)
        pq.write_table(table, folder / f"part-{number}.parquet")


@pytest.mark.parametrize("name", ["01", "02", "06", "10a", "19", "13a", "05c", "20a"])
def test_states_and_commits_equal_those_of_the_bytes(tmp_path: Path, name: str) -> None:
    logs = recording(name) / "logs" / "broker-1"
    rows = exported(logs, TXN_TOPIC) + exported(logs, OFFSETS_TOPIC)
    write(tmp_path / "export", rows)
    mine = pure_audit.replayed(pure_audit.read(tmp_path, pure_audit.Config()))
    theirs = pure_audit.replayed(pure_audit.read(logs, pure_audit.Config()))
    key = ("transactional_id", "offset", "state", "producer_id", "producer_epoch")
    wanted = {tuple(row[one] for one in key) for row in theirs.steps}
    assert {tuple(row[one] for one in key) for row in mine.steps} == wanted
    assert wanted
    assert len({row["topic"] for row in rows}) <= 2
    assert trust.ceilings(mine.read.plan) == {0: "proven_if_complete"}
    assert {one.source for one in mine.read.plan.replicas} == {"export"}


@pytest.mark.parametrize("name", ["01", "02", "06", "10a", "19", "13a", "05c", "20a", "15a", "16a"])
def test_nothing_is_accused_that_the_logs_do_not_accuse(tmp_path: Path, name: str) -> None:
    logs = recording(name) / "logs" / "broker-1"
    write(tmp_path / "export", exported(logs, TXN_TOPIC) + exported(logs, OFFSETS_TOPIC))
    names = ("code", "class", "topic", "partition", "producer_id", "first_offset")
    wanted = {tuple(row.get(one) for one in names) for row in pure_audit.accusations(logs)}
    for row in pure_audit.accusations(tmp_path):
        assert tuple(row.get(one) for one in names) in wanted


def test_a_record_twice_counts_once(tmp_path: Path) -> None:
    rows = exported(recording("06") / "logs" / "broker-1", TXN_TOPIC)
    write(tmp_path / "once", rows)
    write(tmp_path / "twice", rows + rows)
    once, twice = (
        pure_audit.read(tmp_path / one, pure_audit.Config()) for one in ("once", "twice")
    )
    count = [sum(len(found) for found in one.states.values()) for one in (once, twice)]
    assert count == [len(rows), len(rows)]


def test_delta_gives_its_newest_version(tmp_path: Path) -> None:
    rows = exported(recording("06") / "logs" / "broker-1", TXN_TOPIC)
    write(tmp_path / "table", rows)
    log = tmp_path / "table" / "_delta_log"
    log.mkdir()
    first = [{"add": {"path": f"part-{number}.parquet"}} for number in range(2)]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, first)))
    (log / f"{1:020d}.json").write_text(json.dumps({"remove": {"path": "part-1.parquet"}}))
    found = pure_audit.read(tmp_path, pure_audit.Config())
    assert sum(len(one) for one in found.states.values()) == len(rows[0::2])
    (log / f"{0:020d}.json").unlink()
    (unread,) = plan([str(tmp_path)]).unread
    assert unread.detail == "a Delta log without its beginning"


def test_other_parquet_is_foreign(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "y.parquet").write_bytes(b"PAR1")
    planned = plan([str(tmp_path)])
    assert {one.reason for one in planned.skipped} == {"foreign"}
    assert not planned.replicas


def test_wrong_values_are_rows_and_no_exception(tmp_path: Path) -> None:
    rows = exported(recording("06") / "logs" / "broker-1", TXN_TOPIC)[:3]
    rows[1] = {**rows[1], "value": b"\x00"}
    rows[2] = {**rows[2], "key": None}
    write(tmp_path / "export", rows, parts=1)
    found = pure_audit.read(tmp_path, pure_audit.Config())
    assert [row["reason"] for row in found.unreadable] == ["bad_record", "bad_record"]


@pytest.mark.parametrize("is_base64", [True, False])
def test_text_is_base64_or_told(is_base64: bool, tmp_path: Path) -> None:
    rows = exported(recording("06") / "logs" / "broker-1", TXN_TOPIC)
    for row in rows:
        for name in ("key", "value"):
            raw = row[name]
            if isinstance(raw, bytes):
                text = base64.b64encode(raw) if is_base64 else raw
                row[name] = text.decode("utf-8", "replace")
    at = SCHEMA.set(0, pa.field("key", pa.string())).set(1, pa.field("value", pa.string()))
    (tmp_path / "export").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=at), tmp_path / "export" / "x.parquet")
    found = pure_audit.read(tmp_path, pure_audit.Config())
    if is_base64:
        assert sum(len(one) for one in found.states.values()) == len(rows)
        assert found.unreadable == []
    else:
        assert not any(found.states.values())
        assert {row["reason"] for row in found.unreadable} == {"io"}
        assert "export it as binary" in found.unreadable[0]["explanation"]
