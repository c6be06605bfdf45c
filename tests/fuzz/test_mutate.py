"""A short run of the mutation loop, and proof that it would notice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pipeline.wire import arrays, producer_snapshot, record, scan
from pipeline.wire.errors import WireError
from tests.fuzz import mutate
from tests.fuzz.targets import Target, make_targets


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


@pytest.mark.parametrize("target", make_targets(), ids=lambda one: one.name)
def test_a_decoder_reads_its_seeds(target: Target) -> None:
    """Mutations of what is refused at once would reach nothing."""
    assert target.seeds
    for seed in target.seeds:
        target.run(seed)


@pytest.mark.parametrize("name", ["segment", "batch in a segment"])
def test_seeds_of_segments_are_batches(name: str) -> None:
    """Damage is no error there, so what is told of a seed is looked at."""
    target = next(one for one in make_targets() if one.name == name)
    for seed in target.seeds:
        found = list(scan.scan(lambda at, size, held=seed: held[at : at + size], len(seed)))
        assert isinstance(found[0], arrays.Chunk), found
        assert all(one.reason == "zero_tail" for one in found if not isinstance(one, arrays.Chunk))


@pytest.mark.parametrize("name", ["batch", "legacy"])
def test_a_marker_is_looked_for_in_what_has_no_records(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> object:
        raise WireError("no records")

    def crash(*_: object) -> object:
        raise ZeroDivisionError

    target = next(one for one in make_targets() if one.name == name)
    monkeypatch.setattr(record, "records", refuse)
    monkeypatch.setattr(record, "control_marker", crash)
    with pytest.raises(ZeroDivisionError):
        target.run(target.seeds[0])


def test_a_crashing_decoder_turns_the_loop_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(data: bytes) -> object:
        return data[100]

    monkeypatch.setattr(producer_snapshot, "read", crash)
    assert mutate.run(5_000, 1).foreign
