"""Entries of producer snapshots and transaction indexes as rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from pipeline.spark.files import read_bounded
from pipeline.wire import producer_snapshot, txn_index
from pipeline.wire.errors import WireError
from pipeline.wire.limits import Limits
from pipeline.wire.producer_snapshot import SnapshotEntry
from pipeline.wire.txn_index import AbortedTxn

Rows = list[dict[str, Any]]


class SidecarFile(Protocol):
    """What is needed of a task to read its sidecar file."""

    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def base_offset(self) -> int: ...


def sidecar_rows(task: SidecarFile, limits: Limits) -> list[tuple[str, Rows]]:
    """(kind, rows) of a `.snapshot` or `.txnindex`; what cannot be read is an unreadable row."""
    try:
        data = read_bounded(task.path, limits)
        if task.kind == "snapshot":
            return [("sidecar", _snapshot(task, data, limits))]
        return [("sidecar", aborted_rows(task, txn_index.read(data, limits)[0]))]
    except WireError as error:
        return [("unreadable", [_unreadable(task, error.reason, str(error))])]
    except OSError as error:
        return [("unreadable", [_unreadable(task, "io", error.strerror or "cannot be read")])]


def _unreadable(task: SidecarFile, reason: str, detail: str) -> dict[str, Any]:
    return {
        "position": 0,
        "file": task.name,
        "size_bytes": 0,
        "reason": f"sidecar_{reason}",
        "explanation": detail,
        "after_offset": None,
        "next_offset": None,
        "is_tail": True,
    }


def _snapshot(task: SidecarFile, data: bytes, limits: Limits) -> Rows:
    snapshot = producer_snapshot.read(data, limits)
    if not snapshot.crc_ok:
        raise WireError("checksum of the snapshot differs from its bytes", "crc")
    return snapshot_rows(task, snapshot.entries)


def snapshot_rows(task: SidecarFile, entries: Iterable[SnapshotEntry]) -> Rows:
    """Rows of the producers of a `.snapshot`."""
    return [
        {
            "file": task.name,
            "entry_kind": "producer_snapshot",
            "end_offset": task.base_offset,
            **one._asdict(),
            "current_txn_first_offset": (
                one.current_txn_first_offset if one.current_txn_first_offset >= 0 else None
            ),
        }
        for one in entries
    ]


def aborted_rows(task: SidecarFile, entries: Iterable[AbortedTxn]) -> Rows:
    """Rows of the transactions of a `.txnindex`."""
    return [
        {
            "file": task.name,
            "entry_kind": "aborted_txn",
            "end_offset": task.base_offset,
            "producer_id": one.producer_id,
            "first_offset": one.first_offset,
            "last_offset": one.last_offset,
            "last_stable_offset": one.last_stable_offset,
        }
        for one in entries
    ]
