"""A short run of the mutation loop, and proof that it would notice."""

from __future__ import annotations

import pytest

from pipeline.wire import producer_snapshot
from tests.fuzz import mutate


def test_mutated_inputs() -> None:
    count, seed = mutate.from_environment(20_000)
    result = mutate.run(count, seed)
    print(mutate.describe(result, seed))
    assert not result.foreign, next(iter(result.foreign))
    assert result.slowest_seconds < mutate.SLOW_SECONDS
    assert 0 < result.refused < count


def test_a_crashing_decoder_turns_the_loop_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(data: bytes) -> object:
        return data[100]

    monkeypatch.setattr(producer_snapshot, "read", crash)
    assert mutate.run(5_000, 1).foreign
