"""Exports of the internal topics: Parquet or Delta with the columns of Spark's Kafka source.

Values alone: no batch headers, no markers, no leader epochs. The coordinator's states and the
commits in it are replayed; nothing that needs producers or markers can be judged from it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pipeline.spark import read_records, read_txn
from pipeline.spark.entry import Place, Row, detail_batch, entry_batch
from pipeline.spark.extent import Extent
from pipeline.spark.files import EXPORT, MARK, place
from pipeline.spark.tasks import Task
from pipeline.wire import group_offsets, txn_state
from pipeline.wire.arrays import DTYPES, BatchArrays, Chunk
from pipeline.wire.errors import WireError
from pipeline.wire.keyed import Decoded
from schemas.codes import OFFSETS_TOPIC, TXN_TOPIC

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
MAX_ROWS = 20_000_000
"""Records of one partition; they are held in memory to be sorted."""
_DELTA_LOG = "_delta_log"
_COMMIT = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


def is_export(path: str) -> bool:
    """Whether a Parquet file has the columns of Spark's Kafka source."""
    try:
        return set(COLUMNS) <= set(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, ValueError):
        return False


def active_files(folder: str) -> list[str]:
    """Parquet files of a folder; of a Delta table those of its newest version.

    Raises:
        WireError: A Delta log that cannot be followed.
        OSError: It cannot be read.
    """
    names = {one for one in os.listdir(folder) if one.endswith(".parquet") and one[0] not in "._"}
    log = Path(folder, _DELTA_LOG)
    if log.is_dir():
        names = _of_delta(log)
    return sorted(str(Path(folder, one)) for one in names)


def _of_delta(log: Path) -> set[str]:
    """Names of the files that the log's actions leave, from its newest checkpoint on."""
    present: set[str] = set()
    found = sorted(one.name for one in log.iterdir())
    checkpoints = [name for name in found if _CHECKPOINT.fullmatch(name)]
    start = ""
    try:
        if checkpoints:
            start = f"{checkpoints[-1][:20]}.json"
            actions = pq.read_table(log / checkpoints[-1], columns=["add"]).column("add")
            present = {one["path"] for one in actions.to_pylist() if one and one.get("path")}
        commits = [name for name in found if _COMMIT.fullmatch(name) and name > start]
        if not checkpoints and (not commits or int(commits[0][:20]) != 0):
            raise WireError("a Delta log without its beginning", "bad_version")
        for name in commits:
            for line in (log / name).read_text("utf-8").splitlines():
                action = json.loads(line)
                if "add" in action:
                    present.add(action["add"]["path"])
                if "remove" in action:
                    present.discard(action["remove"]["path"])
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        if isinstance(error, WireError):
            raise
        raise WireError("a Delta log that is not whole", "bad_record") from None
    if any("/" in one or "%" in one or ".." in one for one in present):
        raise WireError("a partitioned Delta table: export it without partitions", "bad_version")
    return present


def partitions(folder: str) -> list[tuple[str, int, str, int]]:
    """(topic, partition, place, bytes) of the internal topics in an export.

    Raises:
        WireError: A Delta log that cannot be followed, or columns of other types.
        OSError: It cannot be read.
    """
    files = active_files(folder)
    listed = [(Path(one).name, os.path.getsize(one)) for one in files]
    digest = hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]
    size = sum(one for _, one in listed)
    try:
        table = ds.dataset(files, format="parquet").to_table(columns=["topic", "partition"])
        pairs = table.group_by(["topic", "partition"]).aggregate([]).to_pylist()
        known = {(str(one["topic"]), int(one["partition"])) for one in pairs}
    except (pa.ArrowException, TypeError, ValueError):
        raise WireError(
            "columns of other types than Spark's Kafka source has", "bad_record"
        ) from None
    return [
        (topic, number, place(EXPORT, f"{topic}-{number}", size, digest, folder), size)
        for topic, number in sorted(known)
    ]


def export_rows(task: Task, where: Place) -> Iterator[pa.RecordBatch]:
    """Rows of one exported partition, as the reader of bytes makes them but for batches.

    Args:
        task: The partition.
        where: Where its rows belong.
    """
    _, name, _, _, folder = task.path.split(MARK)
    topic, _, number = name.rpartition("-")
    extent = Extent(task.topic, 0)
    damages: list[Row] = []
    try:
        table = _table(folder, topic, int(number))
        if table.num_rows:
            arrays = _arrays(table)
            extent.add(arrays)
            extent.size = int(arrays.size_bytes.sum())
            yield from _decoded(topic, where, Chunk(arrays, b"", 0), table, damages, task.name)
    except (pa.ArrowException, OSError, WireError, ValueError, TypeError) as error:
        why = str(error) if isinstance(error, WireError) else "cannot be read as an export"
        damages.append(_damage(task.name, 0, 0, "io", why))
    yield detail_batch(where, "scan", [extent.row(task.name, task.base_offset)])
    if damages:
        yield detail_batch(where, "unreadable", damages)


