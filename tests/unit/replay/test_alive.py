"""Time that passed for certain at a coordinator, whose clock may have jumped."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.replay.alive import PULSE_MS, PULSES, alive, settled_ms, waited_ms

STEADY = tuple(range(0, 100_001, 1_000))


@pytest.mark.parametrize(
    ("times", "since", "wanted"),
    [
        (STEADY, 0, 99_000),
        (STEADY, 50_500, 48_500),
        (STEADY, 100_000, 0),
        (STEADY, 200_000, 0),
        ((0, 100_000), 0, 0),
        ((0, 50_000, 100_000), 0, 50_000),
        ((*range(0, 5_001, 1_000), 3_600_000, 3_601_000), 0, 6_000),
        ((0, 3_600_000, 3_601_000), -1_000, 2_000),
    ],
    ids=["steady", "since between two", "since the end", "since later", "one record behind proves nothing",
         "two records", "a jump", "a jump right behind"],
)  # fmt: skip
def test_the_longest_stretch_proves_nothing(
    times: tuple[int, ...], since: int, wanted: int
) -> None:
    assert waited_ms(alive(np.array(times)), since) == wanted


def test_records_behind_the_moment_asked_for_do_not_count() -> None:
    assert waited_ms(alive(np.array(STEADY)), 0, 40_500) == 39_000


def test_order_and_repeats_tell_nothing() -> None:
    shuffled = np.random.default_rng(1).permutation(np.array(STEADY * 3))
    assert alive(shuffled) == alive(np.array(STEADY))


def test_a_busy_coordinator_is_kept_short() -> None:
    one = alive(np.arange(0, 5_000_000, 7))
    assert len(one.pulse) == PULSES
    assert one.newest_ms == one.pulse[-1] == 4_999_995
    assert 990 * PULSE_MS < waited_ms(one, 0) < PULSES * PULSE_MS


def test_what_came_before_a_settled_time_was_waited_for() -> None:
    one = alive(np.array(STEADY))
    assert settled_ms(one, 60_000) == 38_999
    assert settled_ms(one, 99_000) == -1
    assert settled_ms(one, 100_000) is None


@pytest.mark.parametrize("seed", range(20))
def test_the_newest_settled_time_is_just_old_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one = alive(np.cumsum(rng.choice([1_000, 1_500, 9_000, 40_000], 12)))
    settled = settled_ms(one, 20_000)
    assert settled is not None
    assert waited_ms(one, settled) > 20_000 >= waited_ms(one, settled + 1)
