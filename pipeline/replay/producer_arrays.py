"""Runs of all producers of one replica over arrays: many batches a step, little kept between steps.

What `pipeline.spark.history.runs` says by window functions, for replicas where no sequence can have wrapped;
`pipeline.replay.producer` is the reference of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pipeline.replay.columns import Longs, Mask
from schemas.codes import MAX_SEQUENCE

LOW = np.iinfo(np.int64).min
"""Stands for null where the highest counts."""
HIGH = np.iinfo(np.int64).max
"""Stands for null where the lowest counts."""

INPUT = (
    "base_offset",
    "last_offset",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_control",
    "is_transactional",
    "records_count",
    "size_bytes",
    "timestamp_type",
    "max_timestamp_ms",
    "control_type",
    "coordinator_epoch",
    "partition_leader_epoch",
)
"""Columns of `bronze.batch` that a run is made of."""

_MIN, _MAX, _SUM = np.minimum, np.maximum, np.add
AGGREGATES: dict[str, np.ufunc] = {
    "is_transactional": _MAX,
    "has_marker": _MAX,
    "txn_first_offset": _MIN,
    "data_first_offset": _MIN,
    "last_offset": _MAX,
    "batch_count": _SUM,
    "record_count": _SUM,
    "size_bytes": _SUM,
    "min_epoch": _MIN,
    "max_epoch": _MAX,
    "max_epoch_before": _MIN,
    "first_sequence": _MIN,
    "first_append_ms": _MIN,
    "irregular_count": _SUM,
    "marker_offset": _MAX,
    "marker_type": _MAX,
    "marker_epoch": _MAX,
    "marker_coordinator_epoch": _MAX,
    "marker_leader_epoch": _MAX,
    "marker_ms": _MAX,
    "coordinator_epoch_before": _MAX,
}
"""What a run says, and how two pieces of one run are put together."""
_KEYS = ("producer_id", "run_number")


class _Known:
    """What is kept of each producer between two steps: one row a producer, sorted by its id."""

    def __init__(self) -> None:
        self.producer_id = np.empty(0, np.int64)
        self.rows: dict[str, Longs] = {
            name: np.empty(0, np.int64)
            for name in ("controls", "epoch", "coordinator_epoch", "reached", "previous")
        }

    def of(self, producer_ids: Longs, name: str, default: int) -> Longs:
        """Values of some producers."""
        if not len(self.producer_id):
            return np.full(len(producer_ids), default, np.int64)
        at = np.minimum(np.searchsorted(self.producer_id, producer_ids), len(self.producer_id) - 1)
        is_known = self.producer_id[at] == producer_ids
        return np.where(is_known, self.rows[name][at], default)

    def update(self, producer_ids: Longs, rows: dict[str, Longs]) -> None:
        """Takes over values of producers, sorted by id."""
        others = ~np.isin(self.producer_id, producer_ids)
        ids = np.concatenate((self.producer_id[others], producer_ids))
        order = np.argsort(ids, kind="stable")
        self.producer_id = ids[order]
        self.rows = {
            name: np.concatenate((self.rows[name][others], values))[order]
            for name, values in rows.items()
        }


class ProducerRuns:
    """The producers of one replica, step by step.

    Args:
        history_start_offset: Below it history was cut: it makes no irregular step.
        is_offsets: The partition belongs to `__consumer_offsets`, whose batches carry no sequence.
    """

    def __init__(self, history_start_offset: int, is_offsets: bool) -> None:
        self.history_start_offset = history_start_offset
        self.is_offsets = is_offsets
        self.known = _Known()
        self.pieces: list[dict[str, Longs]] = []

    def add(self, batches: dict[str, Longs]) -> None:
        """Takes the next batches of producers.

        Args:
            batches: `INPUT` by name, in offset order and behind all that were added before; null is `LOW`.
        """
        if not len(batches["producer_id"]):
            return
        order = np.argsort(batches["producer_id"], kind="stable")
        step = _Step({name: values[order] for name, values in batches.items()}, self.known)
        irregular = step.irregular(self.history_start_offset, self.is_offsets)
        facts = step.facts(irregular)
        ids, numbers = facts["producer_id"], facts["run_number"]
        self.pieces.append(_reduced(ids, numbers, facts.__getitem__))
        self.known.update(step.ids, step.kept())

    def runs(self) -> dict[str, Longs]:
        """All runs, by producer and number: `AGGREGATES` and their keys; null is `LOW` or `HIGH`. Asked once."""
        if not self.pieces:
            return {name: np.empty(0, np.int64) for name in (*_KEYS, *AGGREGATES)}
        # A column at a time, whose pieces are gone then: a busy partition has millions of runs.
        ids, numbers = (self._column(name) for name in _KEYS)
        order = np.lexsort((numbers, ids))
        return _reduced(ids[order], numbers[order], lambda name: self._column(name)[order])

    def _column(self, name: str) -> Longs:
        return np.concatenate([one.pop(name) for one in self.pieces])


class _Step:
    """Some batches, sorted by producer and offset, each with what came before it."""

    def __init__(self, batches: dict[str, Longs], known: _Known) -> None:
        self.batches = batches
        producer = batches["producer_id"]
        self.ids, self.starts, self.group = np.unique(
            producer, return_index=True, return_inverse=True
        )
        self.ends = np.append(self.starts[1:], len(producer)) - 1
        self.is_control: Mask = batches["is_control"] > 0
        self.is_data = ~self.is_control
        self.first_sequence = np.where(self.is_data, batches["base_sequence"], LOW)
        length = batches["last_offset"] - batches["base_offset"]
        is_known = batches["last_offset"] != LOW
        is_numbered = self.is_data & is_known & (batches["base_sequence"] >= 0)
        last = (batches["base_sequence"] + length) % (MAX_SEQUENCE + 1)
        self.last_sequence = np.where(is_numbered, last, LOW)
        controls = np.cumsum(self.is_control)
        before_group: Longs = (controls - self.is_control)[self.starts]
        self.controls = (
            controls
            - self.is_control
            - before_group[self.group]
            + known.of(self.ids, "controls", 0)[self.group]
        )
        self.epoch = self._highest(batches["producer_epoch"], known, "epoch")
        coordinator = np.where(self.is_control, batches["coordinator_epoch"], LOW)
        self.coordinator_epoch = self._highest(coordinator, known, "coordinator_epoch")
        self.reached = self._highest(self._key(), known, "reached")
        self.previous = self._previous(known)

    def _key(self) -> Longs:
        """Epoch and last sequence of data as one number that grows with both; a null sequence is the lowest."""
        sequence = np.where(self.last_sequence == LOW, 0, self.last_sequence + 1)
        key = (self.batches["producer_epoch"] << 32) + sequence
        return np.where(self.is_data, key, LOW)

    def _highest(self, values: Longs, known: _Known, name: str) -> tuple[Longs, Longs]:
        """Highest value of the producer before each batch, and including it; `LOW` when there is none."""
        carried = known.of(self.ids, name, LOW)
        different, rank = np.unique(np.concatenate((values, carried)), return_inverse=True)
        mine, before = rank[: len(values)], rank[len(values) :]
        floor = self.group * np.int64(len(different))
        seeded = mine.copy()
        seeded[self.starts] = np.maximum(seeded[self.starts], before)
        up_to = np.maximum.accumulate(seeded + floor) - floor
        earlier = np.empty_like(up_to)
        earlier[1:] = up_to[:-1]
        earlier[self.starts] = before
        return different[earlier], different[up_to]

    def _previous(self, known: _Known) -> tuple[Longs, Longs]:
        """Last offset of the data batch before each batch, and of the newest up to it."""
        count = len(self.group)
        at = np.maximum.accumulate(np.where(self.is_data, np.arange(count), -1))
        carried = known.of(self.ids, "previous", LOW)[self.group]
        is_mine = at >= self.starts[self.group]
        up_to = np.where(is_mine, self.batches["last_offset"][np.maximum(at, 0)], carried)
        earlier = np.empty_like(up_to)
        earlier[1:] = up_to[:-1]
        earlier[self.starts] = carried[self.starts]
        return earlier, up_to

    def irregular(self, history_start_offset: int, is_offsets: bool) -> Mask:
        """Batches that are not the plain next step (`pipeline.spark.history.event_kind`)."""
        epoch, first = self.batches["producer_epoch"], self.first_sequence
        reached = self.reached[0]
        has_reached = reached != LOW
        reached_epoch, reached_sequence = reached >> 32, (reached & 0xFFFFFFFF) - 1
        is_known = self.batches["base_offset"] >= history_start_offset
        below = self.is_data & (epoch < self.epoch[0])
        sequenced = self.is_data & (first >= 0) & (not is_offsets)
        is_whole = self.previous[0] >= history_start_offset
        same = has_reached & (epoch == reached_epoch) & (reached_sequence >= 0)
        back = same & (first <= reached_sequence)
        gap = same & (first > reached_sequence + 1) & is_whole
        bump = has_reached & (epoch > reached_epoch) & (first > 0) & is_whole
        begin = ~has_reached & (first > 0)
        result: Mask = is_known & (below | (sequenced & (begin | back | gap | bump)))
        return result

    def facts(self, irregular: Mask) -> dict[str, Longs]:
        """Each batch as a run of its own."""
        one = self.batches
        has_records = self.is_data & (one["records_count"] > 0)
        is_txn = has_records & (one["is_transactional"] > 0)
        is_append = has_records & (one["timestamp_type"] == 1) & (one["max_timestamp_ms"] != LOW)
        records = np.maximum(one["records_count"], 0)

        def lowest(condition: Mask, values: Longs) -> Longs:
            return np.where(condition & (values != LOW), values, HIGH)

        def highest(condition: Mask, values: Longs) -> Longs:
            return np.where(condition, values, LOW)

        return {
            "producer_id": one["producer_id"],
            "run_number": self.controls,
            "is_transactional": is_txn.astype(np.int64),
            "has_marker": self.is_control.astype(np.int64),
            "txn_first_offset": lowest(is_txn, one["base_offset"]),
            "data_first_offset": lowest(has_records, one["base_offset"]),
            "last_offset": highest(has_records, one["last_offset"]),
            "batch_count": has_records.astype(np.int64),
            "record_count": np.where(self.is_data, records, 0),
            "size_bytes": np.where(has_records, np.maximum(one["size_bytes"], 0), 0),
            "min_epoch": lowest(has_records, one["producer_epoch"]),
            "max_epoch": highest(has_records, one["producer_epoch"]),
            "max_epoch_before": np.maximum(self.epoch[0], -1),
            "first_sequence": lowest(self.is_data, self.first_sequence),
            "first_append_ms": lowest(is_append, one["max_timestamp_ms"]),
            "irregular_count": irregular.astype(np.int64),
            "marker_offset": highest(self.is_control, one["base_offset"]),
            "marker_type": highest(self.is_control, one["control_type"]),
            "marker_epoch": highest(self.is_control, one["producer_epoch"]),
            "marker_coordinator_epoch": highest(self.is_control, one["coordinator_epoch"]),
            "marker_leader_epoch": highest(self.is_control, one["partition_leader_epoch"]),
            "marker_ms": highest(self.is_control, one["max_timestamp_ms"]),
            "coordinator_epoch_before": highest(self.is_control, self.coordinator_epoch[0]),
        }

    def kept(self) -> dict[str, Longs]:
        """What the next step has to know of each of these producers."""
        return {
            "controls": (self.controls + self.is_control)[self.ends],
            "epoch": self.epoch[1][self.ends],
            "coordinator_epoch": self.coordinator_epoch[1][self.ends],
            "reached": self.reached[1][self.ends],
            "previous": self.previous[1][self.ends],
        }


def _reduced(ids: Longs, numbers: Longs, column: Callable[[str], Longs]) -> dict[str, Longs]:
    """One row a producer and run, from rows sorted by both."""
    changes = np.empty(len(ids), np.bool_)
    changes[0] = True
    changes[1:] = (ids[1:] != ids[:-1]) | (numbers[1:] != numbers[:-1])
    starts = np.flatnonzero(changes)
    result: dict[str, Any] = {"producer_id": ids[starts], "run_number": numbers[starts]}
    result |= {name: how.reduceat(column(name), starts) for name, how in AGGREGATES.items()}
    return result
