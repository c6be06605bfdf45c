"""`gold.metric`: figures over time, made on the driver and written beside the detectors."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pipeline.replay import slow
from pipeline.replay.metrics import metrics
from pipeline.spark import tables
from pipeline.spark.health import columns
from pipeline.spark.run import Run
from schemas import gold, silver

PROMISE_NUMBERS = ("copy", "prepare_ms", "marker_ms")
PROMISE_TEXTS = ("transactional_id",)


def write(run: Run) -> None:
    """Replaces the run's rows of `gold.metric`."""
    rows = metrics(
        columns(run, silver.TRANSACTION, slow.NUMBERS, slow.TEXTS),
        columns(run, silver.TRANSACTION_PARTITION, PROMISE_NUMBERS, PROMISE_TEXTS),
        run.config.health.application_pattern,
    )
    stored = [(run.run_id, *one) for one in rows]
    tables.replace_rows(run.spark, stored, gold.METRIC, run.output, run.run_id, also=run.expired)


@contextmanager
def written_beside(run: Run) -> Iterator[None]:
    """Writes while the body works; an error of the writing is raised when the body is done."""
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write, run)
        yield
        written.result()
