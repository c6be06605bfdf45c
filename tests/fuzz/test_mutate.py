"""A short run of the mutation loop, and proof that it would notice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pipeline.wire import producer_snapshot
from tests.fuzz import mutate


def test_mutated_inputs() -> None:
    count, seed = 20_000, mutate.from_environment(0)[1]
    result = mutate.run(count, seed)
    print(mutate.describe(result, seed))
    assert not result.foreign, next(iter(result.foreign))
    assert result.slowest_seconds < mutate.SLOW_SECONDS
    assert 0 < result.refused < count


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_million_mutated_inputs() -> None:
    """Half a million in each of two processes."""
    count, seed = mutate.from_environment(1_000_000)
    command = [sys.executable, "-m", "tests.fuzz.mutate"]
    halves = [
        subprocess.Popen(
            command,
            env={
                **os.environ,
                "AUDIT_FUZZ_COUNT": str(count // 2),
                "AUDIT_FUZZ_SEED": str(seed + half),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for half in range(1, 3)
    ]
    said = [half.communicate()[0] for half in halves]
    print("".join(said))
    assert [half.returncode for half in halves] == [0, 0], "".join(said)


def test_a_crashing_decoder_turns_the_loop_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(data: bytes) -> object:
        return data[100]

    monkeypatch.setattr(producer_snapshot, "read", crash)
    assert mutate.run(5_000, 1).foreign
