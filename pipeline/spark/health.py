"""How transactions were used: figures of the coordinators' history, on the driver and without a Spark job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.config import Config
from pipeline.replay import fencing, ids, slow
from pipeline.replay.alive import Alive
from pipeline.replay.columns import Collector, Columns
from pipeline.replay.ids import Extent
from pipeline.replay.statement import DDL, Statement
from pipeline.spark import stated, stored, tables
from pipeline.spark.replica_facts import ReplicaFacts
from pipeline.spark.run import Run
from pipeline.spark.tables import Held
from schemas import silver
from schemas.table import Table

Row = dict[str, Any]
Said = list[tuple[str, Statement]]
STEPS = tuple(dict.fromkeys((*fencing.NUMBERS, *ids.STEP_NUMBERS)))
STEP_TEXTS = fencing.TEXTS
_OWNER = ("copy", "transactional_id", "producer_id", "append_ms", "is_current")
_RUN = (
    "copy",
    "topic",
    "partition",
    "producer_id",
    "transactional_id",
    "first_offset",
    "last_offset",
)


def health(run: Run) -> Held:
    """Input of `slow_transaction`, `fencing_storm` and `id_hygiene`: statements with the detector of each."""
    said = statements(
        columns(run, silver.TRANSACTION, slow.NUMBERS, slow.TEXTS),
        steps(run),
        lived(run.facts, run.newest),
        run.config,
    )
    owners = stored.rows(silver.OWNER, run.output, run.run_id, _OWNER).to_pylist()
    orders = successors(owners)
    if orders:
        only = {"producer_id": {producer for _, producer in orders}}
        runs = stored.rows(silver.PARTITION_TXN, run.output, run.run_id, _RUN, only).to_pylist()
        said += interleaved(orders, runs, run.config)
    rows = [(*one, code) for code, one in said]
    return Held(tables.local(run.spark, rows, f"{DDL}, code string"), not rows)


def statements(
    transactions: Columns,
    steps: Columns,
    lived: Mapping[tuple[int, int, int], Alive],
    config: Config,
) -> Said:
    """Everything that transactions and steps say.

    Args:
        transactions: Columns of `silver.transaction`.
        steps: Columns of `silver.coordinator_step` that burn an epoch, expire or begin an id, or repeat an append.
        lived: (copy, coordinator partition, leader epoch) -> how long that coordinator lived.
        config: Thresholds.
    """
    limits = config.health
    pattern = limits.application_pattern
    late = slow.Limits(
        limits.commit_latency_ms, limits.long_running_ms, limits.near_timeout_share, pattern
    )
    storm = fencing.Limits(
        limits.storm_fences, limits.storm_window_ms, limits.reuse_fences, limits.reuse_window_ms,
        limits.forecast_days, pattern,
    )  # fmt: skip
    use = ids.Limits(limits.unbounded_ids, config.transaction_max_timeout_ms, pattern)
    fences = steps.where(steps.is_in("cause", *fencing.CAUSES))
    begun = steps.where(steps.is_in("cause", ids.EXPIRY, ids.INIT))
    repeated = steps.where(steps.is_in("cause", slow.REPEATED))
    return [
        *(
            ("slow_transaction", one)
            for one in slow.statements(transactions, repeated, lived, late)
        ),
        *(("fencing_storm", one) for one in fencing.statements(fences, storm)),
        *(("id_hygiene", one) for one in ids.statements(transactions, begun, use)),
    ]


def lived(
    facts: Iterable[ReplicaFacts], newest: Mapping[int, Mapping[int, Alive]]
) -> dict[tuple[int, int, int], Alive]:
    """(copy, coordinator partition, leader epoch) -> how long that coordinator lived."""
    places = {one.replica_id: (one.copy, one.partition) for one in facts}
    return {
        (*places[replica_id], epoch): alive
        for replica_id, epochs in newest.items()
        if replica_id in places
        for epoch, alive in epochs.items()
    }


def successors(owners: Iterable[Row]) -> dict[tuple[int, int], tuple[str, int]]:
    """(copy, producer id) -> transactional id and order, of ids that held several producer ids one after the other."""
    held: dict[tuple[int, str], list[Row]] = {}
    for one in owners:
        held.setdefault((one["copy"], one["transactional_id"]), []).append(one)
    found: dict[tuple[int, int], tuple[str, int]] = {}
    for (copy, name), mine in held.items():
        if len(mine) > 1:
            mine.sort(key=lambda one: (one["is_current"], one["append_ms"] or 0))
            found |= {(copy, one["producer_id"]): (name, at) for at, one in enumerate(mine)}
    return found


def interleaved(
    orders: Mapping[tuple[int, int], tuple[str, int]], runs: Iterable[Row], config: Config
) -> Said:
    """Producer ids of one transactional id that wrote in turn.

    Args:
        orders: From `successors`.
        runs: Runs of these producer ids.
        config: Thresholds.
    """
    extents: dict[tuple[int, int, str, int], Extent] = {}
    for run in runs:
        owner = orders.get((run["copy"], run["producer_id"]))
        if owner is None or run["transactional_id"] != owner[0] or run["first_offset"] is None:
            continue
        key = (run["copy"], run["producer_id"], run["topic"], run["partition"])
        known = extents.get(key)
        first = (
            run["first_offset"] if known is None else min(known.first_offset, run["first_offset"])
        )
        last = run["last_offset"] if known is None else max(known.last_offset, run["last_offset"])
        extents[key] = Extent(key[0], owner[0], key[1], owner[1], key[2], key[3], first, last)
    use = ids.Limits(
        config.health.unbounded_ids, config.transaction_max_timeout_ms,
        config.health.application_pattern,
    )  # fmt: skip
    return [("id_hygiene", one) for one in ids.interleaved(extents.values(), use)]


def steps(run: Run) -> Columns:
    """Steps that burn an epoch, expire an id or begin one, or repeat an append."""
    only = {"cause": [*fencing.CAUSES, ids.EXPIRY, ids.INIT, slow.REPEATED]}
    return columns(run, silver.COORDINATOR_STEP, STEPS, STEP_TEXTS, only)


def columns(
    run: Run,
    table: Table,
    numbers: Sequence[str],
    texts: Sequence[str],
    only: Mapping[str, Collection[Any]] | None = None,
) -> Columns:
    """Columns of a table of the run.

    Args:
        run: The run.
        table: A logical table.
        numbers: Columns of numbers.
        texts: Columns of texts.
        only: Column -> values wanted.
    """
    collector = Collector(numbers, texts)
    for piece in stored.pieces(table, run.output, run.run_id, [*numbers, *texts], only):
        collector.add_pieces(*_piece(piece, numbers, texts))
    return collector.columns()


def _piece(
    piece: pa.Table, numbers: Sequence[str], texts: Sequence[str]
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, tuple[np.ndarray[Any, Any], list[str]]]]:
    """Numbers as arrays; texts as places in the piece's own dictionary."""
    coded = {}
    for name in texts:
        column = piece[name].combine_chunks().dictionary_encode()
        codes = column.indices.fill_null(stated.NONE).to_numpy(zero_copy_only=False)
        coded[name] = (codes.astype(np.int64), column.dictionary.to_pylist())
    return stated.longs(piece.select(list(numbers))), coded