def _table(folder: str, topic: str, number: int) -> pa.Table:
    """Records of a partition by offset, each once: an export may hold one twice."""
    source = ds.dataset(active_files(folder), format="parquet")
    wanted = (ds.field("topic") == topic) & (ds.field("partition") == number)
    if source.count_rows(filter=wanted) > MAX_ROWS:
        raise WireError(f"more than {MAX_ROWS} records in one partition", "too_large")
    table = source.to_table(columns=["key", "value", "offset", "timestamp"], filter=wanted)
    table = table.sort_by("offset")
    offsets = table.column("offset").to_numpy()
    is_first = np.ones(len(offsets), np.bool_)
    is_first[1:] = offsets[1:] != offsets[:-1]
    return _bytes(table.filter(pa.array(is_first)))


def _bytes(table: pa.Table) -> pa.Table:
    """Keys and values as bytes: an export that holds text holds base64 (`base64(key)` in SQL, JSON tools).

    Raises:
        WireError: Text that is not base64: what `CAST(value AS STRING)` leaves of binary values is no record.
    """
    for name in ("key", "value"):
        column = table.column(name)
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            continue
        try:
            raw = [
                None if text is None else base64.b64decode(text, validate=True)
                for text in column.to_pylist()
            ]
        except ValueError:
            raise WireError(
                f"{name} is text and not base64: export it as binary, or as base64({name})",
                "bad_record",
            ) from None
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(raw, pa.binary()))
    return table


def _arrays(table: pa.Table) -> BatchArrays:
    """One row a record, as if each were a batch of its own; what an export lacks is none."""
    count = table.num_rows
    columns = {name: np.full(count, -1, kind) for name, kind in DTYPES.items()}
    for name in ("attributes", "codec", "crc", "timestamp_type"):
        columns[name] = np.zeros(count, DTYPES[name])
    for name in ("is_transactional", "is_control"):
        columns[name] = np.zeros(count, np.bool_)
    offsets = table.column("offset").to_numpy().astype(np.int64)
    sizes = [
        pc.fill_null(pc.binary_length(table.column(name).cast(pa.large_binary())), 0).to_numpy()
        for name in ("key", "value")
    ]
    times = table.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
    columns |= {
        "position": np.arange(count, dtype=np.int64),
        "size_bytes": (sizes[0] + sizes[1]).astype(np.int32),
        "base_offset": offsets,
        "last_offset": offsets,
        "magic": np.full(count, 2, np.int8),
        "records_count": np.ones(count, np.int32),
        "max_timestamp_ms": pc.fill_null(times, -1).to_numpy(),
    }
    return BatchArrays(**columns)


def _decoded(
    topic: str, where: Place, chunk: Chunk, table: pa.Table, damages: list[Row], file: str
) -> Iterator[pa.RecordBatch]:
    decode: Any = txn_state.decode if topic == TXN_TOPIC else group_offsets.decode
    found: Decoded[Any] = Decoded([], [], [], [])
    offsets = chunk.arrays.base_offset.tolist()
    keys, values = (table.column(name).to_pylist() for name in ("key", "value"))
    for index, (offset, key, value) in enumerate(zip(offsets, keys, values, strict=True)):
        try:
            found.entries.append(decode(key, value))
            found.batch_index.append(index)
            found.offset.append(offset)
        except (WireError, TypeError) as error:
            damages.append(_damage(file, index, offset, "bad_record", str(error)))
    if topic == TXN_TOPIC and found.entries:
        yield entry_batch(where, "txn_state", read_txn.decoded_rows(chunk, found))
    elif topic == OFFSETS_TOPIC:
        commits, groups = read_records.decoded_rows(chunk, found)
        if commits:
            yield entry_batch(where, "offset_commit", commits)
        if groups:
            yield detail_batch(where, "group_metadata", groups)


def _damage(file: str, row: int, offset: int, reason: str, why: str) -> Row:
    return {
        "position": row,
        "file": file,
        "size_bytes": 0,
        "reason": reason,
        "explanation": f"record at offset {offset}: {why}" if reason == "bad_record" else why,
        "after_offset": None,
        "next_offset": None,
        "is_tail": False,
    }
