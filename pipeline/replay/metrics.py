"""Figures of transactions over time, by application: what operators draw and compare.

Names, units and buckets: `METRICS`. Hours and days are UTC. Latencies are of one coordinator under one leader epoch;
marker latencies compare two brokers' clocks and can be off by their difference.

Source: `TransactionMetadata`, `TransactionMarkerChannelManager`; KIP-98, KIP-890.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.replay.application import application
from pipeline.replay.columns import NONE, Columns, Longs, Mask, groups

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
QUANTILES = (50, 95, 99)
MAX_APPLICATIONS = 200
"""Applications with figures of their own, the busiest; the rest is `OTHER`."""
OTHER = "(other)"
METRICS = {
    "transactions_begun": "transactions whose first Ongoing was written, an hour",
    "transactions_ongoing": "most transactions open at once within the hour",
    "transactions_committed": "transactions decided to commit, an hour",
    "transactions_aborted": "transactions decided to abort, an hour, timeouts and fences included",
    "transactions_timed_out": "transactions that the coordinator aborted after their timeout, an hour",
    "transactions_fenced": "transactions that another instance's InitProducerId aborted, an hour",
    "commit_latency": "Prepare* to Complete* of the hour, quantiles 50, 95 and 99",
    "marker_latency": "Prepare* to the marker in each partition, quantiles; across two clocks",
    "epochs_burnt": "producer epochs used up by transactions, a day",
}
"""Name -> meaning."""


class Metric(NamedTuple):
    """A row of `gold.metric` without its run."""

    copy: int
    name: str
    application: str
    quantile: int | None
    bucket_start_ms: int
    bucket_ms: int
    value: float
    unit: str


class _Owners(NamedTuple):
    """Place of each application in `names`, by transactional id."""

    of_id: Longs
    names: list[str]


def metrics(transactions: Columns, promises: Columns, pattern: str | None) -> list[Metric]:
    """All figures, in the order of `METRICS`.

    Args:
        transactions: Columns of `silver.transaction` (`pipeline.replay.slow.NUMBERS` and `TEXTS`).
        promises: `copy`, `prepare_ms`, `marker_ms` and `transactional_id` of `silver.transaction_partition`.
        pattern: How to recognise an application (`pipeline.replay.application`).
    """
    one = transactions
    owners = _owners(one, pattern)
    app = owners.of_id[one["transactional_id"]] if one.rows else one["copy"]
    decided = one["prepare_ms"]
    is_decided = decided != NONE
    found = _counts(one, app, "transactions_begun", one["ongoing_ms"], one["ongoing_ms"] != NONE)
    found += _ongoing(one, app)
    for name, mask in (
        ("transactions_committed", one["outcome"] == 1),
        ("transactions_aborted", one["outcome"] == 0),
        ("transactions_timed_out", one.is_in("cause", "timeout")),
        ("transactions_fenced", one.is_in("cause", "fence")),
    ):
        found += _counts(one, app, name, decided, mask & is_decided)
    is_timed = is_decided & (one["complete_ms"] != NONE)
    is_timed &= one["complete_leader_epoch"] == one["prepare_leader_epoch"]
    took = one["complete_ms"] - decided
    found += _quantiles("commit_latency", one["copy"], app, decided, took, is_timed)
    found += _marker_latency(promises, owners, one.names["transactional_id"])
    burnt = one["prepare_epoch"] - one["producer_epoch"]
    is_burnt = is_decided & (burnt > 0)
    found += _sums("epochs_burnt", one["copy"], app, decided, burnt, is_burnt)
    return [row._replace(application=owners.names[int(row.application)]) for row in found]


def _owners(one: Columns, pattern: str | None) -> _Owners:
    """Applications of all ids; beyond `MAX_APPLICATIONS` those with the fewest transactions count as one."""
    known = [application(name, pattern).name for name in one.names["transactional_id"]]
    ids = np.bincount(one["transactional_id"], minlength=len(known)) if one.rows else np.empty(0)
    weight: dict[str, int] = {}
    for name, count in zip(known, ids, strict=True):
        weight[name] = weight.get(name, 0) + int(count)
    kept = sorted(weight, key=lambda name: (-weight[name], name))[:MAX_APPLICATIONS]
    names = [*kept, OTHER]
    places = {name: at for at, name in enumerate(kept)}
    of_id = np.array([places.get(name, len(kept)) for name in known], np.int64)
    return _Owners(of_id, names)


def _row(name: str, copy: int, app: int, start: int, size: int, value: float, unit: str) -> Metric:
    return Metric(copy, name, str(app), None, start, size, float(value), unit)


def _counts(one: Columns, app: Longs, name: str, at: Longs, mask: Mask) -> list[Metric]:
    copies, apps, hours = one["copy"][mask], app[mask], at[mask] // HOUR_MS * HOUR_MS
    return [
        _row(name, int(copies[rows[0]]), int(apps[rows[0]]), int(hours[rows[0]]), HOUR_MS, len(rows), "transactions")
        for rows in groups(copies, apps, hours)
    ]  # fmt: skip


def _sums(name: str, copy: Longs, app: Longs, at: Longs, value: Longs, mask: Mask) -> list[Metric]:
    copies, apps, days = copy[mask], app[mask], at[mask] // DAY_MS * DAY_MS
    values = value[mask]
    return [
        _row(name, int(copies[rows[0]]), int(apps[rows[0]]), int(days[rows[0]]), DAY_MS, values[rows].sum(), "epochs")
        for rows in groups(copies, apps, days)
    ]  # fmt: skip


def _quantiles(
    name: str, copy: Longs, app: Longs, at: Longs, value: Longs, mask: Mask
) -> list[Metric]:
    copies, apps, hours = copy[mask], app[mask], at[mask] // HOUR_MS * HOUR_MS
    values = value[mask]
    found = []
    for rows in groups(copies, apps, hours):
        where = (int(copies[rows[0]]), int(apps[rows[0]]), int(hours[rows[0]]))
        for quantile, held in zip(QUANTILES, np.percentile(values[rows], QUANTILES), strict=True):
            row = _row(name, where[0], where[1], where[2], HOUR_MS, float(held), "ms")
            found.append(row._replace(quantile=quantile))
    return found


def _ongoing(one: Columns, app: Longs) -> list[Metric]:
    """Most transactions open at once: +1 where one begins, -1 where it is complete; those without an end stay."""
    begun = one["ongoing_ms"] != NONE
    found = []
    for rows in groups(one["copy"], app):
        rows = rows[begun[rows]]
        if not len(rows):
            continue
        ends = one["complete_ms"][rows]
        ends = ends[ends != NONE]
        at = np.concatenate((one["ongoing_ms"][rows], ends))
        change = np.concatenate((np.ones(len(rows), np.int64), np.full(len(ends), -1, np.int64)))
        order = np.lexsort((change, at))
        at, count = at[order], np.cumsum(change[order])
        hours = at // HOUR_MS * HOUR_MS
        first = np.flatnonzero(np.concatenate(([True], hours[1:] != hours[:-1])))
        most = np.maximum.reduceat(count, first)
        carried = np.concatenate(([0], count[first[1:] - 1]))
        where = (int(one["copy"][rows[0]]), int(app[rows[0]]))
        found += [
            _row("transactions_ongoing", *where, int(hours[place]), HOUR_MS, int(max(peak, before)), "transactions")
            for place, peak, before in zip(first, most, carried, strict=True)
        ]  # fmt: skip
    return found


def _marker_latency(promises: Columns, owners: _Owners, ids: Sequence[str]) -> list[Metric]:
    """Promises of ids without a transaction of their own are none."""
    places = {name: at for at, name in enumerate(ids)}
    known = np.array([places[name] for name in promises.names["transactional_id"]], np.int64)
    if not promises.rows:
        return []
    app = owners.of_id[known[promises["transactional_id"]]]
    mask = (promises["prepare_ms"] != NONE) & (promises["marker_ms"] != NONE)
    took = promises["marker_ms"] - promises["prepare_ms"]
    return _quantiles("marker_latency", promises["copy"], app, promises["prepare_ms"], took, mask)
