"""Clean lives of the model, copied in every way, accuse nobody; minor words on health are allowed.

AUDIT_HISTORIES sets how many (200).
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from pipeline.config import Config
from tests.property import model_output
from tests.property.model_clients import life
from tests.property.model_hardships import hard_life
from tests.pure_audit import accusations
from tests.score import is_loud, matches, told

pytestmark = pytest.mark.slow
HISTORIES = int(os.environ.get("AUDIT_HISTORIES", "200"))
FULL = 10_000
AFTER_LOSS = [
    {"code": "committed_offset", "class": ["beyond_end", "regressed"]},
    {"code": "sequence_gap", "class": "lost"},
]
"""True after an unclean election: the group had read what is lost, or begins before it again; batches are gone, and a
broker that has forgotten their producer takes what comes next."""
AT_ONCE = 20
"""Histories of one test case: enough to name the culprit, few enough for a report."""


def accused(seed: int, root: Path, *, moving: bool = False) -> list[str]:
    """What an audit says against a clean history; every fourth one is easy.

    Of every second one the audit is told when its copy began.
    """
    model = life(seed, moving=moving) if seed % 4 == 0 else hard_life(seed, moving=moving)
    rng = random.Random(seed)
    copies = (
        model_output.at_once(model),
        model_output.at_once(model, model.now - rng.randint(0, 80_000), is_clean=False),
        model_output.while_running(model, rng),
    )
    copy = copies[seed % 3]
    model_output.write(model, copy, root, rng=rng)
    started_ms = min(copy.moments.values()) if seed % 2 else None
    found = [
        told(one)
        for one in accusations(root, Config(copy_started_ms=started_ms))
        if is_loud(one) and not (model.has_lost and matches(one, AFTER_LOSS))
    ]
    return [f"seed {seed}: {one}" for one in found]


def batches(first: int, last: int) -> list[range]:
    return [range(at, min(at + AT_ONCE, last)) for at in range(first, last, AT_ONCE)]


@pytest.mark.parametrize("seed", [1458, 1575, 1827])
def test_a_marker_that_came_in_time_speaks_for_a_late_one_like_it(
    seed: int, tmp_path: Path
) -> None:
    """Compaction took what the late ABORT ended; order alone gave it to an earlier transaction."""
    assert accused(seed, tmp_path) == []


def test_an_abort_that_ends_nothing_is_no_marker_of_a_commit(tmp_path: Path) -> None:
    """An operator's, 817 ms behind Complete*, where few markers tell the clocks: it was `torn`, critical."""
    assert accused(12_027, tmp_path) == []


@pytest.mark.parametrize("seeds", batches(0, HISTORIES), ids=str)
def test_a_clean_history_accuses_nobody(seeds: range, tmp_path: Path) -> None:
    assert [one for seed in seeds for one in accused(seed, tmp_path / str(seed))] == []


@pytest.mark.parametrize("seeds", batches(0, HISTORIES // 2), ids=str)
def test_clocks_that_move_accuse_nobody(seeds: range, tmp_path: Path) -> None:
    found = [one for seed in seeds for one in accused(seed, tmp_path / str(seed), moving=True)]
    assert found == []


@pytest.mark.full
@pytest.mark.parametrize("seeds", batches(HISTORIES, FULL), ids=str)
def test_ten_thousand_clean_histories_accuse_nobody(seeds: range, tmp_path: Path) -> None:
    assert [one for seed in seeds for one in accused(seed, tmp_path / str(seed))] == []
