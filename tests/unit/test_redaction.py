"""Pseudonyms at the door: the same accusations, and no name in anything that rules or tables are made of."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import Config
from pipeline.config_sections import Selection
from pipeline.errors import AuditError, ConfigError
from pipeline.replay.pseudonyms import Pseudonyms
from pipeline.spark import redaction
from pipeline.spark.plan import plan
from pipeline.spark.read_file import read_task
from pipeline.spark.redaction import Redaction
from tests import pure_input, pure_rules
from tests.plant import PLANTS, plant
from tests.pure_audit import Replayed, replayed
from tests.recordings import recording
from tests.score import is_loud

NAMES = Pseudonyms(b"a key of the tests, long enough", None, (4,))
SAME = ("code", "class", "severity", "topic", "partition", "producer_id", "first_offset")
PLANTED = (
    "storm", "idle_expired", "regressed", "producer_id_shared", "wrong_partition", "unbounded_ids",
    "torn", "orphan_producer",
)  # fmt: skip


def accused(one: Replayed) -> Counter[tuple[Any, ...]]:
    """What is told; which id stands as the example of several is left out."""
    found = (row for row in pure_rules.accusations(one) if is_loud(row))
    return Counter(
        tuple(row.get(name) for name in SAME if name != "partition" or row["topic"] is not None)
        for row in found
    )


def hidden(root: Path, monkeypatch: pytest.MonkeyPatch) -> Replayed:
    with monkeypatch.context() as patch:
        patch.setattr(pure_input, "plan", lambda roots: redaction.redacted_plan(plan(roots), NAMES))
        patch.setattr(
            pure_input, "read_task", lambda task: redaction.guarded(read_task(task), NAMES)
        )
        return replayed(pure_input.read(root, Config()))


@pytest.mark.parametrize("name", PLANTED)
def test_the_same_is_told_without_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "of-host-7" / "logs"
    root.parent.mkdir()
    plant(name, recording(PLANTS[name].recording) / "logs", root)
    plain = replayed(pure_input.read(root, Config()))
    other = hidden(root, monkeypatch)
    assert accused(other) == accused(plain)
    ids = {step["transactional_id"] for step in plain.steps}
    ids |= {row["group_id"] for row in plain.offsets}
    made = str(other._replace(read=None)) + str(  # type: ignore[arg-type]  # text is all that is asked
        [other.read.facts, other.read.segments, other.read.unreadable, other.read.sidecars]
    )
    assert len(ids) > 4
    assert [one for one in [*sorted(ids), "of-host-7", "broker-1"] if f"'{one}" in made] == []


def test_a_failure_tells_its_kind_alone() -> None:
    def failing() -> Any:
        yield from ()
        raise KeyError("payments-tx-7")

    with pytest.raises(AuditError) as raised:
        list(redaction.guarded(failing(), NAMES))
    assert str(raised.value) == "KeyError while a file was read"
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_one_id_is_selected_and_a_pattern_refused() -> None:
    asked = Config(selection=Selection(transactional_id="payments-tx-7", group="billing"))
    found = redaction.redacted_policy(asked, NAMES).selection
    assert found.transactional_id == NAMES.transactional_id("payments-tx-7")
    assert found.group == NAMES.name("billing")
    again = redaction.redacted_policy(Config(selection=found), NAMES).selection
    assert again == found
    with pytest.raises(ConfigError, match="no pattern"):
        redaction.redacted_policy(Config(selection=Selection(group="billing-*")), NAMES)


def test_runs_of_another_key_are_not_compared_with() -> None:
    one = Redaction(NAMES, is_given=True)
    plain = {"summary": "{}"}
    same = {"summary": json.dumps({"redaction": one.said()})}
    other = {"summary": '{"redaction": {"key_name": "another"}}'}
    assert redaction.comparable([same, other], one) == [same]
    assert redaction.comparable([plain], None) == [plain]
    assert redaction.comparable([same, plain], None) == [plain]
