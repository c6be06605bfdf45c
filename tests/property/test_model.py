"""The model itself: the same seed gives the same history, lives are rough, faults find a place."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests import builders
from tests.property import model_output
from tests.property.model_clients import life
from tests.property.model_faults import FAULTS


def _files(root: Path) -> dict[str, bytes]:
    return {
        str(f.relative_to(root)): f.read_bytes() for f in sorted(root.rglob("*")) if f.is_file()
    }


def test_a_seed_decides_every_byte(tmp_path: Path) -> None:
    for name in ("first", "second"):
        model, rng = life(7), random.Random(7)
        copy = model_output.while_running(model, rng)
        model_output.write(model, copy, tmp_path / name, rng=rng)
    assert _files(tmp_path / "first") == _files(tmp_path / "second")


def test_lives_hold_everything_that_happens_to_transactions() -> None:
    seen: Counter[str] = Counter()
    for seed in range(12):
        model = life(seed)
        for part in model.partitions.values():
            before: dict[str, int] = {}
            for entry in part.entries:
                seen[f"{entry.kind} {entry.outcome}"] += 1
                if entry.kind == "txn":
                    last = before.get(entry.transactional_id)
                    seen["fence or timeout"] += (
                        entry.state == builders.PREPARE_ABORT and last not in (None, entry.epoch)
                    )
                    before[entry.transactional_id] = entry.epoch
            seen["new leader"] += part.leader_epoch > 0
    wanted = {
        "data -1",
        "marker 0",
        "marker 1",
        "txn -1",
        "commit -1",
        "fence or timeout",
        "new leader",
    }
    assert all(seen[name] > 3 for name in wanted), seen


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_changes_one_partition(name: str) -> None:
    for seed in range(20):
        twin, model = life(seed), life(seed)
        if FAULTS[name](model) is None:
            continue
        changed = [
            key
            for key, part in model.partitions.items()
            if part.entries != twin.partitions[key].entries
        ]
        assert len(changed) == 1
        return
    pytest.fail("no life of twenty had a place for this fault")


def test_tuples_and_files_agree(tmp_path: Path) -> None:
    model = life(3, brokers=1)
    copy = model_output.at_once(model)
    model_output.write(model, copy, tmp_path)
    for place in model_output.places(model):
        rows = model_output.batches(model, copy, place)
        topic, partition = place[1]
        folder = tmp_path / f"broker-{place[0]}" / f"{topic}-{partition}"
        size = sum(log.stat().st_size for log in folder.glob("*.log"))
        assert size == sum(row.size_bytes for row in rows)
