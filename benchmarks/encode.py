"""Turns a plan into the bytes of log segments and sidecars, many batches at a time.

One batch of each layout is built by `tests.builders`; its copies are patched through a structured
numpy type, the CRC-32C of each is computed, and the layouts are merged into log order by a mask.
"""

from __future__ import annotations

import struct

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from benchmarks import plan
from tests import builders, log_layout

HEADER = [
    ("base_offset", ">i8"), ("length", ">i4"), ("leader_epoch", ">i4"), ("magic", "u1"),
    ("crc", ">u4"), ("attributes", ">i2"), ("last_offset_delta", ">i4"),
    ("base_timestamp", ">i8"), ("max_timestamp", ">i8"), ("producer_id", ">i8"),
    ("producer_epoch", ">i2"), ("base_sequence", ">i4"), ("records_count", ">i4"),
]  # fmt: skip
KEY = b"KKKKKKKK"
MARKER_TYPE_AT = 68
INDEX_INTERVAL_BYTES = 4096
Rows = NDArray[np.void]


def rows_of(template: bytes, count: int, fields: dict[str, tuple[int, str]]) -> Rows:
    """Return `count` copies of a batch as a structured array.

    Args:
        template: the batch.
        fields: name -> (byte offset in the batch, numpy type) of what is patched beside the header.
    """
    names = [name for name, _ in HEADER]
    formats = [form for _, form in HEADER]
    offsets = list(np.cumsum([0, *[np.dtype(form).itemsize for form in formats]])[:-1])
    for name, (offset, form) in fields.items():
        names.append(name)
        formats.append(form)
        offsets.append(offset)
    kind = np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": len(template)}
    )
    raw = np.tile(np.frombuffer(template, dtype=np.uint8), count)
    return raw.view(kind)


def set_crcs(rows: Rows) -> None:
    """Compute the CRC-32C of every row."""
    raw, size = rows.tobytes(), rows.dtype.itemsize
    crc = google_crc32c.value
    rows["crc"] = np.fromiter(
        (crc(raw[at + builders.CRC_START : at + size]) for at in range(0, len(raw), size)),
        dtype=np.uint32, count=len(rows),
    )  # fmt: skip


def merge(layouts: list[Rows], which: NDArray[np.int64]) -> tuple[bytes, NDArray[np.int64]]:
    """Interleave the layouts' rows in log order.

    Args:
        layouts: the rows of each layout, in log order among themselves.
        which: for each batch of the log its layout.

    Returns:
        The log's bytes and each batch's position in it.
    """
    sizes = np.array([rows.dtype.itemsize for rows in layouts])[which]
    for number, rows in enumerate(layouts):
        rows["base_offset"] = np.flatnonzero(which == number)
        set_crcs(rows)
    out = np.empty(int(sizes.sum()), dtype=np.uint8)
    owner = np.repeat(which.astype(np.uint8), sizes)
    for number, rows in enumerate(layouts):
        out[owner == number] = rows.view(np.uint8).ravel()
    return out.tobytes(), np.cumsum(sizes) - sizes


