"""The suites as data: what is expected of each layer, in Great Expectations' own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import great_expectations.expectations as gxe
import pandas as pd

from pipeline.config_sections import Gate
from pipeline.gate import frames
from pipeline.gate.frames import Judged
from pipeline.gate.profile import Profile
from pipeline.gate.result import Outcome
from schemas import bronze, silver

_FINE = ("passes", "open", "new", "resolved", "not_seen", "suppressed")


class Expected(NamedTuple):
    """One expectation.

    Attributes:
        name: Stable name: `layer.what`.
        promise: What is expected, in one sentence.
        frame: Makes the table that it looks at.
        expectation: Makes the expectation; None when the policy does not ask for it.
        column: Column whose values have to be there for it to be judged.
        on_failure: What an offence makes of it: a coverage that is not given is unknown, not failed.
    """

    name: str
    promise: str
    frame: Callable[[Profile, Judged], pd.DataFrame]
    expectation: Callable[[], gxe.Expectation | None]
    column: str
    on_failure: Outcome = "failed"


def suites(gate: Gate) -> tuple[Expected, ...]:
    """All expectations of a run, in the order of the layers."""
    layers = [one for layer in ("bronze", "silver", "gold") for one in _of_layer(layer)]
    return (*layers, *_of_bronze(), *_of_silver_and_gold(), *_of_policy(gate))


def _equal(one: str, other: str) -> Callable[[], gxe.Expectation]:
    return lambda: gxe.ExpectColumnPairValuesToBeEqual(column_A=one, column_B=other)


def _within(column: str, *values: int | str) -> Callable[[], gxe.Expectation]:
    return lambda: gxe.ExpectColumnValuesToBeInSet(column=column, value_set=list(values))


def _of_layer(layer: str) -> tuple[Expected, ...]:
    def by_column(counts: Profile, judged: Judged) -> pd.DataFrame:
        return frames.columns(layer, counts)

    def by_table(counts: Profile, judged: Judged) -> pd.DataFrame:
        return frames.keys(layer, counts)

    return (
        Expected(
            f"{layer}.schema",
            f"columns of {layer} tables are stored as they are declared",
            by_column,
            _equal("stored", "declared"),
            "stored",
        ),
        Expected(
            f"{layer}.not_null",
            f"required columns of {layer} tables hold no null",
            by_column,
            _within("nulls", 0),
            "nulls",
        ),
        Expected(
            f"{layer}.accepted_values",
            f"columns of {layer} tables with a fixed set of values hold no other",
            by_column,
            _within("outside", 0),
            "outside",
        ),
        Expected(
            f"{layer}.keys",
            f"no two rows of a {layer} table have the same key",
            by_table,
            _within("doubles", 0),
            "doubles",
        ),
    )


def _of_bronze() -> tuple[Expected, ...]:
    def segments(judged: Judged) -> list[frames.Row]:
        return frames.stored_rows(bronze.SEGMENT, judged)

    def replicas(judged: Judged) -> list[frames.Row]:
        return frames.stored_rows(silver.REPLICA, judged)

    return (
        Expected(
            "bronze.row_counts",
            "each segment has the batches, records and markers that were decoded from it",
            lambda counts, judged: frames.bronze_counts(
                counts,
                segments(judged),
                replicas(judged),
                frames.unreadable(judged),
            ),
            _equal("found", "expected"),
            "found",
        ),
        Expected(
            "bronze.bytes_accounted",
            "every byte of a segment is in a whole batch or skipped with a reason",
            lambda counts, judged: frames.bytes_of(segments(judged), frames.unreadable(judged)),
            _equal("found", "expected"),
            "found",
        ),
        Expected(
            "bronze.offsets_contiguous",
            "offsets of a segment follow each other, but for the holes that are reported",
            lambda counts, judged: frames.offsets_of(counts, segments(judged), replicas(judged)),
            _within("untold", 0),
            "untold",
        ),
    )


def _of_silver_and_gold() -> tuple[Expected, ...]:
    return (
        Expected(
            "silver.row_counts",
            "every record that was read is replayed once",
            lambda counts, judged: frames.silver_counts(
                counts,
                frames.stored_rows(bronze.SEGMENT, judged),
                frames.stored_rows(silver.REPLICA, judged),
            ),
            _equal("found", "expected"),
            "found",
        ),
        Expected(
            "gold.row_counts",
            "the table of findings holds all findings",
            lambda counts, judged: frames.gold_counts(counts, judged.findings),
            _equal("found", "expected"),
            "found",
        ),
    )


def _of_policy(gate: Gate) -> tuple[Expected, ...]:
    limit = gate.max_copy_age_ms

    def fresh() -> gxe.Expectation | None:
        if limit is None:
            return None
        return gxe.ExpectColumnValuesToBeBetween(column="age_ms", min_value=0, max_value=limit)

    return (
        Expected(
            "gate.findings",
            "no unsuppressed finding at or above the threshold",
            lambda counts, judged: frames.findings(judged.shown, gate),
            _within("effect", *_FINE),
            "effect",
        ),
        Expected(
            "gate.coverage",
            "everything in scope could be judged",
            lambda counts, judged: frames.doubts(judged.doubts),
            _within("state", "judged"),
            "state",
            "unknown",
        ),
        Expected(
            "gate.freshness",
            "the copy is not older than max_copy_age_ms"
            if limit is None
            else f"the copy is not older than {limit} ms",
            lambda counts, judged: frames.age(judged.as_of_ms, judged.now_ms),
            fresh,
            "age_ms",
        ),
    )
