"""The cluster in pictures: outcomes, latency, what is open, epochs, LSO lag, ids, producers and partitions."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from pipeline.config_sections import Report
from pipeline.report import charts, lag
from pipeline.report.charts import Alert
from pipeline.report.facts import NO_TIME, Columns, Facts, Row, thinned
from pipeline.report.picture import LINES, Picture
from pipeline.report.words import duration
from pipeline.text import counted, plural
from schemas.codes import TXN_TOPIC

BUCKETS_MS = (
    1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000, 2_592_000_000,
)  # fmt: skip
MAX_BUCKETS = 60
MAP = 24
MAX_EPOCH = 32_767
"""Highest producer epoch (short); the coordinator then gives out a new producer id."""
FORECAST_EPOCHS = 10
"""So many epochs make a rate; a single fence does not."""
DAY_MS = 86_400_000
_OUTCOMES = {
    "client_commit": "commit",
    "client_abort": "client abort",
    "timeout": "timeout",
    "fence": "fence",
    "unknown_abort": "abort, cause unknown",
}


def pictures(facts: Facts, limits: Report, as_of_ms: int | None = None) -> list[Picture]:
    """All pictures of a run, those without data included.

    Args:
        facts: The run's tables.
        limits: What operators alert on.
        as_of_ms: The newest time in the logs, where what is still open is drawn to.
    """
    txn = facts.transactions
    runs = facts.runs
    return [
        lag.picture(runs, facts.replicas, as_of_ms),
        _outcomes(txn, limits),
        _latency(txn, limits),
        _ongoing(txn, limits),
        _backlog(facts.replicas, limits),
        _epochs(txn, facts.owners()),
        _top_ids(txn),
        _map(runs),
    ]


def bucket_of(first_ms: float, last_ms: float) -> int:
    """Width of a bar: an hour, or what keeps a short or long history readable."""
    span = last_ms - first_ms
    longest = BUCKETS_MS[-1] * math.ceil(span / MAX_BUCKETS / BUCKETS_MS[-1])
    return next((one for one in BUCKETS_MS if span / one <= MAX_BUCKETS), longest)


def _outcomes(txn: Columns, limits: Report) -> Picture:
    title = "Transaction outcomes"
    ended = np.where(txn["prepare_ms"] >= 0, txn["prepare_ms"], txn["complete_ms"])
    known = (ended >= 0) & txn.is_any("cause", *_OUTCOMES)
    if not known.any():
        return Picture(title, None, "No transaction that ended was read.")
    times = ended[known]
    bucket = bucket_of(float(times.min()), float(times.max()))
    numbers = times // bucket - times.min() // bucket
    starts = [float((times.min() // bucket + n) * bucket) for n in range(int(numbers.max()) + 1)]
    by_cause = {
        words: numbers[txn.is_any("cause", cause)[known]] for cause, words in _OUTCOMES.items()
    }
    series = {
        words: np.bincount(held, minlength=len(starts)).tolist()
        for words, held in by_cause.items()
        if len(held)
    }
    alert = Alert(
        limits.timed_out_per_s * bucket / 1000, f"alert: {limits.timed_out_per_s:g}/s timed out"
    )
    unit = f"transactions per {duration(bucket)}"
    svg = charts.stacked(title, unit, bucket, starts, series, alert)
    totals = ", ".join(f"{int(sum(held)):,} {name}" for name, held in series.items())
    timed_out = max(series.get("timeout", [0])) / (bucket / 1000)
    words = f"{totals}. Most timeouts: {timed_out:.3g}/s (alert at {limits.timed_out_per_s:g}/s)."
    return Picture(title, svg, words)


def _latency(txn: Columns, limits: Report) -> Picture:
    title = "Commit latency (Prepare* to Complete*)"
    known = (txn["prepare_ms"] >= 0) & (txn["complete_ms"] >= txn["prepare_ms"])
    if not known.any():
        return Picture(title, None, "No completed transaction was read.")
    times = txn["prepare_ms"][known]
    latency = txn["complete_ms"][known] - times
    bucket = bucket_of(float(times.min()), float(times.max()))
    numbers = times // bucket
    series: dict[str, list[tuple[float, float]]] = {"p50": [], "p95": [], "p99": []}
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    for part in np.split(order, cuts):
        middle = float(numbers[part[0]] * bucket + bucket / 2)
        for name, share in (("p50", 50), ("p95", 95), ("p99", 99)):
            series[name].append((middle, float(np.percentile(latency[part], share))))
    alert = Alert(limits.commit_latency_ms, f"alert: {duration(limits.commit_latency_ms)}")
    overall = [float(np.percentile(latency, share)) for share in (50, 95, 99, 100)]
    slow = int((latency > limits.commit_latency_ms).sum())
    words = (
        f"{counted(len(latency), 'transaction')}: p50 {duration(overall[0])}, p95 {duration(overall[1])}, "
        f"p99 {duration(overall[2])}, longest {duration(overall[3])}; {slow:,} above "
        f"{duration(limits.commit_latency_ms)}. Until Complete* the id cannot begin another transaction."
    )
    return Picture(title, charts.lines(title, "ms", series, alert), words)


def _ongoing(txn: Columns, limits: Report) -> Picture:
    title = "Transactions open at once"
    begin = np.where(txn["ongoing_ms"] >= 0, txn["ongoing_ms"], txn["start_ms"])
    known = begin >= 0
    if not known.any():
        return Picture(title, None, "No transaction with a start was read.")
    end = np.where(txn["prepare_ms"] >= 0, txn["prepare_ms"], NO_TIME)[known]
    starts = begin[known]
    ended = end >= 0
    times = np.concatenate([starts, end[ended]])
    steps = np.concatenate([np.ones(len(starts)), -np.ones(int(ended.sum()))])
    order = np.lexsort((-steps, times))
    level = np.cumsum(steps[order])
    points = thinned(times[order], level)
    alert = Alert(limits.ongoing, f"alert: {limits.ongoing:,}")
    svg = charts.lines(title, "transactions", {"open": points}, alert, is_level=True)
    words = f"Most at once: {int(level.max()):,} (alert at {limits.ongoing:,}); {int((~ended).sum()):,} not ended."
    return Picture(title, svg, words)


def _backlog(replicas: list[Row], limits: Report) -> Picture:
    title = "Coordinator backlog"
    rows = []
    for one in replicas:
        if one["topic"] == TXN_TOPIC and one["high_watermark"] is not None:
            behind = max(one["log_end_offset"] - one["high_watermark"], 0)
            broker = "" if one["broker_id"] is None else f" (broker {one['broker_id']})"
            rows.append(
                (
                    f"{TXN_TOPIC}-{one['partition']}{broker}",
                    float(behind),
                    counted(behind, "record"),
                )
            )
    rows.sort(key=lambda row: (-row[1], row[0]))
    behind_ones = [row for row in rows if row[1] > 0][:LINES] or rows[:1]
    alert = Alert(limits.coordinator_backlog, f"alert: {limits.coordinator_backlog:,} records")
    svg = charts.ranking(title, behind_ones, alert)
    if not rows:
        return Picture(
            title, None, "No partition of __transaction_state with a checkpoint was read."
        )
    words = (
        f"Records of {TXN_TOPIC} above the checkpointed high watermark: highest {rows[0][2]} "
        f"(alert at {limits.coordinator_backlog:,}). A checkpoint is written every few seconds, so some are normal "
        "in a copy of a running broker."
    )
    return Picture(title, svg, words)


def _epochs(txn: Columns, owners: list[Row]) -> Picture:
    title = "Producer epochs used up"
    current = [one for one in owners if one["is_current"] and one["producer_epoch"] is not None]
    if not current:
        return Picture(title, None, "No transactional id was read.")
    highest = sorted(current, key=lambda one: (-one["producer_epoch"], one["transactional_id"]))
    rates = _epochs_per_day(txn)
    rows, soonest = [], None
    for one in highest[:LINES]:
        rate = rates.get(one["transactional_id"], 0.0)
        left = (MAX_EPOCH - one["producer_epoch"]) / rate if rate > 0 else None
        if left is not None and (soonest is None or left < soonest[0]):
            soonest = (left, one["transactional_id"])
        forecast = "" if left is None else f", {duration(left * DAY_MS)} left"
        words = f"{one['producer_epoch']:,}{forecast}"
        rows.append((one["transactional_id"], float(one["producer_epoch"]), words))
    said = f"Of {MAX_EPOCH:,} epochs of a producer id; then the coordinator gives out a new id. "
    said += (
        f"No id used {FORECAST_EPOCHS} epochs while it was observed, so there is no forecast."
        if soonest is None
        else f"At the rate observed {soonest[1]} is the first to need one, in {duration(soonest[0] * DAY_MS)}."
    )
    return Picture(title, charts.ranking(title, rows), said)


def _epochs_per_day(txn: Columns) -> dict[str, float]:
    """Transactional id -> epochs of its newest producer id per day, over the transactions read, if not too few."""
    known = np.flatnonzero(txn["start_ms"] >= 0)
    order = known[np.lexsort((txn["start_ms"][known], txn["transactional_id"][known]))]
    ids, times = txn["transactional_id"][order], txn["start_ms"][order]
    producers, epochs = txn["producer_id"][order], txn["producer_epoch"][order]
    found: dict[str, float] = {}
    last = np.flatnonzero(np.append(np.diff(ids) != 0, True)) if len(ids) else ids
    # The first row of the newest producer id of each transactional id begins a stretch.
    begins = np.append(True, (np.diff(ids) != 0) | (np.diff(producers) != 0))
    stretch = np.maximum.accumulate(np.where(begins[: len(ids)], np.arange(len(ids)), 0))
    for row in last.tolist():
        first = int(stretch[row])
        span, used = int(times[row] - times[first]), int(epochs[row] - epochs[first])
        if span > 0 and used >= FORECAST_EPOCHS:
            found[txn.words["transactional_id"][ids[row]]] = used * DAY_MS / span
    return found


def _top_ids(txn: Columns) -> Picture:
    title = "Busiest transactional ids"
    by_id = txn.counts("transactional_id")
    rows = [
        (name, float(count), f"{count:,}")
        for name, count in sorted(by_id.items(), key=lambda item: (-item[1], item[0]))[:12]
    ]
    total = sum(by_id.values())
    words = f"{counted(len(by_id), 'id')}, {counted(total, 'transaction')} in the history that is retained."
    return Picture(
        title, charts.ranking(title, rows), words if rows else "No transaction was read."
    )


def _map(runs: Columns) -> Picture:
    title = "Who writes where"
    amounts: Counter[tuple[str, str]] = Counter()
    wrote = np.flatnonzero(runs["record_count"] > 0)
    who = np.stack([runs[name][wrote] for name in ("topic", "partition", "transactional_id")])
    # A producer without a transactional id is told apart by its producer id.
    own = np.where(who[2] < 0, runs["producer_id"][wrote], -1)
    keys, at = np.unique(np.vstack([who, own]), axis=1, return_inverse=True)
    sums = np.bincount(at.ravel(), runs["record_count"][wrote], keys.shape[1])
    for (topic, number, name, producer), count in zip(keys.T.tolist(), sums.tolist(), strict=True):
        shown = f"producer {producer}" if name < 0 else runs.words["transactional_id"][name]
        amounts[shown, f"{runs.words['topic'][topic]}-{number}"] += int(count)
    producers, places = Counter[str](), Counter[str]()
    for (name, place), count in amounts.items():
        producers[name] += count
        places[place] += count
    rows = [name for name, _ in producers.most_common(MAP)]
    columns = sorted(name for name, _ in places.most_common(MAP))
    values = {
        (rows.index(name), columns.index(place)): float(count)
        for (name, place), count in amounts.items()
        if name in rows and place in columns
    }
    words = (
        f"{counted(len(producers), 'producer')} wrote to {counted(len(places), 'partition')}; "
        f"the {plural(len(rows), 'one with most records is', f'{len(rows)} with most records are')} shown."
    )
    return Picture(
        title, charts.dots(title, rows, columns, values), words if rows else "No producer was read."
    )