def data_log(
    events: plan.PartitionEvents, value_bytes: int, rng: np.random.Generator
) -> tuple[bytes, NDArray[np.int64]]:
    """Return a data partition's segment and the batches' positions."""
    is_data = events.kind == plan.DATA
    value = rng.integers(97, 123, value_bytes, dtype=np.uint8).tobytes()
    template = builders.batch(
        0, [builders.Rec(KEY, value)], producer_id=0, producer_epoch=0, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    data = rows_of(template, int(is_data.sum()), {"key": (template.index(KEY), ">i8")})
    data["key"] = rng.integers(0, 1 << 62, len(data))
    data["base_sequence"] = events.sequence[is_data]
    markers = rows_of(builders.marker(), int((~is_data).sum()), {"type": (MARKER_TYPE_AT, ">i2")})
    markers["type"] = events.outcome[~is_data]
    for rows, mask in ((data, is_data), (markers, ~is_data)):
        rows["producer_id"] = events.producer_id[mask]
        rows["producer_epoch"] = events.epoch[mask]
        rows["base_timestamp"] = rows["max_timestamp"] = events.time_ms[mask]
    return merge([data, markers], events.kind)


def index_rows(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the batches that a broker puts into the indexes: one every 4 KiB or more."""
    interval = positions // INDEX_INTERVAL_BYTES
    return np.flatnonzero(interval[1:] != interval[:-1]) + 1


def indexes(positions: NDArray[np.int64], times: NDArray[np.int64]) -> tuple[bytes, bytes]:
    """Return `.index` and `.timeindex` of a one-record-per-batch log from offset 0."""
    rows = index_rows(positions)
    index = np.column_stack([rows, positions[rows]]).astype(">i4").tobytes()
    newest = np.maximum.accumulate(times)
    rows = rows[times[rows] == newest[rows]]
    rows = rows[np.concatenate([[True], np.diff(times[rows]) > 0])] if len(rows) else rows
    return index, log_layout.time_index((int(times[row]), int(row)) for row in rows)


def producer_snapshot(events: plan.PartitionEvents) -> bytes:
    """Return the `.snapshot` at the log end (as brokers from 2.5 write it)."""
    entries: dict[int, tuple[int, ...]] = {}
    last = {int(pid): row for row, pid in enumerate(events.producer_id)}
    is_data = events.kind == plan.DATA
    last_data = {int(events.producer_id[row]): int(row) for row in np.flatnonzero(is_data)}
    for pid, row in last.items():
        data, epoch = last_data.get(pid, -1), int(events.epoch[row])
        known = data >= 0 and int(events.epoch[data]) == epoch
        sequence, offset = (int(events.sequence[data]), data) if known else (-1, -1)
        coordinator_epoch, open_from = 0, -1
        if is_data[row]:
            mine = np.flatnonzero(events.producer_id == pid)
            closed = mine[~is_data[mine]].max(initial=-1)
            coordinator_epoch = 0 if closed >= 0 else -1
            open_from = int(mine[mine > closed][0])
        entries[pid] = (
            pid, epoch, sequence, offset, 0, int(events.time_ms[row]), coordinator_epoch, open_from,
        )  # fmt: skip
    return log_layout.snapshot(entries.values())


def aborted_index(events: plan.PartitionEvents) -> bytes:
    """Return the `.txnindex`: each ABORT that closed a run of data, with its last stable offset."""
    starts: dict[int, int] = {}
    entries = []
    for row, (kind, pid, outcome) in enumerate(
        zip(events.kind.tolist(), events.producer_id.tolist(), events.outcome.tolist(), strict=True)
    ):
        if kind == plan.DATA:
            starts.setdefault(pid, row)
        elif (first := starts.pop(pid, None)) is not None and outcome == builders.ABORT:
            stable = next(iter(starts.values()), row + 1)
            entries.append((pid, first, row, stable))
    return log_layout.txn_index(entries)


def coordinator_log(
    txns: plan.Transactions, owners: NDArray[np.int64], size: plan.Size
) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
    """Return a `__transaction_state` segment, the batches' positions and times."""
    mine = np.flatnonzero(np.isin(txns.owner, owners))
    first = mine[txns.number[mine] == 0]
    start, prepare = txns.start_ms[mine], txns.prepare_ms[mine]
    rows = np.concatenate([first, mine, mine, mine, mine])
    step = np.repeat([0, 1, 2, 3, 4], [len(first), *[len(mine)] * 4])
    times = np.concatenate(
        [txns.start_ms[first] - 200, start, start + 3, prepare, txns.complete_ms[mine]]
    )
    updates = np.concatenate([txns.start_ms[first] - 200, start, start + 3, prepare, prepare + 1])
    order = np.lexsort((step, times))
    rows, step, times, updates = rows[order], step[order], times[order], updates[order]
    is_new = txns.is_v2[rows] & (step > 0)
    which = np.where(is_new, step + 4, step)
    layouts = [
        _coordinator_rows(txns, rows[which == number], updates[which == number],
                          times[which == number], number, size)
        for number in range(9)
    ]  # fmt: skip
    log, positions = merge(layouts, which)
    return log, positions, times


def _coordinator_rows(
    txns: plan.Transactions,
    rows: NDArray[np.int64],
    updates: NDArray[np.int64],
    times: NDArray[np.int64],
    layout: int,
    size: plan.Size,
) -> Rows:
    step, tag = (layout, None) if layout < 5 else (layout - 4, 2)
    pid, update, start = b"PPPPPPPP", b"UUUUUUUU", b"SSSSSSSS"
    numbers = [struct.unpack(">q", text)[0] for text in (pid, update, start)]
    parts = [0x41414141, 0x42424242][: (0, 1, 2, 2, 0)[step]]
    value = builders.txn_value(
        1, producer_id=numbers[0], producer_epoch=0, last_update_ms=numbers[1],
        start_ms=numbers[2] if step else -1, client_transaction_version=tag,
        version=0 if size.style == "tv0" else 1,
        partitions=None if step == 0 else list(zip(plan.TOPICS, parts, strict=False)),
    )  # fmt: skip
    name = plan.transactional_id(0).encode()
    template = builders.txn_entry(0, name.decode(), value)
    at = template.index(value)
    fields = {
        "id": (template.index(name), f"S{len(name)}"), "pid": (at + 2, ">i8"),
        "epoch": (at + 10, ">i2"), "state": (at + 16, "u1"),
        "update": (template.index(update), ">i8"),
    }  # fmt: skip
    if step:
        fields["start"] = (template.index(start), ">i8")
    for column, part in enumerate(parts):
        fields[f"partition{column}"] = (template.index(struct.pack(">i", part)), ">i4")
    out = rows_of(template, len(rows), fields)
    out["id"] = [plan.transactional_id(owner).encode() for owner in txns.owner[rows].tolist()]
    out["pid"] = plan.FIRST_PRODUCER_ID + txns.owner[rows]
    out["epoch"] = txns.end_epoch[rows] if step >= 3 else txns.epoch[rows]
    commit = txns.is_commit[rows]
    out["state"] = {0: 0, 1: 1, 2: 1, 3: np.where(commit, 2, 3), 4: np.where(commit, 4, 5)}[step]
    out["update"], out["base_timestamp"], out["max_timestamp"] = updates, times, times
    if step:
        out["start"] = txns.start_ms[rows]
    for column in range(len(parts)):
        out[f"partition{column}"] = txns.partitions[rows, column]
    return out
