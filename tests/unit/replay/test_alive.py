"""Time that passed for certain at a coordinator, whose clock may have jumped."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.replay.alive import (
    PULSE_MS,
    PULSES,
    alive,
    known_until_ms,
    needed,
    settled_ms,
    waited_ms,
)

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


def test_repeats_tell_nothing() -> None:
    assert alive(np.repeat(np.array(STEADY), 3)) == alive(np.array(STEADY))


def test_what_a_clock_stamped_before_it_was_put_back_proves_nothing() -> None:
    one = alive(np.array([*STEADY, *range(-3_600_000, -3_590_000, 1_000)]))
    assert one.is_put_back
    assert one.newest_ms == -3_591_000
    assert waited_ms(one, -3_600_000) == 8_000


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_a_log_keep_what_the_whole_needs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum(
        rng.choice([-400_000, -5, 0, 300, 2_000, 40_000], 300, p=[0.01, 0.09, 0.1, 0.3, 0.3, 0.2])
    )
    parts = [part[needed(part)] for part in np.array_split(times, 7)]
    assert alive(np.concatenate(parts)) == alive(times)


@pytest.mark.parametrize(
    ("times", "margin_ms", "wanted"),
    [
        (STEADY, 31_000, 98_999),
        ((*STEADY, 500_000), 31_000, 99_999),
        ((), 0, None),
        ((0, 500_000), 31_000, -1),
    ],
    ids=["steady", "a jump at the end", "nothing", "one stretch"],
)  # fmt: skip
def test_a_jump_at_the_end_reads_a_file_no_further(
    times: tuple[int, ...], margin_ms: int, wanted: int | None
) -> None:
    assert known_until_ms(np.array(times, np.int64), margin_ms) == wanted


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
